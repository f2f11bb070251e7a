"""The events of MariaDB's binary log: the keys of changed rows of one table. The table has the other values.

An event that is not known, or that may have changed the table in another way than by rows, is a `LogUnreadable`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from connectors.database.changes.logged_values import EventParts, LoggedColumn, column_type, column_value, value_size
from connectors.database.port import LogUnreadable

LogKey: TypeAlias = tuple[int | str, ...]

_HEADER = struct.Struct("<IBIIIH")
_QUERY, _ROTATE, _FORMAT, _TABLE_MAP, _GTID = 2, 4, 15, 19, 162
_COMPRESSED_QUERY = 165
_IGNORED = frozenset({3, _FORMAT, 16, 27, 38, 160, 161, 163, 164})
"""Stop, format, commit, heartbeat, XA PREPARE, the text of a statement with rows, checkpoint, list of GTIDs, encryption."""
_ROWS = {
    23: "write",
    24: "update",
    25: "delete",
    30: "write",
    31: "update",
    32: "delete",
    166: "write",
    167: "update",
    168: "delete",
    169: "write",
    170: "update",
    171: "delete",
}
_SECOND_VERSION = frozenset({30, 31, 32, 169, 170, 171})
_COMPRESSED_ROWS = range(166, 172)
_STANDALONE, _DDL, _PREPARED_XA = 1, 32, 64


class KeyColumn(NamedTuple):
    """A column of the key: its place in the table, from 0, and whether it is an integer without a sign."""

    place: int
    unsigned: bool = False


class LoggedTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table as the log names it. ``columns``: how many it has. ``key``: the columns that identify a row."""

    schema: str
    name: str
    columns: int
    key: tuple[KeyColumn, ...]


class LogPlace(NamedTuple):
    """A place in the log: the file and the position in bytes."""

    file: str
    position: int


class LoggedKeys(NamedTuple):
    """``written``: keys of rows that the last change inserted or updated. ``removed``: keys that the last change removed.

    ``position``: the GTIDs of the last transaction of each domain, as MariaDB writes them.
    """

    written: frozenset[LogKey]
    removed: frozenset[LogKey]
    position: str


class LogReader:
    """Reads events in order up to ``end``, the place of a snapshot, so that the keys are those of the rows it sees.

    ``position``: the GTIDs after which the events begin. ``most_keys`` and ``most_bytes`` limit what is read.
    """

    def __init__(self, table: LoggedTable, position: str, end: LogPlace, *, most_keys: int, most_bytes: int) -> None:
        self._table = table
        self._end = end
        self._most_keys, self._bytes_left = most_keys, most_bytes
        self._gtids = {gtid.partition("-")[0]: gtid for gtid in position.split(",") if gtid}
        self._file = ""
        self._has_checksums = False
        self._flags = 0
        self._maps: dict[int, list[LoggedColumn] | None] = {}  # None: another table
        self._keys: dict[LogKey, bool] = {}
        name = table.name.encode()
        self._name = (
            name.lower() if name.isascii() else b""
        )  # the text of a statement has the character set of its client

    def read(self, events: Iterable[bytes]) -> LoggedKeys:
        """Return the keys of the rows that changed.

        Raises:
            LogUnreadable: an event has no key, or may have changed the table in another way; with the reason.
        """
        try:
            for event in events:
                if not self._read(event):
                    break
                if len(self._keys) > self._most_keys:
                    raise LogUnreadable(f"more than {self._most_keys:,} rows changed")
        except (IndexError, struct.error, zlib.error, UnicodeDecodeError, ValueError) as error:
            raise LogUnreadable(f"an event has another format than expected ({error})") from None
        return LoggedKeys(
            frozenset(key for key, is_written in self._keys.items() if is_written),
            frozenset(key for key, is_written in self._keys.items() if not is_written),
            ",".join(sorted(self._gtids.values())),
        )

    def _read(self, event: bytes) -> bool:
        """Read an event; False if it is after the end."""
        _, kind, server, _, following, _ = _HEADER.unpack_from(event)
        parts = EventParts(self._checked(event, kind), _HEADER.size)
        if kind == _ROTATE:
            parts.skip(8)
            self._file = parts.rest().decode()
            return _number(self._file) <= _number(self._end.file)
        if following and (_number(self._file), following) > (_number(self._end.file), self._end.position):
            return False
        self._bytes_left -= len(event)
        if self._bytes_left < 0:
            raise LogUnreadable("the log since the last reading is too large")
        self._take(kind, server, parts)
        return True

    def _checked(self, event: bytes, kind: int) -> bytes:
        """Return an event without its checksum. The event of the format says whether the others have one."""
        if kind == _FORMAT:
            self._has_checksums = event[-5] == 1
        if kind == _FORMAT or not self._has_checksums:
            return event
        if zlib.crc32(event[:-4]) != int.from_bytes(event[-4:], "little"):
            raise LogUnreadable("an event has another checksum than expected")
        return event[:-4]

    def _take(self, kind: int, server: int, parts: EventParts) -> None:
        if kind == _GTID:
            sequence, domain, self._flags = parts.number(8), parts.number(4), parts.number(1)
            self._gtids[str(domain)] = f"{domain}-{server}-{sequence}"
            self._maps.clear()
        elif kind == _TABLE_MAP:
            number = parts.number(6)
            self._maps[number] = self._columns(parts)
        elif kind in _ROWS:
            self._rows(kind, parts)
        elif kind in {_QUERY, _COMPRESSED_QUERY}:
            self._query(_statement(parts, is_compressed=kind == _COMPRESSED_QUERY))
        elif kind not in _IGNORED:
            raise LogUnreadable(f"the log has an event of kind {kind}, of which the rows are not known")

    def _columns(self, parts: EventParts) -> list[LoggedColumn] | None:
        """Return the types of the columns of the rows that follow; None: they are of another table."""
        parts.skip(2)
        schema = parts.take(parts.number(1) + 1)[:-1].decode()
        name = parts.take(parts.number(1) + 1)[:-1].decode()
        if (schema, name) != (self._table.schema, self._table.name):
            return None
        types = parts.take(parts.length())
        metas = EventParts(parts.take(parts.length()), 0)
        return [column_type(type_, metas) for type_ in types]

    def _query(self, statement: bytes) -> None:
        word = statement.lstrip().upper()
        if word.startswith((b"BEGIN", b"COMMIT", b"SAVEPOINT", b"XA START", b"XA END", b"XA ROLLBACK")):
            return
        if word.startswith(b"XA COMMIT"):
            raise LogUnreadable("a transaction of XA was committed")
        is_definition = self._flags & _STANDALONE and self._flags & _DDL
        if not is_definition:
            raise LogUnreadable("the log has a statement without its rows, such as one with binlog_format STATEMENT")
        if self._name in statement.lower():
            raise LogUnreadable("a statement that names the table, such as ALTER or TRUNCATE, was executed")

    def _rows(self, kind: int, parts: EventParts) -> None:
        number = parts.number(6)
        parts.skip(2)
        if kind in _SECOND_VERSION:
            parts.skip(parts.number(2) - 2)
        if number not in self._maps:
            if parts.left() > _END_OF_ROWS:
                raise LogUnreadable("the log has rows of an unknown table")
            return
        columns = self._maps[number]
        if columns is None:
            return
        if self._flags & _PREPARED_XA:
            return  # XA COMMIT follows, or nothing was changed
        if len(columns) != self._table.columns or parts.length() != self._table.columns:
            raise LogUnreadable("the table had another number of columns")
        before = parts.bits(self._table.columns)
        after = parts.bits(self._table.columns) if _ROWS[kind] == "update" else []
        if kind in _COMPRESSED_ROWS:
            parts = EventParts(_decompress(parts.rest()), 0)
        while parts.left():
            first = self._values(parts, columns, before)
            if _ROWS[kind] == "update":
                self._keys[self._key(first)] = False
                first |= self._values(parts, columns, after)
            self._keys[self._key(first)] = _ROWS[kind] != "delete"

    def _values(
        self, parts: EventParts, columns: Sequence[LoggedColumn], present: Sequence[bool]
    ) -> dict[int, int | str]:
        """Return the values of the key's columns that a row image has, by place."""
        wanted = {column.place: column for column in self._table.key}
        places = [place for place, is_present in enumerate(present) if is_present]
        found: dict[int, int | str] = {}
        for place, is_null in zip(places, parts.bits(len(places)), strict=True):
            if is_null:
                if place in wanted:
                    raise LogUnreadable("a row has a key with NULL")
                continue
            type_, meta = columns[place]
            if place in wanted:
                found[place] = column_value(parts, type_, meta, unsigned=wanted[place].unsigned)
            else:
                parts.skip(value_size(parts, type_, meta))
        return found

    def _key(self, values: dict[int, int | str]) -> LogKey:
        if any(column.place not in values for column in self._table.key):
            raise LogUnreadable("binlog_row_image leaves columns of key out")
        return tuple(values[column.place] for column in self._table.key)


_END_OF_ROWS = 2
"""The most bytes of an event that only ends a statement: it has no table and no rows."""


def _number(file: str) -> int:
    """Return the number of a log's file; the files have ascending ones."""
    return int(file.rpartition(".")[2])


def _statement(parts: EventParts, *, is_compressed: bool) -> bytes:
    parts.skip(8)
    schema = parts.number(1)
    parts.skip(2)
    parts.skip(parts.number(2))
    parts.skip(schema + 1)
    return _decompress(parts.rest()) if is_compressed else parts.rest()


def _decompress(data: bytes) -> bytes:
    """Return the content of a compressed part. Its first byte has the algorithm, 0 for zlib, and the size of the length."""
    if data[0] >> 4 & 7:
        raise LogUnreadable("the log is compressed by an unknown algorithm")
    return zlib.decompress(data[1 + (data[0] & 7) :])
