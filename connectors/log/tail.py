"""One file of a log, from where it was left to its present end: whole records, and what becomes of the rest."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, cast

from connectors.files import Identity
from connectors.formats import RecordChunk
from connectors.formats.compression import UNPACKING_ERRORS, open_unpacked
from connectors.formats.record_chunk import BLOCK_BYTES, RECORD_BYTES
from connectors.log.cursor import NO_COLUMNS, CursorPart, LogColumns
from connectors.log.folder import Folder
from connectors.log.followed_files import FollowedFiles
from connectors.log.prefix import Prefix, read_prefix
from connectors.log.rotation import FilesChanging, MatchedFile
from connectors.log.rows import GrowableFormat, RowReader, create_row_reader, parse_top
from ingestd.sdk import SourceBroken

_GRANULARITY_SECONDS = 2
"""The time of a file may stand still for so long although the file is written."""

Patience = Callable[[CursorPart, Identity, bool], bool]
"""Whether what stands at a file's end without an end of its own has waited long enough; the last: inside quotes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TailStep:
    """``part`` and ``row`` after it; ``chunk`` and what read it: None where only the file's beginning or end was passed."""

    part: CursorPart
    row: int
    chunk: RecordChunk | None = None
    rows: RowReader | None = None


class PackedFileDamaged(Exception):
    """A packed file can't be unpacked to its end; the message says why. What was read of it stands."""


class LogFollower:
    """Reads the files of one log on. ``columns``: those of its last header so far."""

    def __init__(
        self,
        folder: Folder,
        memory: FollowedFiles,
        file_format: GrowableFormat,
        *,
        idle_seconds: float,
        patience: Patience,
        columns: LogColumns = NO_COLUMNS,
    ) -> None:
        self.folder = folder
        self.memory = memory
        self.file_format = file_format
        self.idle_seconds = idle_seconds
        self.patience = patience
        self.columns = columns

    def follow(self, found: MatchedFile, identity: Identity, row: int) -> Iterator[TailStep]:
        """What came since; ``row``: how many rows the log had until now.

        Raises:
            FilesChanging: it is another file now, or was cut meanwhile.
            SourceBroken: its beginning can't be read.
            Damaged: it can't be unpacked, or is being packed still.
        """
        part, name = found.part, found.name
        if part.is_quiet(identity) and (part.packed or time.time() - identity.mtime_ns / 1e9 > _GRANULARITY_SECONDS):
            return
        file = self.folder.open(name, identity)
        if file is None:
            raise FilesChanging
        with file:
            if part.packed:
                yield from self._packed(file, part, name, row)
                return
            prefix = self.memory.prefix(part, file)
            if prefix is None:
                raise FilesChanging
            yield from _TailPass(self, file, cast("BinaryIO", file), prefix, name).steps(part, row)

    def _packed(self, file: io.FileIO, part: CursorPart, name: str, row: int) -> Iterator[TailStep]:
        try:
            stream = open_unpacked(cast("BinaryIO", file), name)
            prefix = read_prefix(stream, part.offset)
            if prefix is None or (part.offset and prefix.sha256 != part.sha256):
                raise FilesChanging
            yield from _TailPass(self, file, stream, prefix, name).steps(part, row)
        except UNPACKING_ERRORS as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise PackedFileDamaged(str(error) or type(error).__name__) from error


class _TailPass:
    """One reading of one file. ``stream`` is the file, or what is inside it."""

    def __init__(self, follower: LogFollower, file: io.FileIO, stream: BinaryIO, prefix: Prefix, name: str) -> None:
        self._follower = follower
        self._file = file
        self._stream = stream
        self._prefix = prefix
        self._name = name
        self._identity = Identity.from_status(os.fstat(file.fileno()))
        self._buffer = b""
        self._ended = False

    def steps(self, part: CursorPart, row: int) -> Iterator[TailStep]:
        """To the present end."""
        begun = part
        while True:
            self._fill()
            if not self._buffer:
                break
            left = len(self._buffer)
            if part.top is None:
                part, row = self._begin(part, row)
            elif part.skips:
                part = self._skip(part, self._rows(part))
            else:
                for step in self._records(part, row, self._rows(part)):
                    part, row = step.part, step.row
                    yield step
            if len(self._buffer) == left and self._ended:
                break
        if part.packed:
            part = replace(part, done=True)
        if part != begun:
            part = replace(part, size=self._identity.size, mtime_ns=self._identity.mtime_ns)
        yield TailStep(part=part, row=row)

    def _fill(self) -> None:
        """Read more; nothing that is handed over comes from a file that was cut and has grown again."""
        if self._ended:
            return
        more = self._stream.read(BLOCK_BYTES)
        self._ended = not more
        self._buffer += more
        if self._stream is self._file and not self._prefix.stands(self._file):
            raise FilesChanging

    def _rows(self, part: CursorPart) -> RowReader:
        rows = self._follower.memory.rows(part)
        if rows is None and part.top is not None:
            rows = create_row_reader(self._follower.file_format, part.top, self._head(part.top.end), self._name)
            self._read_by(part, rows)
        if rows is None:
            raise AssertionError("the file's beginning was read before its rows")
        return rows

    def _read_by(self, part: CursorPart, rows: RowReader) -> None:
        self._follower.memory.read_by(part, rows)
        self._follower.columns = rows.columns if rows.columns.names else self._follower.columns

    def _head(self, end: int) -> bytes:
        """The file's first bytes once more."""
        if self._stream is self._file:
            return os.pread(self._file.fileno(), end, 0)
        with Path(f"/proc/self/fd/{self._file.fileno()}").open("rb") as again:
            stream, head = open_unpacked(again, self._name), b""
            while len(head) < end and (more := stream.read(end - len(head))):
                head += more
        return head

    def _begin(self, part: CursorPart, row: int) -> tuple[CursorPart, int]:
        """Pass over the beginning of the file, once all of it is there."""
        top = parse_top(self._follower.file_format, self._buffer, self._name, self._follower.columns)
        if top is not None:
            rows = create_row_reader(self._follower.file_format, top, self._buffer[: top.end], self._name)
            part = replace(self._passed(part, top.end), top=top)
            self._read_by(part, rows)
            return part, row + top.rows
        if len(self._buffer) > RECORD_BYTES:
            raise SourceBroken(
                f"{self._name}: no header row within its first {RECORD_BYTES} bytes. Is this a CSV file?"
            )
        return part, row

    def _passed(self, part: CursorPart, count: int) -> CursorPart:
        """We are through with so many bytes of the buffer."""
        self._prefix.add(self._buffer[:count])
        self._buffer = self._buffer[count:]
        return replace(part.marked(), offset=self._prefix.offset, sha256=self._prefix.sha256, half=0, half_row=0)

    def _skip(self, part: CursorPart, rows: RowReader) -> CursorPart:
        """Pass over the rest of a line that was parked for its size."""
        if end := rows.lines.first_end(self._buffer):
            return replace(self._passed(part, end), skips=False)
        count = len(self._buffer) - len(self._buffer) % rows.lines.width
        return self._passed(part, count) if count else part

    def _records(self, part: CursorPart, row: int, rows: RowReader) -> Iterator[TailStep]:
        """The whole records of the buffer, or what has waited for its end too long."""
        before = part.half_row if part.half else row
        end = rows.first(self._buffer) if part.half else rows.complete(self._buffer)
        line = rows.lines.first_end(self._buffer)
        if end:
            chunks = rows.read(self._buffer[:end], before)
            after = self._passed(part, end)
        elif len(self._buffer) > RECORD_BYTES or (self._ended and line and self._is_over(part, quoted=True)):
            count = line or len(self._buffer) - len(self._buffer) % rows.lines.width
            text = self._buffer[:count]
            parked = rows.stray(text, before, self._follower.idle_seconds) if line else rows.too_large(text, before)
            chunks = iter((parked,))
            after = replace(self._passed(part, count), skips=not line)
        elif self._ended and not line and part.half != len(self._buffer) and self._is_over(part, quoted=False):
            chunks = rows.read(self._buffer, before)
            after = replace(part, half=len(self._buffer), half_row=before)
            if part.packed:  # nothing will be written behind it
                after = self._passed(part, len(self._buffer))
        else:
            return
        chunk = next(chunks)
        for following in chunks:  # all of these records are passed together
            yield TailStep(part=part, row=row, chunk=chunk, rows=rows)
            chunk = following
        yield TailStep(part=after, row=max(row, chunk.end.row), chunk=chunk, rows=rows)

    def _is_over(self, part: CursorPart, *, quoted: bool) -> bool:
        return part.packed or self._follower.patience(part, self._identity, quoted)
