"""The state of a drop folder: the last scan, and which files are stable, ready, or read already."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from connectors.directory.drop_folder import DropFolder
from connectors.directory.drop_options import DropOptions
from connectors.directory.read_files import ReadFiles
from connectors.directory.readiness.evaluation import Readiness
from connectors.directory.readiness.file_groups import Group
from connectors.directory.scan import ScanResult
from connectors.files.file_batches import OpenFile
from connectors.files.identity import Identity
from connectors.files.resubmission import is_resubmitted
from connectors.files.stability import StabilityTracker
from connectors.formats import Format
from ingestd.sdk import Acknowledgement, Cursor, SourceContext, SourceError, WaitingReason

_COMPARED_BYTES = 64 * 2**20


class FolderState:
    """What the connector knows about its folder. This state is only in memory; scans and readings rebuild it.

    ``found``: the last scan. ``held``: acknowledged files that wait for other files of their group, by name.
    ``trusts_status``: file times come from this machine's clock, and different files always have different identities.
    """

    def __init__(
        self,
        options: DropOptions,
        drop: DropFolder,
        format_for: Callable[[str], Format],
        *,
        context: SourceContext,
        trusts_status: bool = True,
    ) -> None:
        self.options = options
        self.drop = drop
        self.context = context
        self._trusts_status = trusts_status
        self.readiness = Readiness(options.rules, drop, format_for=format_for, now=context.now, elapsed=context.elapsed)
        self.stability = StabilityTracker(options.settle_seconds, trusts_times=trusts_status)
        self.empty_stability = StabilityTracker(options.empty_seconds, trusts_times=trusts_status)
        self.read_files = ReadFiles()
        self.found = ScanResult()
        self.held: dict[str, tuple[Cursor, Acknowledgement]] = {}
        self._rejected: dict[str, str] = {}
        self._uncompared: list[str] = []
        self._waiting: Mapping[WaitingReason, Collection[str]] = {}

    @property
    def folder(self) -> Path:
        """The path of the folder, for messages."""
        return self.drop.root

    @property
    def waiting(self) -> Mapping[WaitingReason, Collection[str]]:
        """The files that wait or could not be read, by reason, after the last scan and later readings. Thread-safe."""
        known = self.read_files
        return {**self._waiting, "unreadable": [*known.broken, *known.missed(self.context.elapsed())]}

    def update(self) -> list[str]:
        """Scan the folder and return the names of the files to read, the oldest first.

        Files that stay empty come last. A scan opens a file only for a readiness rule, or to compare its content.

        Raises:
            SourceUnavailable: the folder can't be scanned.
        """
        found = self.scan()
        now, elapsed = self.context.now(), self.context.elapsed()
        self.read_files.keep_only(found.files.keys() | found.empty.keys() if found.empty else found.files)
        self.readiness.update(found.files)
        stable = self.stability.update(found.files, now, elapsed=elapsed)
        is_known = self.read_files.is_known
        for name in self._find_replaced(stable, found.files):
            self.read_files.mark_replaced(name)
        candidates = self.read_files.unknown(stable, found.files)
        if self._rejected:
            again = self._rejected.keys() | candidates
            candidates = [name for name in stable if name in again]
        candidates.sort(key=lambda name: (found.files[name].mtime_ns, name))
        ready = self._evaluate(candidates, found)
        empty = self.empty_stability.update(found.empty, now, elapsed=elapsed)
        # The mapping is replaced and not changed, because another thread may be reading it.
        self._waiting = {
            "unstable": self.stability.waiting,
            "not ready": set(candidates).difference(ready),
            "empty": [name for name in found.empty if not is_known(name, found.empty[name])],
        }
        return [*ready, *sorted(name for name in empty if not is_known(name, found.empty[name]))]

    def _find_replaced(self, stable: Sequence[str], files: Mapping[str, Identity]) -> list[str]:
        """Return the files that were replaced while their status stayed equal, which some file systems permit.

        A scan compares files with their known hashes, up to a limit of bytes. The next scan continues with the next files.
        """
        contents = self.read_files.contents
        if not contents:
            return []
        waiting = [name for name in self._uncompared if name in contents]
        self._uncompared = waiting or list(contents)
        is_stable = frozenset(stable).__contains__
        left, replaced = _COMPARED_BYTES, list[str]()
        while self._uncompared and left > 0:
            name = self._uncompared.pop()
            if is_stable(name):
                left -= files[name].size
                if not self.has_content(name, contents[name]):
                    replaced.append(name)
        return replaced

    def has_content(self, name: str, sha256: str) -> bool:
        """Return True if a file has the content ``sha256``, or can't be opened now. For files without a unique status."""
        try:
            opened = self.drop.file(name).open()
            with opened.file:
                return opened.sha256() == sha256
        except (OSError, SourceError):
            return True  # the next reading reports the error

    def scan(self) -> ScanResult:
        """Scan the folder. The result has no companions of other files.

        Raises:
            SourceUnavailable: the folder can't be scanned, or its share is not mounted.
        """
        found = self.drop.scan()
        if self.options.ready:
            for name in [name for name in (*found.files, *found.empty) if self.readiness.is_companion(name)]:
                found.files.pop(name, None)
                found.empty.pop(name, None)
        self.found = found
        return found

    def _evaluate(self, names: list[str], found: ScanResult) -> list[str]:
        # A file of resubmitted rows needs no marker, sidecar or group, because a person corrected and dropped it.
        resubmitted = [name for name in names if is_resubmitted(name)]
        ready = self.readiness.evaluate(
            [name for name in names if name not in resubmitted] if resubmitted else names,
            found.files,
            is_done=lambda name: name in found.files and self._is_done(name, found),
        )
        # A rejection can end although the file is unchanged, because a companion may have changed.
        for name, sentence in list(self._rejected.items()):
            if self.readiness.rejection_reason(name) != sentence:
                self.read_files.clear_broken(name)
                del self._rejected[name]
        return [name for name in (*ready, *resubmitted) if not self.read_files.is_known(name, found.files[name])]

    def _is_done(self, name: str, found: ScanResult) -> bool:
        return self.read_files.is_known(name, found.files[name]) and name not in self._rejected

    def take_rejection(self, name: str) -> str:
        """Return and record the reason why a readiness rule rejects the file; empty if no rule rejects it."""
        if reason := self.readiness.rejection_reason(name):
            self._rejected[name] = reason
        return reason

    def is_as_scanned(self, opened: OpenFile, listed: Identity) -> bool:
        """Return True if the file may be read, because it is unchanged since the scan that found it stable.

        ``listed``: the file's identity before it was opened, used if no scan found the file. A server's list and a file's
        status can differ. So for a server, they are compared only with ``settle_seconds``, ``ready`` or an empty file.
        """
        is_compared = (
            self._trusts_status or self.options.settle_seconds or self.options.ready or not opened.identity.size
        )
        seen = self.found.files.get(opened.name) or self.found.empty.get(opened.name)
        return not is_compared or opened.identity.has_same_content(seen or listed)

    def was_read(self, name: str, identity: Identity, cursor: Cursor | None) -> bool:
        """Return True if the file's identity proves that the file was read up to ``cursor``.

        On a server, a new file may have the same identity as a removed file of this name. Then its content is compared.
        """
        if cursor is None or not identity.matches_cursor(cursor) or self.read_files.is_replaced(name):
            return False
        if not identity.is_proof:
            self.read_files.remember_content(name, str(cursor["sha256"]))
        return self._trusts_status or self.options.after == "keep" or self.read_files.has_ended(name, identity)

    def find_group(self, name: str) -> Group | None:
        """Return the group to which the file belongs, or None. If nothing was scanned yet, the folder is scanned first."""
        if self.options.ready and not self.found.files:
            self.readiness.update(self.scan().files)
        return self.readiness.group(name)
