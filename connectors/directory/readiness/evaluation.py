"""The evaluation of stable files by all rules: which files are ready, in which order, and why other files wait."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from connectors.directory.readiness.file_groups import Group, GroupingRule
from connectors.directory.readiness.rule import (
    ContentCache,
    FileView,
    InvalidFile,
    NotReady,
    ReadinessRule,
    ScannedFolder,
)
from connectors.files.identity import Identity
from connectors.filesystem import describe_error
from connectors.formats import Format


class Readiness:
    """Evaluates files by all ``rules``. The state is only in memory; after a restart, all files are evaluated again.

    ``now`` returns seconds since the epoch, ``elapsed`` monotonic seconds, ``format_for`` the format of a file name.
    """

    def __init__(
        self,
        rules: Sequence[ReadinessRule],
        folder: ScannedFolder,
        *,
        format_for: Callable[[str], Format],
        now: Callable[[], float],
        elapsed: Callable[[], float],
    ) -> None:
        self._rules = rules
        self._grouping = [rule for rule in rules if isinstance(rule, GroupingRule)]
        self._folder = folder
        self._format_for = format_for
        self._now = now
        self._elapsed = elapsed
        self._cache = ContentCache()
        self._since: dict[str, tuple[Identity, float]] = {}
        self._verdicts: dict[str, NotReady | InvalidFile] = {}
        self._groups: dict[str, Group] = {}

    def is_companion(self, name: str) -> bool:
        """Return True if the file belongs to other files and is never read itself."""
        base = name.rpartition("/")[2]
        return any(rule.is_companion(base) for rule in self._rules)

    def update(self, files: Mapping[str, Identity]) -> None:
        """Record the present ``files`` of the folder (without companions), and find their groups."""
        if not self._rules:
            return
        self._cache.forget_unused()
        for known in (self._since, self._verdicts):
            for name in [name for name in known if name not in files]:
                known.pop(name, None)
        self._groups = {
            member: group
            for rule in self._grouping
            for group in self._find_groups(rule, files)
            for member in group.members
        }

    def _find_groups(self, rule: GroupingRule, files: Mapping[str, Identity]) -> list[Group]:
        try:
            return list(rule.groups(files, self._folder, self._cache))
        except OSError:
            return []  # a manifest has disappeared or can't be read: without a group, files wait for a manifest

    def evaluate(
        self, stable: Collection[str], files: Mapping[str, Identity], *, is_done: Callable[[str], bool]
    ) -> list[str]:
        """Return the ``stable`` files that are ready or must be rejected. The files of a group follow one another.

        ``is_done`` returns True if a file need not be read, because it would yield nothing new.
        """
        if not self._rules:
            return list(stable)
        ready = [name for name in stable if not isinstance(self._evaluate_file(name, files[name]), NotReady)]
        return self._order_groups(ready, is_done) if self._grouping else ready

    def _order_groups(self, ready: list[str], is_done: Callable[[str], bool]) -> list[str]:
        good = {name for name in ready if name not in self._verdicts}
        ordered: dict[str, None] = {}
        for name in ready:
            members = self._groups[name].members
            pending = [member for member in members if member not in good and not is_done(member)]
            if name not in good:
                ordered.setdefault(name)  # to be rejected
            elif pending:
                self._verdicts[name] = NotReady(
                    sentence=f"it is read together with {', '.join(pending)}, not ready yet"
                )
            else:
                ordered.update(dict.fromkeys(member for member in members if member in good))
        return list(ordered)

    def _evaluate_file(self, name: str, identity: Identity) -> NotReady | InvalidFile | None:
        seen = self._since.get(name)
        if seen is None or not seen[0].has_same_content(identity):
            seen = self._since[name] = (identity, self._elapsed())
        verdict = self._apply_rules(name, identity, seen[1])
        if verdict is None:
            self._verdicts.pop(name, None)
        else:
            self._verdicts[name] = verdict
        return verdict

    def _apply_rules(self, name: str, identity: Identity, since: float) -> NotReady | InvalidFile | None:
        waited = self._elapsed() - since
        view = FileView(
            name=name,
            identity=identity,
            now=self._now(),
            format_for=self._format_for,
            folder=self._folder,
            cache=self._cache,
        )
        group = self._groups.get(name)
        try:
            for rule in self._rules:
                verdict = _evaluate_member(rule, group, view) if isinstance(rule, GroupingRule) else rule.evaluate(view)
                if isinstance(verdict, NotReady) and verdict.at_most is not None and waited >= verdict.at_most:
                    continue
                if verdict is not None:
                    return verdict
        except FileNotFoundError:
            return NotReady(sentence="it, or a file that belongs to it, has just disappeared or changed")
        except OSError as error:
            return NotReady(sentence=f"it can't be examined yet: {describe_error(error)}".removesuffix("."))
        return None

    def rejection_reason(self, name: str) -> str:
        """Return why a rule rejects the file in its present state; empty if no rule rejects it."""
        verdict = self._verdicts.get(name)
        return verdict.sentence if isinstance(verdict, InvalidFile) else ""

    def waiting_reason(self, name: str) -> str:
        """Return why the file waits according to its last evaluation; empty if it does not wait."""
        verdict = self._verdicts.get(name)
        return verdict.sentence if isinstance(verdict, NotReady) else ""

    def companions(self, name: str) -> list[str]:
        """Return the paths of the companions that are removed with the file. A companion may be missing."""
        folder, _, base = name.rpartition("/")
        return [
            f"{folder}/{companion}" if folder else companion
            for rule in self._rules
            for companion in rule.companions(base)
        ]

    def group(self, name: str) -> Group | None:
        """Return the group of the file; None if it has no group."""
        return self._groups.get(name)


def _evaluate_member(rule: GroupingRule, group: Group | None, view: FileView) -> NotReady | InvalidFile | None:
    if group is None:
        return NotReady(sentence=rule.ungrouped_reason(view.name))
    return NotReady(sentence=group.incomplete) if group.incomplete else group.evaluate(view)
