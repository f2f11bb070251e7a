"""How far a log was read: its files, oldest first, each with its position. This is what a cursor holds. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from connectors.files import Identity
from ingestd.sdk import Cursor

_MARKS = 16
_LOST = 16
"""So many files that are not found any more are remembered, should one come back under another name or packed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogColumns:
    """The columns of a log as its last header named them, with their units."""

    names: tuple[str, ...] = ()
    units: tuple[tuple[str, str], ...] = ()


NO_COLUMNS = LogColumns()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTop:
    """How a file is written, as its beginning told, and how long that beginning is: in bytes, and in rows.

    ``columns``: those of the log's earlier files, if the file begins with a record, as one that was cut does. ``guessed``: the
    encoding is a guess.
    """

    encoding: str
    delimiter: str = ""
    header_row: int = 0
    end: int = 0
    rows: int = 0
    columns: LogColumns = NO_COLUMNS
    guessed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorPart:
    """One file of a log.

    ``size`` and ``mtime_ns`` are those at its last reading. Everything before ``offset`` was read, ``sha256`` is its hash;
    ``marks`` are earlier such pairs. ``half``: so many bytes behind it were taken as a line without end, the row after
    ``half_row``. ``skips``: what comes up to the next line's end belongs to a line that was parked for its size.
    ``rotated``: it is no longer the one that is written. ``packed``: it is read unpacked, offsets are those of what is
    inside; ``done``: to its end. ``lost``: it was not found, and that was said.
    """

    device: int
    inode: int
    size: int = 0
    mtime_ns: int = 0
    offset: int = 0
    sha256: str = ""
    top: FileTop | None = None
    half: int = 0
    half_row: int = 0
    skips: bool = False
    rotated: bool = False
    packed: bool = False
    done: bool = False
    lost: bool = False
    marks: tuple[tuple[int, str], ...] = ()

    @property
    def id(self) -> tuple[int, int]:
        """Device and inode."""
        return self.device, self.inode

    @property
    def has_rows(self) -> bool:
        """Whether more was read of it than its header, which is that of other files, too."""
        return self.top is not None and self.offset > self.top.end

    @property
    def is_through(self) -> bool:
        """Whether it was read to the end that it will keep."""
        return self.rotated and (self.done if self.packed else self.offset + self.half == self.size)

    def is_quiet(self, identity: Identity) -> bool:
        """Whether nothing suggests that there is more in the file than was read."""
        same = (self.size, self.mtime_ns) == (identity.size, identity.mtime_ns)
        return same and (self.done if self.packed else self.offset + self.half == identity.size)

    def moved(self, identity: Identity, *, packed: bool, offset: int, sha256: str) -> CursorPart:
        """The same content in another file; ``offset`` is less where that holds less."""
        all_of_it = offset == self.offset
        return replace(
            self,
            device=identity.device,
            inode=identity.inode,
            size=0,
            mtime_ns=0,
            packed=packed,
            done=False,
            lost=False,
            offset=offset,
            sha256=sha256,
            skips=self.skips and all_of_it,
            half=self.half if all_of_it else 0,
            half_row=self.half_row if all_of_it else 0,
            marks=tuple(mark for mark in self.marks if mark[0] < offset),
        )

    def marked(self) -> CursorPart:
        """With its present position among the marks: the latest ones, and fewer the farther back."""
        marks = [*self.marks, (self.offset, self.sha256)] if self.has_rows else list(self.marks)
        if len(marks) > _MARKS:
            del marks[: _MARKS // 2 : 2]
        return replace(self, marks=tuple(marks))


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCursor:
    """``rows``: how many rows were counted in all files together; ``parts``: the files, oldest first.

    ``columns``: those of the last header.
    """

    rows: int = 0
    parts: tuple[CursorPart, ...] = ()
    columns: LogColumns = NO_COLUMNS

    def token(self) -> dict[str, object]:
        """As a cursor."""
        token: dict[str, object] = {"rows": self.rows, "files": [_short(part) for part in self.parts]}
        return token | ({"columns": _columns_token(self.columns)} if self.columns.names else {})

    def bounded(self) -> LogCursor:
        """Without the oldest of those that were lost."""
        lost = [part for part in self.parts if part.lost]
        forgotten = {part.id for part in lost[:-_LOST]}
        return replace(self, parts=tuple(part for part in self.parts if not (part.lost and part.id in forgotten)))


def read_log_cursor(cursor: Cursor | None) -> LogCursor:
    """What a cursor holds; nothing of a log that was never read."""
    if cursor is None:
        return LogCursor()
    token: Mapping[str, Any] = cursor
    parts = tuple(_part(found) for found in token["files"])
    return LogCursor(rows=token["rows"], parts=parts, columns=_columns(token.get("columns", {})))


_DEFAULTS = {field.name: field.default for field in fields(CursorPart)}


def _short(part: CursorPart) -> dict[str, object]:
    """Without what is as it would be anyway."""
    known = {name: value for name, value in asdict(part).items() if value != _DEFAULTS[name]}
    if part.top is not None:
        known["top"] = asdict(replace(part.top, columns=NO_COLUMNS)) | {"columns": _columns_token(part.top.columns)}
    if part.marks:
        known["marks"] = [list(mark) for mark in part.marks]
    return known


def _columns_token(columns: LogColumns) -> dict[str, object]:
    return {"names": list(columns.names), "units": [list(unit) for unit in columns.units]} if columns.names else {}


def _columns(token: Mapping[str, Any]) -> LogColumns:
    units = tuple((column, unit) for column, unit in token.get("units", ()))
    return LogColumns(names=tuple(token.get("names", ())), units=units)


def _part(token: Mapping[str, Any]) -> CursorPart:
    known = dict(token)
    if "top" in known:
        known["top"] = FileTop(**known["top"] | {"columns": _columns(known["top"].get("columns", {}))})
    known["marks"] = tuple((offset, sha256) for offset, sha256 in known.get("marks", ()))
    return CursorPart(**known)
