"""The directory connector: events start scans, scans select files, and acknowledged files are archived or deleted."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import ClassVar

from connectors.directory.archiver import Archiver
from connectors.directory.checks import run_checks
from connectors.directory.file_source import FileSource
from connectors.directory.local_folder import LocalFolder
from connectors.directory.location import cursor_of_facts, describe_location, find_archived, locate
from connectors.directory.options import DirectoryOptions
from connectors.directory.other_pipelines import DiskReaders
from connectors.directory.scan import readable_name
from connectors.files.file_batches import open_file
from connectors.filesystem import translate_errors
from connectors.folder_watch import FolderWatch
from ingestd.sdk import (
    Batch,
    Cursor,
    FileClaim,
    Partition,
    SourceBroken,
    SourceContext,
    SourceUnavailable,
    Step,
)

_SCAN_SPACING = 400
"""If events are received, the scan interval is at least this multiple of a scan's processor time: at most 0.25 % of a CPU."""
_POLL_SPACING = 20
"""The multiple if no events are received. Scans then cost at most 5 % of a CPU."""


class DirectoryConnector(FileSource):
    """Files in a folder on disk; see `FileSource`."""

    Options: ClassVar[type[DirectoryOptions]] = DirectoryOptions
    options: DirectoryOptions

    def __init__(self, options: DirectoryOptions, context: SourceContext) -> None:
        self._folder = context.base / options.path
        super().__init__(options, context, self._open_places)
        self._scan_cpu_seconds = 0.0
        self._watch = FolderWatch(
            self._folder, recursive=options.recursive, mode=options.watch, report=self._report_watch
        )

    def _open_places(self) -> tuple[LocalFolder, Archiver]:
        options, context = self.options, self.context
        readers = DiskReaders(context.other_readers)
        self._archiver = Archiver(options, context.base, format_for=self._format_of_rejected, other_readers=readers)
        excluded = self._archiver.all_folders
        self._drop = LocalFolder(options, self._folder, excluded=excluded, other_readers=readers)
        return self._drop, self._archiver

    @classmethod
    def claims(cls, options: DirectoryOptions, base: Path) -> Sequence[FileClaim]:
        """Return the claim on the matching files. The archive, quarantine and failed folders are excluded."""
        excluded = [base / one for one in (options.archive, options.quarantine, options.failed) if one is not None]
        return [
            FileClaim(
                folder=os.path.realpath(base / options.path),
                patterns=options.patterns,
                recursive=options.recursive,
                ignore_case=not options.case_sensitive,
                takes=options.after != "keep",
                excluded=tuple(sorted({os.path.realpath(folder) for folder in excluded})),
            )
        ]

    # ------------------------------------------------------------------------------------------------ reading

    def partitions(self) -> Iterable[Partition]:
        """Yield the files that are ready and may have new content, the oldest first."""
        if self._archiver.is_the_folder:
            raise SourceBroken(f"The archive is the folder {self._folder} itself: archived files would be read again.")
        yield from super().partitions()

    def _update(self) -> list[str]:
        self._watch.rearm()
        began = time.thread_time()
        names = super()._update()
        self._scan_cpu_seconds = time.thread_time() - began
        return names

    def read_copy(self, name: str, facts: Mapping[str, str]) -> Iterator[Batch]:
        """Yield the records of the archived file that has these facts, for `ingestd trace`; nothing if there is none."""
        cursor = cursor_of_facts(facts)
        if cursor is None:
            return
        with translate_errors(self._folder):
            for archived in find_archived(name, cursor, self._archiver.archive, self.options):
                with (opened := open_file(archived, name)).file:
                    if opened.sha256() == facts.get("file.sha256"):
                        yield from self._read_copy(opened)
                        return

    def holds(self, name: str) -> bool:
        """Return True if there is a file of this name below the folder, or the folder itself is missing."""
        with translate_errors(self._folder):
            self._drop.check()
            exists = self._drop.has(name)
            self._drop.check()  # if the share was unmounted during the call, an empty folder was examined
            return exists

    # ------------------------------------------------------------------------------------------------ watching

    @property
    def rescan_seconds(self) -> float:
        """The interval of scans. A change without an event is detected after this time at the latest."""
        options = self.options
        spacing = _POLL_SPACING if self._watch.is_polling else _SCAN_SPACING
        return max(self._watch.interval(options.poll_seconds, options.rescan_seconds), self._scan_cpu_seconds * spacing)

    def watch(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        """Call ``wake`` at every event below the folder, and when the folder appears."""
        return self._watch.listen(wake)

    def _report_watch(self, sentence: str) -> None:
        also = "" if self._watch.is_polling else "also "
        self.context.log(f"{sentence}. It is {also}scanned every {self.rescan_seconds:g} seconds.")

    # ------------------------------------------------------------------------------------------------ reporting

    def verify(self) -> Iterator[Step]:
        """Check that the folder and the archive can be used as configured, and report the files in the folder."""
        try:
            with translate_errors(self._folder):
                yield from run_checks(self._drop, self.options, self._archiver)
        except SourceUnavailable as error:
            yield Step(name="folder", outcome="failed", sentence=str(error))

    def locate(self, path: Path) -> str | None:
        """Return the name of the file to which a path belongs; see `connectors.directory.location.locate`."""
        with translate_errors(self._folder):
            located = locate(path, self._folder, self._archiver, self.options)
        return readable_name(located) if located is not None else None

    def describe_location(self, name: str, cursor: Cursor) -> str:
        """Return the present location of the file that ``cursor`` describes."""
        with translate_errors(self._folder):
            return describe_location(name, cursor, self._folder, self._archiver.archive, self.options)
