"""The log connector: an event wakes a look at each log, which is read on from where it was left, whatever was renamed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import ClassVar

from connectors.files import Identity
from connectors.files.notices import NoticeLog
from connectors.filesystem import cause, real_path
from connectors.folder_watch import Watching
from connectors.formats import format_of
from connectors.log.checks import steps
from connectors.log.cursor import CursorPart, LogCursor, log_cursor_of
from connectors.log.folder import Folder
from connectors.log.followed_files import FollowedFiles
from connectors.log.names import NAME, Names
from connectors.log.options import LogOptions
from connectors.log.pending_line import PendingLine
from connectors.log.rotation import Arrangement, FileMatcher, FilesChanging
from connectors.log.rows import Growing, growing
from connectors.log.tail import Damaged, Follower, TailStep
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
)


class LogConnector(Connector):
    """Files that grow. A partition is a log, named by its file, with its rotated files; it tells what is new."""

    Options: ClassVar[type[LogOptions]] = LogOptions
    options: LogOptions

    def __init__(self, options: LogOptions, context: SourceContext) -> None:
        super().__init__(options, context)
        self._folder = Folder(context.base / options.path)
        self._names = Names(options.patterns, options.rotations)
        self._memories: dict[str, FollowedFiles] = {}
        self._trails: dict[str, tuple[Cursor | None, LogCursor]] = {}
        self._waiting = PendingLine(options.idle_seconds, context.now)
        self._notices = NoticeLog(context.log)
        self._watching = Watching(
            self._folder.path, recursive=False, how=options.watch, tell=lambda text: context.log(f"{text}.")
        )

    @classmethod
    def claims(cls, options: LogOptions, base: Path) -> Sequence[FileClaim]:
        """The logs and their rotated files; all of them stay."""
        rotated = [glob.replace(NAME, log) for glob in options.rotations for log in options.patterns]
        patterns = (*options.patterns, *rotated, *(f"{glob}.*" for glob in rotated))
        return [FileClaim(folder=os.path.realpath(base / options.path), patterns=tuple(dict.fromkeys(patterns)))]

    def partitions(self) -> Iterable[Partition]:
        """The logs of which there is a file, be it an older one."""
        self._watching.rearm()
        logs = self._names.logs(self._folder.files())
        for gone in self._memories.keys() - set(logs):
            del self._memories[gone]
            self._trails.pop(gone, None)
        self._waiting.keep_only(logs)
        return [Partition(name=log, snapshot=False) for log in logs]

    def holds(self, name: str) -> bool:
        """Whether there is a file of the log, be it an older one."""
        return name in self._names.logs(self._folder.files())

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:
        """What was written since ``cursor``, in whole records: first to what is a rotated file by now, then to the log."""
        log = partition.name
        self._waiting.look(log)
        try:
            yield from self._read(log, cursor)
        except FilesChanging:
            self._waiting.again_soon(log)
        except OSError as error:
            raise SourceUnavailable(f"{log} in {self._folder.path} can't be read: {cause(error)}") from error

    def _read(self, log: str, cursor: Cursor | None) -> Iterator[Batch]:
        memory = self._memories.setdefault(log, FollowedFiles())
        known, trail = self._trails.get(log, (None, LogCursor()))
        if cursor is None or cursor != known:
            trail = log_cursor_of(cursor)
        arrangement = FileMatcher(self._folder, self._names, memory).arrange(log, trail)
        memory.keep_only({found.part.id for found in arrangement.found})
        if arrangement.missed is not None:
            self._tell(log, arrangement.missed)
        held: Batch | None = None
        for batch, now in self._batches(log, arrangement, trail, memory):
            if batch is None:
                self._trails[log] = (held.cursor if held is not None else cursor, now)
                break
            if held is not None:
                yield held
            held = batch
        if held is not None:
            yield replace(held, last=True)

    def _batches(
        self, log: str, arrangement: Arrangement, trail: LogCursor, memory: FollowedFiles
    ) -> Iterator[tuple[Batch | None, LogCursor]]:
        """Each batch with the trail after it; at the end None with how things are then."""
        files = self._folder.files()
        row, columns = trail.rows, trail.columns
        parts = [found.part for found in arrangement.found]
        follower = Follower(
            self._folder,
            memory,
            self._form(log),
            idle_seconds=self.options.idle_seconds,
            patience=self._patience(log),
            columns=columns,
        )
        for at, found in enumerate(arrangement.found):
            identity = files.get(found.name)
            if identity is None or identity[:2] != found.part.id:
                if found.name:
                    raise FilesChanging
                continue
            if identity in memory.damaged:
                continue
            try:
                for step in follower.follow(found, identity, row):
                    parts[at], row = step.part, step.row
                    now = LogCursor(rows=row, parts=_begun(parts), columns=follower.columns).bounded()
                    if step.stretch is not None and step.rows is not None:
                        self._notices.log(log, step.rows.facts)
                        yield self._batch(log, found.name, identity, step, now), now
            except Damaged as error:
                packing = (
                    f"{found.name} can't be unpacked to its end yet; {log} is read on once it can, or is left alone."
                )
                if not self._waiting.is_over(log, found.part, identity, sentence=packing):
                    break  # what follows it comes after it
                memory.damaged.add(identity)
                self.context.log(
                    f"{found.name} in {self._folder.path} can't be unpacked to its end ({error}), so what is in it and was not"
                    f" read before is missing. Pack it again from a good copy; {log} is read on."
                )
        yield None, LogCursor(rows=row, parts=_begun(parts), columns=follower.columns).bounded()

    def _batch(self, log: str, name: str, identity: Identity, step: TailStep, trail: LogCursor) -> Batch:
        if step.stretch is None or step.rows is None:
            raise AssertionError("only what was read becomes a batch")
        stretch = step.stretch
        path = PurePosixPath(log)
        modified = datetime.fromtimestamp(identity.mtime_ns // 10**9, UTC)
        facts = {
            "file.name": path.name,
            "file.stem": path.stem,
            "file.path": log,
            "file.read_from": name,
            "file.mtime": modified.isoformat(),
            **step.rows.facts,
        }
        return Batch(
            records=stretch.records,
            positions=stretch.positions,
            cursor=trail.token(),
            facts=facts,
            rejects=stretch.rejects,
            header=stretch.header,
        )

    def _form(self, log: str) -> Growing:
        return growing(format_of(log, self.options.format), log)

    def _patience(self, log: str) -> Callable[[CursorPart, Identity, bool], bool]:
        return lambda part, identity, quoted: self._waiting.is_over(log, part, identity, quoted=quoted)

    def _tell(self, log: str, missed: CursorPart) -> None:
        self.context.log(
            f"{log} does not begin any more with the {missed.offset} bytes that were read of it, and no rotated file in"
            f" {self._folder.path} does. It is read from its start; what was written before it was cut or replaced, and after"
            " the last look, is missed. Let rotated files stay in the folder under names that the setting rotated matches."
        )

    def again(self) -> None:
        """Find out anew what each file holds."""
        self._memories.clear()
        self._trails.clear()

    def waiting(self) -> float | None:
        """Seconds until a last line without end has waited long enough; None where none does."""
        return self._waiting.seconds()

    @property
    def rescan_seconds(self) -> float:
        """How long at the most a missed event goes unnoticed."""
        return self._watching.interval(self.options.poll_seconds, self.options.rescan_seconds)

    def watch(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        """Wake on every event in the folder, also once it appears or comes back."""
        return self._watching.listen(wake)

    def verify(self) -> Iterable[Step]:
        """Whether the folder can be read, which logs there are, and which files count as older ones."""
        return steps(self._folder, self._names, self.options, self._form)

    def explain(self, name: str, cursor: Cursor | None = None) -> str | None:
        """Why what is in the log's files is not read as it is now."""
        try:
            files: Mapping[str, Identity] = self._folder.files()
        except SourceUnavailable as error:
            return str(error)
        if name not in files or not self._names.is_log(name):
            return None
        try:
            self._form(name)
        except SourceBroken as error:
            return str(error)
        nothing = "is empty" if not files[name].size else "has no whole row yet, or was not looked at yet"
        unread = f"{name} {nothing}; its rows are read as they are written."
        return self._waiting.sentence(name) or (unread if cursor is None or not files[name].size else None)

    def locate(self, path: Path) -> str | None:
        """The log to which a file of the folder belongs."""
        for spelled, folder in (
            (path, self._folder.path.absolute()),
            (real_path(path.parent), real_path(self._folder.path)),
        ):
            if (spelled if spelled == folder else spelled.parent) == folder:
                return self._names.log_of(path.name)
        return None

    def describe_location(self, name: str, cursor: Cursor) -> str:  # noqa: ARG002 - a log is followed where it is
        """That it stays and is followed."""
        return f"it stays in {self._folder.path} and is read on as it grows"


def _begun(parts: Iterable[CursorPart]) -> tuple[CursorPart, ...]:
    """Those of which something was read: of the others there is nothing to know."""
    return tuple(part for part in parts if part.offset or part.half)
