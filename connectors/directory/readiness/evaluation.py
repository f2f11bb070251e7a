"""Which of the files that stand still are ready by every rule, in which order, and for what the others wait."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from connectors.directory.readiness.file_groups import Group, GroupingRule
from connectors.directory.readiness.folder_view import ContentCache, DiskFileView, DiskFolderView
from connectors.directory.readiness.rule import Invalid, NotReady, ReadinessRule
from connectors.files.identity import Identity
from connectors.filesystem import describe_error
from connectors.formats import Format


class Readiness:
    """Judges by all of ``rules``. Forgets with the process: whatever is lost is found out again.

    ``now`` gives seconds since the epoch; ``format_for`` the format of a name.
    """

    def __init__(
        self,
        rules: Sequence[ReadinessRule],
        folder: Path,
        *,
        now: Callable[[], float],
        format_for: Callable[[str], Format],
    ) -> None:
        self._rules = rules
        self._grouping = [rule for rule in rules if isinstance(rule, GroupingRule)]
        self._folder = folder
        self._now = now
        self._format_for = format_for
        self._known = ContentCache()
        self._since: dict[str, tuple[Identity, float]] = {}
        self._verdicts: dict[str, NotReady | Invalid] = {}
        self._groups: dict[str, Group] = {}

    def is_companion(self, name: str) -> bool:
        """Whether a file belongs to another and is never read itself."""
        base = name.rpartition("/")[2]
        return any(rule.is_companion(base) for rule in self._rules)

    def update(self, files: Mapping[str, Identity]) -> None:
        """The files that there are now, without companions."""
        if not self._rules:
            return
        self._known.forget_unused()
        for known in (self._since, self._verdicts):
            for name in [name for name in known if name not in files]:
                known.pop(name, None)
        around = DiskFolderView(folder=self._folder, files=files, known=self._known)
        self._groups = {
            member: group for rule in self._grouping for group in self._of(rule, around) for member in group.members
        }

    @staticmethod
    def _of(rule: GroupingRule, around: DiskFolderView) -> list[Group]:
        try:
            return list(rule.groups(around))
        except OSError:
            return []  # the list went away or can't be read: its files wait, and say for what

    def evaluate(
        self, still: Collection[str], files: Mapping[str, Identity], *, through: Callable[[str], bool]
    ) -> list[str]:
        """The names among ``still`` that are ready, or to be parked; a group's follow one another.

        ``through`` tells of a file that is not in question any more, since reading it would bring nothing.
        """
        if not self._rules:
            return list(still)
        ready = [name for name in still if not isinstance(self._judged(name, files[name]), NotReady)]
        return self._together(ready, through) if self._grouping else ready

    def _together(self, ready: list[str], through: Callable[[str], bool]) -> list[str]:
        good = {name for name in ready if name not in self._verdicts}
        together: dict[str, None] = {}
        for name in ready:
            members = self._groups[name].members
            late = [member for member in members if member not in good and not through(member)]
            if name not in good:
                together.setdefault(name)  # to be parked
            elif late:
                self._verdicts[name] = NotReady(sentence=f"it is read together with {', '.join(late)}, not ready yet")
            else:
                together.update(dict.fromkeys(member for member in members if member in good))
        return list(together)

    def _judged(self, name: str, identity: Identity) -> NotReady | Invalid | None:
        seen = self._since.get(name)
        if seen is None or not seen[0].same_content(identity):
            seen = self._since[name] = (identity, self._now())
        verdict = self._verdict(name, identity, seen[1])
        if verdict is None:
            self._verdicts.pop(name, None)
        else:
            self._verdicts[name] = verdict
        return verdict

    def _verdict(self, name: str, identity: Identity, since: float) -> NotReady | Invalid | None:
        now = self._now()
        look = DiskFileView(
            name=name, folder=self._folder, identity=identity, now=now, known=self._known, format_for=self._format_for
        )
        group = self._groups.get(name)
        try:
            for rule in self._rules:
                verdict = self._grouped(rule, group, look) if isinstance(rule, GroupingRule) else rule.evaluate(look)
                if isinstance(verdict, NotReady) and verdict.at_most is not None and now - since >= verdict.at_most:
                    continue
                if verdict is not None:
                    return verdict
        except FileNotFoundError:
            return NotReady(sentence="it, or what lies beside it, has just gone")
        except OSError as error:
            return NotReady(sentence=f"it can't be looked at yet: {describe_error(error)}".removesuffix("."))
        return None

    @staticmethod
    def _grouped(rule: GroupingRule, group: Group | None, look: DiskFileView) -> NotReady | Invalid | None:
        if group is None:
            return NotReady(sentence=rule.alone(look.name))
        return NotReady(sentence=group.lacking) if group.lacking else group.evaluate(look)

    def parked(self, name: str) -> str:
        """Why the file must not be read as it is; empty where no rule says so."""
        verdict = self._verdicts.get(name)
        return verdict.sentence if isinstance(verdict, Invalid) else ""

    def waits(self, name: str) -> str:
        """For what the file waits, as the last judgement found it; empty where for nothing."""
        verdict = self._verdicts.get(name)
        return verdict.sentence if isinstance(verdict, NotReady) else ""

    def companions(self, name: str) -> list[str]:
        """The paths below the folder of what goes where the file goes; whether they are there is not asked."""
        folder, _, base = name.rpartition("/")
        return [f"{folder}/{one}" if folder else one for rule in self._rules for one in rule.companions(base)]

    def group(self, name: str) -> Group | None:
        """The files with which this one is read all or none."""
        return self._groups.get(name)
