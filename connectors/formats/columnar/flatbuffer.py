"""The reader of FlatBuffers tables, with the kinds of values that Arrow uses. Performs no I/O."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any


class NotFlatbuffer(Exception):
    """The bytes are no table, or a value of the table is beyond the end of the bytes."""


class Table:
    """A table in ``data``. Its fields are numbered from 0; an absent field has a default value."""

    def __init__(self, data: bytes | bytearray, start: int) -> None:
        self._data = data
        self._start = start
        self._fields = start - self.number("<i", start)

    @classmethod
    def root(cls, data: bytes | bytearray) -> Table:
        """Return the table that is the root of ``data``.

        Raises:
            NotFlatbuffer: ``data`` has no root table.
        """
        return cls(data, int(_unpacked(data, "<I", 0)))

    def number(self, kind: str, at: int) -> Any:
        """Return the number at an offset. ``kind``: its format for `struct`."""
        return _unpacked(self._data, kind, at)

    def offset(self, field: int) -> int:
        """Return the offset of a field's value; 0 if the field is absent."""
        size = int(self.number("<H", self._fields))
        if 4 + 2 * field >= size:
            return 0
        found = int(self.number("<H", self._fields + 4 + 2 * field))
        return self._start + found if found else 0

    def scalar(self, field: int, kind: str, default: int = 0) -> int:
        """Return the number in a field. ``kind``: its format for `struct`."""
        at = self.offset(field)
        return int(self.number(kind, at)) if at else default

    def table(self, field: int) -> Table | None:
        """Return the table in a field; None if the field is absent."""
        at = self.offset(field)
        return Table(self._data, at + int(self.number("<I", at))) if at else None

    def text(self, field: int) -> bytes:
        """Return the bytes of the text in a field; empty if the field is absent."""
        start, count = self.vector(field, 1)
        return bytes(self._data[start : start + count])

    def vector(self, field: int, size: int) -> tuple[int, int]:
        """Return the offset of the first item of a vector, and the number of its items. ``size``: the bytes of an item.

        Raises:
            NotFlatbuffer: the vector is longer than the data.
        """
        at = self.offset(field)
        if not at:
            return 0, 0
        start = at + int(self.number("<I", at))
        count = int(self.number("<I", start))
        if start + 4 + count * size > len(self._data):
            raise NotFlatbuffer
        return start + 4, count

    def tables(self, field: int) -> Sequence[Table]:
        """Return the tables of a vector."""
        start, count = self.vector(field, 4)
        return [Table(self._data, at + int(self.number("<I", at))) for at in range(start, start + 4 * count, 4)]


def _unpacked(data: bytes | bytearray, kind: str, at: int) -> Any:
    if at < 0:
        raise NotFlatbuffer
    try:
        return struct.unpack_from(kind, data, at)[0]
    except struct.error as error:
        raise NotFlatbuffer from error
