"""The tail of one file of a log: the complete records from the offset in the cursor to the present end of the file."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import msgspec
from msgspec.structs import replace

from connectors.files.identity import Identity
from connectors.formats import RecordChunk
from connectors.formats.compression import UNPACKING_ERRORS, is_disk_error, open_unpacked
from connectors.log.cursor import NO_COLUMNS, CursorPart, LogColumns
from connectors.log.folder import LogFolder
from connectors.log.followed_files import FollowedFiles, Prefix, read_prefix
from connectors.log.pending_line import PendingLines
from connectors.log.rotation import FilesChanging, MatchedFile
from connectors.log.rows import GrowableFormat, RowReader, create_row_reader, parse_top
from ingestd.sdk import SourceBroken
from ingestd.sdk.formats.record_chunk import BLOCK_BYTES, RECORD_BYTES

_GRANULARITY_SECONDS = 2
"""The resolution of file times on some file systems. Two writes within this time may set the same file time."""


class TailStep(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a reading. ``part``, ``row``: the state after the step. ``chunk``: None if no record was read."""

    part: CursorPart
    row: int
    chunk: RecordChunk | None = None


class PackedFileDamaged(Exception):
    """A packed file can't be unpacked to its end. The message is the reason. Rows that were read before are valid."""


class LogFollower(msgspec.Struct, kw_only=True):
    """Reads new records of the files of one log.

    ``columns``: the columns of the last header that was read. ``pending``: the last lines that wait for a line end.
    """

    log: str
    folder: LogFolder
    followed: FollowedFiles
    file_format: GrowableFormat
    pending: PendingLines
    columns: LogColumns = NO_COLUMNS

    def follow(self, matched: MatchedFile, identity: Identity, row: int) -> Iterator[TailStep]:
        """Yield the new records. ``row``: the number of the log's rows before these records.

        Raises:
            FilesChanging: the file was replaced or truncated during the reading.
            SourceBroken: the beginning of the file can't be read.
            PackedFileDamaged: the file can't be unpacked, or is still being packed.
        """
        part, name = matched.part, matched.name
        is_old = time.time() - identity.mtime_ns / 1e9 > _GRANULARITY_SECONDS
        if part.is_unchanged(identity) and (part.packed or is_old):
            return
        file = self.folder.open(name, identity)
        if file is None:
            raise FilesChanging
        with file:
            if part.packed:
                yield from self._follow_packed(file, part, name, row)
                return
            prefix = self.followed.prefix(part, file)
            if prefix is None:
                raise FilesChanging
            yield from _TailPass(self, file, cast("BinaryIO", file), prefix, name).steps(part, row)

    def _follow_packed(self, file: io.FileIO, part: CursorPart, name: str, row: int) -> Iterator[TailStep]:
        try:
            stream = open_unpacked(cast("BinaryIO", file), name)
            prefix = read_prefix(stream, part.offset)
            if prefix is None or (part.offset and prefix.sha256 != part.sha256):
                raise FilesChanging
            yield from _TailPass(self, file, stream, prefix, name).steps(part, row)
        except UNPACKING_ERRORS as error:
            if is_disk_error(error):
                raise
            raise PackedFileDamaged(str(error) or type(error).__name__) from error


class _TailPass:
    """One reading of one file. ``stream``: the file itself, or its unpacked content."""

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
        """Yield the steps to the present end of the file."""
        first = part
        while True:
            self._fill()
            if not self._buffer:
                break
            left = len(self._buffer)
            if part.top is None:
                part, row = self._read_top(part, row)
            elif part.skips:
                part = self._skip_line(part, self._row_reader(part))
            elif part.skips_lines:
                part, row = self._skip_lines(part, row, self._row_reader(part))
            else:
                for step in self._read_records(part, row, self._row_reader(part)):
                    part, row = step.part, step.row
                    yield step
            if len(self._buffer) == left and self._ended:
                break
        if part.packed:
            part = replace(part, done=True)
        if part != first or part.ctime_ns != self._identity.ctime_ns:
            _, _, size, mtime_ns, ctime_ns, _ = self._identity
            part = replace(part, size=size, mtime_ns=mtime_ns, ctime_ns=ctime_ns)
        yield TailStep(part=part, row=row)

    def _fill(self) -> None:
        """Read the next block of the file into the buffer."""
        if self._ended:
            return
        more = self._stream.read(BLOCK_BYTES)
        self._ended = not more
        self._buffer += more
        if self._stream is self._file and not self._prefix.matches(self._file):
            raise FilesChanging

    def _row_reader(self, part: CursorPart) -> RowReader:
        reader = self._follower.followed.row_reader(part)
        if part.top is not None and (reader is None or reader.top != part.top):
            head = self._read_head(part.top.end)
            reader = create_row_reader(self._follower.file_format, part.top, head, self._name)
            self._use_reader(part, reader)
        if reader is None:
            raise AssertionError("the top of the file is read before its rows")
        return reader

    def _use_reader(self, part: CursorPart, reader: RowReader) -> None:
        self._follower.followed.remember_reader(part, reader)
        self._follower.columns = reader.columns if reader.columns.names else self._follower.columns

    def _read_head(self, end: int) -> bytes:
        """Read and return the first ``end`` bytes of the (unpacked) content again."""
        if self._stream is self._file:
            return os.pread(self._file.fileno(), end, 0)
        with Path(f"/proc/self/fd/{self._file.fileno()}").open("rb") as again:
            stream, head = open_unpacked(again, self._name), b""
            while len(head) < end and (more := stream.read(end - len(head))):
                head += more
        return head

    def _read_top(self, part: CursorPart, row: int) -> tuple[CursorPart, int]:
        """Read the top of the file, if the buffer has all of it. Return the new part and row."""
        follower = self._follower
        top = parse_top(follower.file_format, self._buffer, self._name, follower.columns)
        if top is not None:
            reader = create_row_reader(follower.file_format, top, self._buffer[: top.end], self._name)
            part = replace(self._advance(part, top.end), top=top)
            self._use_reader(part, reader)
            return part, row + top.rows
        if len(self._buffer) > RECORD_BYTES:
            raise SourceBroken(
                f"{self._name}: no header row within its first {RECORD_BYTES} bytes. Is this a CSV file?"
            )
        return part, row

    def _advance(self, part: CursorPart, count: int) -> CursorPart:
        """Remove ``count`` bytes from the start of the buffer, and return the part with the new offset."""
        self._prefix.add(self._buffer[:count])
        self._buffer = self._buffer[count:]
        return replace(part.with_mark(), offset=self._prefix.offset, sha256=self._prefix.sha256, half=0, half_row=0)

    def _skip_line(self, part: CursorPart, reader: RowReader) -> CursorPart:
        """Skip the remaining bytes of a line that was rejected for its size."""
        if end := reader.lines.first_end(self._buffer):
            return replace(self._advance(part, end), skips=False)
        count = len(self._buffer) - len(self._buffer) % reader.lines.width
        return self._advance(part, count) if count else part

    def _skip_lines(self, part: CursorPart, row: int, reader: RowReader) -> tuple[CursorPart, int]:
        """Skip the remaining lines of a record that was rejected for its size, up to the next record."""
        buffer, lines = self._buffer, reader.lines
        next_record = reader.first_length(lines.feed + buffer)  # the buffer may begin with the next record
        count = next_record - lines.width if next_record else lines.last_end(buffer)
        is_over = next_record or (self._ended and not count and (part.rotated or part.packed))
        row += lines.utf8(buffer[:count]).count(b"\n")
        if is_cut := not is_over and not count and len(buffer) > RECORD_BYTES:
            count, row = len(buffer) - len(buffer) % lines.width, row + 1
        part = self._advance(part, count) if count else part
        return replace(part, skips=is_cut, skips_lines=not is_over), row

    def _read_records(self, part: CursorPart, row: int, reader: RowReader) -> Iterator[TailStep]:
        """Yield the complete records of the buffer, or a line that has waited too long for its line end."""
        before = part.half_row if part.half else row
        end = reader.first_length(self._buffer) if part.half else reader.complete_length(self._buffer)
        line = reader.lines.first_end(self._buffer)
        if end:
            chunks = reader.read(self._buffer[:end], before)
            after = self._advance(part, end)
        elif len(self._buffer) > RECORD_BYTES or (
            self._ended and line and not reader.ends_with_next and self._is_overdue(part, quoted=True)
        ):
            if reader.ends_with_next:  # consume all lines: otherwise they would be read again and again
                line = reader.lines.last_end(self._buffer)
            count = line or len(self._buffer) - len(self._buffer) % reader.lines.width
            text = self._buffer[:count]
            if line and not reader.ends_with_next:
                chunks = iter((reader.reject_open_quote(text, before, self._follower.pending.idle_seconds),))
            else:
                chunks = iter((reader.reject_too_large(text, before),))
            after = replace(self._advance(part, count), skips=not line, skips_lines=reader.ends_with_next)
        elif (
            self._ended
            and (not line or reader.ends_with_next)
            and part.half != len(self._buffer)
            and self._is_overdue(part, quoted=False, continues=bool(line))
        ):
            chunks = reader.read(self._buffer, before)
            if not part.rotated and not part.packed:
                found = list(chunks)
                # The record is invalid; it has too few fields, for example. Its end will probably be written later.
                if any(chunk.rejects for chunk in found):
                    self._follower.pending.hold(self._follower.log)
                    return
                chunks = iter(found)
            after = replace(part, half=len(self._buffer), half_row=before)
            if part.packed:  # nothing is appended to a packed file
                after = self._advance(part, len(self._buffer))
        else:
            return
        chunk = next(chunks)
        for following in chunks:  # only the last step advances the offset, past the records of all chunks
            yield TailStep(part=part, row=row, chunk=chunk)
            chunk = following
        after = self._with_columns(part, after, reader)
        yield TailStep(part=after, row=max(row, chunk.end.row), chunk=chunk)

    def _with_columns(self, before: CursorPart, after: CursorPart, reader: RowReader) -> CursorPart:
        """Return ``after`` with the columns of the rows that follow. A repeated header may have changed their order."""
        columns, reader.next_columns = reader.next_columns, reader.columns
        if after.top is None or after.offset == before.offset or columns == reader.columns:
            return after
        self._follower.columns = columns
        return replace(after, top=replace(after.top, columns=columns))

    def _is_overdue(self, part: CursorPart, *, quoted: bool, continues: bool = False) -> bool:
        if part.packed:
            return True
        log, pending = self._follower.log, self._follower.pending
        sentence = ""
        if continues:
            sentence = (
                f"The last record of {log} may continue in the next line; it is read as it is after {pending.idle_seconds:g}"
                " seconds (idle_seconds)."
            )
        return pending.is_overdue(log, part, self._identity, quoted=quoted, sentence=sentence)
