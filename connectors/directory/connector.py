"""The directory connector: events start scans, scans select files, and acknowledged files are archived or deleted."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import ClassVar

from connectors.directory.acknowledgement import Acknowledger
from connectors.directory.archiver import Archiver
from connectors.directory.checks import describe_skipped, run_checks
from connectors.directory.explain import explain_file, explain_waiting
from connectors.directory.file_reader import FileReader
from connectors.directory.folder_state import FolderState
from connectors.directory.location import cursor_of_facts, describe_location, find_archived, locate
from connectors.directory.options import DirectoryOptions
from connectors.directory.scan import readable_name
from connectors.files.notices import NoticeLog
from connectors.files.resubmission import format_for
from connectors.files.sample import read_sample_file
from connectors.filesystem import real_path, translate_errors
from connectors.folder_watch import ConnectorWatch
from connectors.formats import Format
from connectors.formats.parser_process import Parsers
from ingestd.sdk import (
    Batch,
    Connector,
    Cursor,
    FileClaim,
    Partition,
    Settlement,
    SourceBroken,
    SourceContext,
    SourceUnavailable,
    Step,
    WaitingFile,
    WaitingReason,
)

_SCAN_SPACING = 400
"""With events, scans are at least this many times their processor time apart: they cost at most 0.25 % of a processor."""
_POLL_SPACING = 20
"""Without events, scans cost at most 5 % of a processor."""


class DirectoryConnector(Connector):
    """Files in a folder.

    A partition is a file, named by its path below the folder, and a reading covers the whole file.
    """

    Options: ClassVar[type[DirectoryOptions]] = DirectoryOptions
    options: DirectoryOptions

    def __init__(self, options: DirectoryOptions, context: SourceContext) -> None:
        super().__init__(options, context)
        self._folder = context.base / options.path
        self._parsers = Parsers()
        self._archiver = Archiver(options, context.base, format_for=self._format_for, now=context.now)
        self._state = FolderState(
            options,
            self._folder,
            excluded=self._archiver.all_folders,
            now=context.now,
            format_for=self._format_for,
        )
        self._notices = NoticeLog(context.log)
        self._reader = FileReader(self._state, format_for=self._format_for, notices=self._notices)
        self._acknowledger = Acknowledger(self._state, self._archiver)
        self._scan_cpu_seconds = 0.0
        self._watch = ConnectorWatch(
            self._folder, recursive=options.recursive, mode=options.watch, report=self._report_watch
        )

    @classmethod
    def claims(cls, options: DirectoryOptions, base: Path) -> Sequence[FileClaim]:
        """Return the files that match, whether they are removed, and the folders that receive files."""
        archive = base / options.archive if options.archive is not None else None
        puts = [base / folder for folder in (options.quarantine, options.failed) if folder is not None]
        if options.after == "archive" and archive is not None:
            puts += [archive, archive / "rejected", archive / "failed"]
        excluded = [*puts, archive] if archive is not None else puts
        return [
            FileClaim(
                folder=os.path.realpath(base / options.path),
                patterns=options.patterns,
                recursive=options.recursive,
                takes=options.after != "keep",
                puts=tuple(sorted({os.path.realpath(folder) for folder in puts})),
                excluded=tuple(sorted({os.path.realpath(folder) for folder in excluded})),
            )
        ]

    def _format_for(self, name: str) -> Format:
        return format_for(name, self.options.format, member=self.options.member).with_parsers(self._parsers)

    # ------------------------------------------------------------------------------------------------ reading

    def partitions(self) -> Iterable[Partition]:
        """Yield the files that are ready and may have new content, the oldest first."""
        archive = self._archiver.archive
        if archive is not None and real_path(archive) == real_path(self._folder):
            raise SourceBroken(f"The archive is the folder {self._folder} itself: archived files would be read again.")
        with translate_errors(self._folder):
            self._watch.rearm()
            began = time.thread_time()
            names = self._state.update()
            self._scan_cpu_seconds = time.thread_time() - began
        yield from (Partition(name=name) for name in names)
        if self._state.found.away:  # a part of the folder; the rest of it was yielded
            raise SourceUnavailable(self._state.found.away)

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:
        """Yield the whole file; see `connectors.directory.file_reader.FileReader.read`."""
        return self._reader.read(partition.name, cursor)

    def settled(self, partition: Partition, cursor: Cursor, settlement: Settlement) -> None:
        """Keep, archive or delete the file.

        See `connectors.directory.acknowledgement.Acknowledger.acknowledge`.

        Raises:
            SettleLater: another file of its group is not acknowledged yet, or a grace period has not passed.
        """
        if "offset" in cursor:  # the file was not read to its end
            return
        with translate_errors(self._folder):
            self._state.guard.check()  # otherwise a file on an unmounted share would count as removed
            self._acknowledger.acknowledge(partition.name, cursor, settlement)

    def failed(self, partition: Partition, reason: str) -> None:
        """Move a file with unreadable content to the folder for such files, if there is one.

        A file stays if only its mapping fails, because the mapping is often what is wrong. It also stays if it belongs to a
        group, which would wait for it forever, and if a readiness rule rejects it.
        """
        name = partition.name
        known = self._state.read_files
        known.confirm_broken(name, reason)
        identity = known.take_unreadable(name)
        if identity is None or self._state.find_group(name) is not None:
            return
        try:
            with translate_errors(self._folder):
                self._archiver.move_to_failed(self._state.path(name), name, identity, reason)
        except SourceUnavailable:
            known.clear_broken(name)  # so that it is read again, and moved once that is possible
            raise

    def read_sample(self, path: Path) -> Iterator[Batch]:
        """Yield a whole file with the source's format, for `ingestd test`."""
        return self._read_file(path, path.name)

    def _read_file(self, path: Path, name: str) -> Iterator[Batch]:
        trailer = self.options.trailer
        find_end = trailer.find_start if trailer is not None else lambda _: None
        return read_sample_file(path, self._format_for(name), notices=self._notices, find_end=find_end, name=name)

    def read_copy(self, name: str, facts: Mapping[str, str]) -> Iterator[Batch]:
        """Yield the archived file that was read with these facts, for `ingestd trace`; nothing if it is not in the archive."""
        cursor = cursor_of_facts(facts)
        if cursor is None:
            return
        with translate_errors(self._folder):
            for archived in find_archived(name, cursor, self._archiver.archive, self.options):
                if _sha256(archived) == facts.get("file.sha256"):
                    yield from self._read_file(archived, name)
                    return

    def holds(self, name: str) -> bool:
        """Return True if there is a file of this name below the folder, or the folder itself is missing."""
        with translate_errors(self._folder):
            self._state.guard.check()
            exists = _exists(self._folder / name)
            self._state.guard.check()  # a share that was unmounted meanwhile left an empty folder
            return exists or not _exists(self._folder)

    def again(self) -> None:
        """Forget which files were read or could not be read, so that every file is read again."""
        self._state.read_files.forget()

    def interrupt(self) -> None:
        """Stop the child process that parses a file."""
        self._parsers.interrupt()

    def close(self) -> None:
        """Stop the child process that parses a file."""
        self._parsers.interrupt()

    # ------------------------------------------------------------------------------------------------ watching

    def waiting(self) -> float | None:
        """Return the seconds until the next file may be stable; None if every file is stable.

        Other conditions end at a time that is not known; events and scans notice that.
        """
        return self._state.stability.next_seconds(self.context.now())

    @property
    def rescan_seconds(self) -> float:
        """The longest time for which a missed event goes unnoticed."""
        options = self.options
        spacing = _POLL_SPACING if self._watch.is_polling else _SCAN_SPACING
        return max(self._watch.interval(options.poll_seconds, options.rescan_seconds), self._scan_cpu_seconds * spacing)

    def watch(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        """Call ``wake`` on every event below the folder, also once the folder appears or returns."""
        return self._watch.listen(wake)

    def _report_watch(self, sentence: str) -> None:
        also = "" if self._watch.is_polling else "also "
        self.context.log(f"{sentence}. It is {also}scanned every {self.rescan_seconds:g} seconds.")

    # ------------------------------------------------------------------------------------------------ reporting

    def notices(self) -> Iterator[str]:
        """Yield sentences on the files that the last scan skipped."""
        found = self._state.found
        if found.unmatched:
            yield found.unmatched_sentence
        if found.skipped:
            yield describe_skipped(found.skipped)

    def count_waiting(self) -> Mapping[WaitingReason, int]:
        """Return the number of files that the last scan left unread, by reason."""
        return {reason: len(names) for reason, names in self._state.waiting.items()}

    def list_waiting(self, limit: int) -> Sequence[WaitingFile]:
        """Return why these files wait, at most ``limit``."""
        return explain_waiting(self._state, limit)

    def verify(self) -> Iterator[Step]:
        """Check whether the folder and the archive can be used as configured, and what the folder holds."""
        try:
            with translate_errors(self._folder):
                yield from run_checks(self._state, self._archiver)
        except SourceUnavailable as error:
            yield Step(name="folder", outcome="failed", sentence=str(error))

    def explain(self, name: str, cursor: Cursor | None = None) -> str | None:
        """Return why a file is not read as it is now; None if nothing prevents it."""
        try:
            with translate_errors(self._folder):
                return explain_file(self._state, name, cursor)
        except SourceUnavailable as error:
            return str(error)

    def locate(self, path: Path) -> str | None:
        """Return the name of the file to which a path belongs; see `connectors.directory.location.locate`."""
        with translate_errors(self._folder):
            located = locate(path, self._folder, self._archiver, self.options)
        return readable_name(located) if located is not None else None

    def describe_location(self, name: str, cursor: Cursor) -> str:
        """Return where the file is that was read up to ``cursor``."""
        with translate_errors(self._folder):
            return describe_location(name, cursor, self._folder, self._archiver.archive, self.options)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _exists(path: Path) -> bool:
    """Return True if the path exists.

    Every error except a missing file is raised, because it proves nothing.
    """
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True
