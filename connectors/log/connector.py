"""The log connector: continues each log at the cursor, even if files were renamed since the last reading."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

from connectors.files.file_batches import NoticeLog, read_sample_file
from connectors.files.identity import Identity
from connectors.filesystem import describe_error, real_path
from connectors.folder_watch import FolderWatch
from connectors.formats import format_settings, resolve_format
from connectors.log.checks import run_checks
from connectors.log.cursor import CursorPart, LogCursor, read_log_cursor
from connectors.log.folder import LogFolder
from connectors.log.followed_files import FollowedFiles
from connectors.log.names import NAME, LogNames
from connectors.log.options import LogOptions
from connectors.log.pending_line import PendingLines
from connectors.log.rotation import FileMatcher, FilesChanging, LogFiles
from connectors.log.rows import GrowableFormat, growable_format
from connectors.log.tail import LogFollower, PackedFileDamaged
from ingestd.sdk import (
    Batch,
    Connector,
    Cursor,
    FileClaim,
    Partition,
    SourceBroken,
    SourceContext,
    SourceUnavailable,
    Step,
    mark_last,
)


class LogConnector(Connector):
    """Files that grow. Each log with its rotated files is a partition, named like the log's file."""

    Options: ClassVar[type[LogOptions]] = LogOptions
    options: LogOptions

    def __init__(self, options: LogOptions, context: SourceContext) -> None:
        super().__init__(options, context)
        self._names = LogNames(options.patterns, options.rotations, case_sensitive=options.case_sensitive)
        self._folder = LogFolder(context.base / options.path, self._names)
        self._followed: dict[str, FollowedFiles] = {}
        self._cursors: dict[str, tuple[Cursor | None, LogCursor]] = {}
        self._pending = PendingLines(options.idle_seconds, context)
        self._notices = NoticeLog(context.log)
        self._watch = FolderWatch(
            self._folder.path, mode=options.watch, report=lambda sentence: context.log(f"{sentence}.")
        )

    @classmethod
    def claims(cls, options: LogOptions, base: Path) -> Sequence[FileClaim]:
        """Return the claim on the logs and their rotated files. The source removes none of these files."""
        rotated = [glob.replace(NAME, log) for glob in options.rotations for log in options.patterns]
        patterns = (*options.patterns, *rotated, *(f"{glob}.*" for glob in rotated))
        return [FileClaim(folder=os.path.realpath(base / options.path), patterns=tuple(dict.fromkeys(patterns)))]

    @property
    def record_settings(self) -> Mapping[str, Any]:
        """The settings that decide how a log is read: its format."""
        return format_settings(self.options.format)

    def partitions(self) -> Iterable[Partition]:
        """Return the partitions of the logs that have at least one file. This may be a rotated file."""
        self._watch.rearm()
        logs = self._names.logs(self._folder.files())
        for removed in self._followed.keys() - set(logs):
            del self._followed[removed]
            self._cursors.pop(removed, None)
        self._pending.keep_only(logs)
        return [Partition(name=log, snapshot=False) for log in logs]

    def holds(self, name: str) -> bool:
        """Return True if a file of the log exists. A rotated file is sufficient."""
        return name in self._names.logs(self._folder.files())

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:
        """Yield the complete records after ``cursor``: first of the rotated files, then of the current file."""
        log = partition.name
        self._pending.reset(log)
        yield from mark_last(self._batches(log, cursor))

    def _batches(self, log: str, cursor: Cursor | None) -> Iterator[Batch]:
        """Yield the rows that can be read now. End if a file is renamed or truncated; the log is then read again soon."""
        try:
            yield from self._read(log, cursor)
        except FilesChanging:
            self._pending.retry_soon(log)
        except OSError as error:
            raise SourceUnavailable(f"{log} in {self._folder.path} can't be read: {describe_error(error)}") from error

    def _read(self, log: str, cursor: Cursor | None) -> Iterator[Batch]:
        followed = self._followed.setdefault(log, FollowedFiles())
        known, log_cursor = self._cursors.get(log, (None, LogCursor()))
        if cursor is None or cursor != known:
            log_cursor = read_log_cursor(cursor)
        matched = FileMatcher(self._folder, self._names, followed).match(log, log_cursor)
        followed.keep_only({file.part.id for file in matched.files})
        if matched.lost is not None:
            self._report_lost(log, matched.lost)
        for batch, now in self._read_files(log, matched, log_cursor, followed):
            if batch is None:
                self._cursors[log] = (cursor, now)
                return
            cursor = batch.cursor
            yield batch

    def _read_files(
        self, log: str, matched: LogFiles, log_cursor: LogCursor, followed: FollowedFiles
    ) -> Iterator[tuple[Batch | None, LogCursor]]:
        """Yield each batch with the cursor after the batch. At the end, yield None with the final cursor."""
        identities = self._folder.files()
        row = log_cursor.rows
        parts = [file.part for file in matched.files]
        follower = LogFollower(
            log=log,
            folder=self._folder,
            followed=followed,
            file_format=self._format_for(log),
            pending=self._pending,
            columns=log_cursor.columns,
        )
        for at, file in enumerate(matched.files):
            identity = identities.get(file.name)
            if identity is None or identity[:2] != file.part.id:
                if file.name:
                    raise FilesChanging
                continue
            if identity in followed.damaged:
                continue
            try:
                for step in follower.follow(file, identity, row):
                    parts[at], row = step.part, step.row
                    now = LogCursor(rows=row, parts=_started(parts), columns=follower.columns).bounded()
                    if step.chunk is not None:
                        self._notices.add(log, step.chunk.facts)
                        yield step.chunk.to_batch(now.to_token(), _facts(log, file.name, identity)), now
            except PackedFileDamaged as error:
                sentence = (
                    f"{file.name} can't be unpacked to its end yet. {log} is read on once the file can be unpacked, or after"
                    f" {self.options.idle_seconds:g} seconds without that file (idle_seconds)."
                )
                if not self._pending.is_overdue(log, file.part, identity, sentence=sentence):
                    break  # the later files are read only after this file
                followed.damaged.add(identity)
                self.context.log(
                    f"{file.name} in {self._folder.path} can't be unpacked to its end ({error}), so its rows that were not read"
                    f" before are missing. Pack it again from a good copy; {log} is read on."
                )
        yield None, LogCursor(rows=row, parts=_started(parts), columns=follower.columns).bounded()

    def read_sample(self, path: Path) -> Iterator[Batch]:
        """Yield all records of a file, read with the source's format, for `ingestd test`."""
        return read_sample_file(path, resolve_format(path.name, self.options.format), notices=self._notices)

    def _format_for(self, log: str) -> GrowableFormat:
        return growable_format(log, self.options.format)

    def _report_lost(self, log: str, lost: CursorPart) -> None:
        self.context.log(
            f"{log} no longer begins with the {lost.offset} bytes that were read of it, and no rotated file in"
            f" {self._folder.path} does. It is read from its start. Lines that were written after the last"
            " reading and before the file"
            " was cut or replaced are missed. Keep rotated files in the folder, under names that the setting rotated matches."
        )

    def reset(self) -> None:
        """Forget which content of the files was read, so that the files are compared with the cursor again."""
        self._followed.clear()
        self._cursors.clear()

    def waiting(self) -> float | None:
        """Return the seconds until the next wait of a log ends (for a line end, for example); None if no log waits."""
        return self._pending.next_seconds()

    @property
    def rescan_seconds(self) -> float:
        """The interval of readings. A change without an event is detected after this time at the latest."""
        return self._watch.interval(self.options.poll_seconds, self.options.rescan_seconds)

    def watch(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        """Call ``wake`` at every event in the folder, and when the folder appears."""
        return self._watch.listen(wake)

    def verify(self) -> Iterable[Step]:
        """Check that the folder can be read, and report its logs and rotated files."""
        return run_checks(self._folder, self._names, self.options, self._format_for)

    def explain(self, name: str, cursor: Cursor | None = None) -> str | None:
        """Return why the present content of a log is not read, or not completely; None if no content waits."""
        try:
            files: Mapping[str, Identity] = self._folder.files()
        except SourceUnavailable as error:
            return str(error)
        current = self._names.current(name, files)
        if (link := {**self._folder.unread, **self._folder.repeated}.get(name)) is not None:
            return link
        if current not in files or self._names.log_of(current) != name:
            return None
        try:
            self._format_for(name)
        except SourceBroken as error:
            return str(error)
        is_empty = not files[current].size
        state = "is empty" if is_empty else "has no whole row yet, or was not examined yet"
        unread = f"{name} {state}; its rows are read as they are written."
        return self._pending.sentence(name) or (unread if cursor is None or is_empty else None)

    def notices(self) -> Iterable[str]:
        """Return a sentence for each link that has the name of a log and is not read."""
        return self._folder.unread.values()

    def locate(self, path: Path) -> str | None:
        """Return the log to which the file ``path`` belongs; None if the file is in another folder or belongs to no log."""
        for spelled, folder in (
            (path, self._folder.path.absolute()),
            (real_path(path.parent), real_path(self._folder.path)),
        ):
            if (spelled if spelled == folder else spelled.parent) == folder:
                return self._names.log_of(self._folder.link_to(path.name))
        return None

    def describe_location(self, name: str, cursor: Cursor) -> str:  # noqa: ARG002 - a log stays in its folder
        """Return the end of a sentence that states the location of the log."""
        return f"it stays in {self._folder.path} and is read on as it grows"


def _started(parts: Iterable[CursorPart]) -> tuple[CursorPart, ...]:
    """Return the parts in which at least one byte was read."""
    return tuple(part for part in parts if part.offset or part.half)


def _facts(log: str, name: str, identity: Identity) -> dict[str, str]:
    path = PurePosixPath(log)
    modified = datetime.fromtimestamp(identity.mtime_ns // 10**9, UTC)
    return {
        "file.name": path.name,
        "file.stem": path.stem,
        "file.path": log,
        "file.read_from": name,
        "file.mtime": modified.isoformat(),
    }
