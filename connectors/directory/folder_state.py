"""The state of a drop folder: its last scan, which files are stable and ready, and which were read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

from connectors.directory.options import DirectoryOptions
from connectors.directory.read_files import ReadFiles
from connectors.directory.readiness import Readiness
from connectors.directory.readiness.file_groups import Group
from connectors.directory.scan import Scanner, ScanResult, is_inside
from connectors.files.file_batches import OpenFile
from connectors.files.resubmission import is_resubmitted
from connectors.files.stability import StabilityTracker
from connectors.filesystem import translate_errors
from connectors.formats import Format
from connectors.mounts import MountGuard
from ingestd.sdk import Cursor, Settlement, SourceBroken, WaitingReason


class FolderState:
    """Everything that the connector knows about its folder.

    Kept in memory only; rebuilt by scanning and reading. ``found``: the last scan. ``held``: acknowledged files of groups,
    by name, until the whole group is acknowledged.
    """

    def __init__(
        self,
        options: DirectoryOptions,
        folder: Path,
        *,
        excluded: Iterable[Path],
        now: Callable[[], float],
        format_for: Callable[[str], Format],
    ) -> None:
        self.options = options
        self.folder = folder
        self.now = now
        self.readiness = Readiness(options.rules, folder, now=now, format_for=format_for)
        self.scanner = Scanner(
            folder,
            options.patterns,
            recursive=options.recursive,
            excluded=excluded,
            links=options.after == "keep",
            case_sensitive=options.case_sensitive,
            is_companion=self.readiness.is_companion,
        )
        self.guard = MountGuard(folder, options.canary)
        self.stability = StabilityTracker(options.settle_seconds)
        self.empty_stability = StabilityTracker(options.empty_seconds)
        self.read_files = ReadFiles()
        self.found = ScanResult()
        self.held: dict[str, tuple[Cursor, Settlement]] = {}
        self._rejected: dict[str, str] = {}
        self._waiting: Mapping[WaitingReason, Collection[str]] = {}

    @property
    def waiting(self) -> Mapping[WaitingReason, Collection[str]]:
        """The files that the last scan left unread, and those that could not be read since, by reason. Thread-safe."""
        return {**self._waiting, "unreadable": self.read_files.broken}

    def update(self) -> list[str]:
        """Scan the folder and return the names of the files to read, the oldest first.

        Files that stay empty come last. No file is opened, unless a readiness rule needs its content.

        Raises:
            SourceUnavailable: the folder can't be scanned.
        """
        found = self.scan()
        now = self.now()
        self.read_files.keep_only(found.files.keys() | found.empty.keys() if found.empty else found.files)
        self.readiness.update(found.files)
        stable = self.stability.update(found.files, now)
        is_known = self.read_files.is_known
        candidates = [name for name in stable if name in self._rejected or not is_known(name, found.files[name])]
        candidates.sort(key=lambda name: (found.files[name].mtime_ns, name))
        ready = self._evaluate(candidates, found)
        empty = self.empty_stability.update(found.empty, now)
        # A new mapping, because another thread may read the former one.
        self._waiting = {
            "unstable": self.stability.waiting,
            "not ready": set(candidates).difference(ready),
            "empty": [name for name in found.empty if not is_known(name, found.empty[name])],
        }
        return [*ready, *sorted(name for name in empty if not is_known(name, found.empty[name]))]

    def scan(self) -> ScanResult:
        """Scan the folder, without the files that belong to others.

        Raises:
            SourceUnavailable: the folder can't be scanned, or its share is not mounted.
        """
        self.guard.check()
        found = self.scanner.scan()
        self.guard.check()  # a share that was unmounted meanwhile left an empty folder
        if self.options.ready:
            for name in [name for name in (*found.files, *found.empty) if self.readiness.is_companion(name)]:
                found.files.pop(name, None)
                found.empty.pop(name, None)
        self.found = found
        return found

    def _evaluate(self, names: list[str], found: ScanResult) -> list[str]:
        # Resubmitted rows have no marker, sidecar or group: a person corrected and dropped them.
        resubmitted = [name for name in names if is_resubmitted(name)]
        ready = self.readiness.evaluate(
            [name for name in names if name not in resubmitted] if resubmitted else names,
            found.files,
            is_done=lambda name: name in found.files and self._is_done(name, found),
        )
        # The rejection of an unchanged file can end, because the rule rejected it for a companion.
        for name, sentence in list(self._rejected.items()):
            if self.readiness.rejection_reason(name) != sentence:
                self.read_files.clear_broken(name)
                del self._rejected[name]
        return [name for name in (*ready, *resubmitted) if not self.read_files.is_known(name, found.files[name])]

    def _is_done(self, name: str, found: ScanResult) -> bool:
        return self.read_files.is_known(name, found.files[name]) and name not in self._rejected

    def take_rejection(self, name: str) -> str:
        """Return why a readiness rule rejects the file, and record that; empty if no rule rejects it."""
        if reason := self.readiness.rejection_reason(name):
            self._rejected[name] = reason
        return reason

    def is_as_scanned(self, opened: OpenFile) -> bool:
        """Return True if the file may be read: it is unchanged since the scan that found it stable."""
        seen = self.found.files.get(opened.name) or self.found.empty.get(opened.name)
        must_be_stable = self.options.settle_seconds or self.options.ready or not opened.identity.size
        return not must_be_stable or seen is None or opened.identity.has_same_content(seen)

    def find_group(self, name: str) -> Group | None:
        """Return the group with which the file was read. After a restart, the folder is scanned first."""
        if self.options.ready and not self.found.files:
            self.readiness.update(self.scan().files)
        return self.readiness.group(name)

    def path(self, name: str) -> Path:
        """Return the path of the file.

        Raises:
            SourceBroken: links lead it out of the folder.
            SourceUnavailable: its file system does not respond.
        """
        path = self.folder / name
        with translate_errors(path):
            inside = is_inside(path, self.folder)
        if not inside:
            raise SourceBroken(f"{name} leads out of the folder {self.folder}; it is not read.")
        return path
