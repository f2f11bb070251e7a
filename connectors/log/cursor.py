"""The cursor of a log: its files, the oldest first, and how far each file was read. Performs no I/O."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from connectors.files.identity import Identity
from ingestd.sdk import Cursor

_MARKS = 16
_LOST = 16
"""The maximum number of lost files in a cursor. A lost file may appear again under another name, or packed."""


class LogColumns(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The columns of a log and their units, according to the last header that was read."""

    names: tuple[str, ...] = ()
    units: tuple[tuple[str, str], ...] = ()


NO_COLUMNS = LogColumns()


class FileTop(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The top of a file: its encoding, its dialect, and everything before the first record.

    ``end`` and ``rows``: the length of the top in bytes and in rows. ``columns``: the columns of the rows that follow, if they
    are not in the file's header. Either the file has no header (because it was truncated, for example), or a later row named
    the columns in another order. ``guessed``: the encoding is a guess.
    """

    encoding: str
    delimiter: str = ""
    header_row: int = 0
    end: int = 0
    rows: int = 0
    columns: LogColumns = NO_COLUMNS
    guessed: bool = False


class CursorPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One file of a log. Stored cursors contain the field names, so the names must not change.

    ``size``, ``mtime_ns`` and ``ctime_ns``: the file's status at the last reading.
    ``offset`` and ``sha256``: the number of bytes that were read, and their hash. ``marks``: earlier pairs of offset and hash.
    ``half``: the number of bytes after ``offset`` that were read as a line without a line end. This line is the row after
    ``half_row``.
    ``skips``: the bytes up to the next line end belong to a line that was rejected for its size. ``skips_lines``: the lines up
    to the next record belong to a record that was rejected for its size.
    ``rotated``: the file is no longer written. ``lost``: the file was not found, and this was reported.
    ``packed``: the file is packed, and offsets count unpacked bytes. ``done``: the file was unpacked to its end.
    """

    device: int
    inode: int
    size: int = 0
    mtime_ns: int = 0
    ctime_ns: int = 0
    offset: int = 0
    sha256: str = ""
    top: FileTop | None = None
    half: int = 0
    half_row: int = 0
    skips: bool = False
    skips_lines: bool = False
    rotated: bool = False
    packed: bool = False
    done: bool = False
    lost: bool = False
    marks: tuple[tuple[int, str], ...] = ()

    @property
    def id(self) -> tuple[int, int]:
        """Device and inode of the file."""
        return self.device, self.inode

    @property
    def has_rows(self) -> bool:
        """True if a record was read. The header alone does not identify a file, because many files have the same header."""
        return self.top is not None and self.offset > self.top.end

    @property
    def is_complete(self) -> bool:
        """True if the file was read to its end and is no longer written."""
        return self.rotated and (self.done if self.packed else self.offset + self.half == self.size)

    def is_unchanged(self, identity: Identity) -> bool:
        """Return True if the file's status shows that all content was read."""
        if (self.size, self.mtime_ns) != (identity.size, identity.mtime_ns):
            return False
        # A packed file is not written again. Its ctime is not compared, because a rename changes the ctime.
        if self.packed:
            return self.done
        return self.ctime_ns == identity.ctime_ns and self.offset + self.half == identity.size

    def move_to(self, identity: Identity, *, packed: bool, offset: int, sha256: str) -> CursorPart:
        """Return the part for a different file with the same content. ``offset``: how many of its bytes were read already."""
        is_whole = offset == self.offset
        return replace(
            self,
            device=identity.device,
            inode=identity.inode,
            size=0,
            mtime_ns=0,
            ctime_ns=0,
            packed=packed,
            done=False,
            lost=False,
            offset=offset,
            sha256=sha256,
            skips=self.skips and is_whole,
            skips_lines=self.skips_lines and is_whole,
            half=self.half if is_whole else 0,
            half_row=self.half_row if is_whole else 0,
            marks=tuple(mark for mark in self.marks if mark[0] < offset),
        )

    def with_mark(self) -> CursorPart:
        """Return the part with its present offset and hash as a new mark. If there are too many, drop some old marks."""
        marks = [*self.marks, (self.offset, self.sha256)] if self.has_rows else list(self.marks)
        if len(marks) > _MARKS:
            del marks[: _MARKS // 2 : 2]
        return replace(self, marks=tuple(marks))


class LogCursor(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a log's cursor.

    ``rows``: the number of rows that were read in all files. ``parts``: the files, the oldest first. ``columns``: the columns
    of the last header.
    """

    rows: int = 0
    parts: tuple[CursorPart, ...] = msgspec.field(default=(), name="files")
    columns: LogColumns = NO_COLUMNS

    def to_token(self) -> dict[str, object]:
        """Return the cursor as JSON values."""
        token: dict[str, object] = msgspec.json.decode(msgspec.json.encode(self))
        if not self.columns.names:
            del token["columns"]
        return token

    def bounded(self) -> LogCursor:
        """Return the cursor with at most `_LOST` lost files. The oldest lost files are dropped."""
        lost = [part for part in self.parts if part.lost]
        forgotten = {part.id for part in lost[:-_LOST]}
        return replace(self, parts=tuple(part for part in self.parts if not (part.lost and part.id in forgotten)))


def read_log_cursor(cursor: Cursor | None) -> LogCursor:
    """Return the content of a cursor; the start of the log if there is no cursor, or if this connector can't read it."""
    try:
        return msgspec.convert(dict(cursor or {}), LogCursor)
    except msgspec.ValidationError:
        return LogCursor()
