"""The values in the events of MariaDB's binary log: numbers, lengths and the columns of a row image."""

from __future__ import annotations

from datetime import date
from typing import TypeAlias

from connectors.database.port import LogUnreadable

LoggedColumn: TypeAlias = tuple[int, int]
"""The number of a type, and what describes it: a length, a precision or a number of digits."""

_INTEGERS = {1: 1, 2: 2, 9: 3, 3: 4, 8: 8}
_DATE = 10
_SIZES = {**_INTEGERS, 4: 4, 5: 8, _DATE: 3, 13: 1, 14: 3}
"""The size in bytes of a value by the number of its type. Times of servers before 10.1 have sizes that the log does not show."""
_FRACTIONS = {17: 4, 18: 5, 19: 3}  # TIMESTAMP, DATETIME and TIME with fractions
_VARCHARS, _BLOBS, _STRING, _DECIMAL, _BIT = (
    frozenset({15, 141, 253}),
    frozenset({140, 249, 250, 251, 252, 255}),
    254,
    246,
    16,
)
_ENUM, _SET = 247, 248
_DIGITS = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
"""The bytes of 0 to 9 digits of a DECIMAL."""


class EventParts:
    """Takes the parts of an event in order. An event that ends too early raises `IndexError`."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at

    def take(self, size: int) -> bytes:
        """Return the next ``size`` bytes."""
        part = self._data[self._at : self._at + size]
        if size < 0 or len(part) < size:
            raise IndexError("it ends too early")
        self._at += size
        return part

    def skip(self, size: int) -> None:
        """Leave ``size`` bytes out."""
        self._at += size
        if size < 0 or self._at > len(self._data):
            raise IndexError("it ends too early")

    def left(self) -> int:
        """Return how many bytes are left."""
        return len(self._data) - self._at

    def rest(self) -> bytes:
        """Return all that is left."""
        return self.take(self.left())

    def number(self, size: int) -> int:
        """Return a number of ``size`` bytes."""
        return int.from_bytes(self.take(size), "little")

    def length(self) -> int:
        """Return a number of variable size."""
        first = self.number(1)
        return self.number({252: 2, 253: 3, 254: 8}[first]) if first > 250 else first

    def bits(self, count: int) -> list[bool]:
        """Return ``count`` bits, in whole bytes."""
        data = self.take((count + 7) // 8)
        return [bool(data[at // 8] >> at % 8 & 1) for at in range(count)]


def column_type(type_: int, metas: EventParts) -> LoggedColumn:
    """Return a type and its description. The type of ENUM, SET and CHAR is in the description."""
    if type_ in _VARCHARS or type_ == _BIT:
        return type_, metas.number(2)
    if type_ in {_STRING, _DECIMAL}:
        first, second = metas.number(1), metas.number(1)
        if type_ == _DECIMAL:
            return type_, first << 8 | second
        if first & 0x30 != 0x30:
            return first | 0x30, second | ((first & 0x30) ^ 0x30) << 4
        return first, second
    if type_ in _BLOBS or type_ in _FRACTIONS or type_ in {4, 5}:
        return type_, metas.number(1)
    if type_ not in _SIZES:
        raise LogUnreadable(f"a column has the type {type_}, which is not known")
    return type_, 0


def value_size(parts: EventParts, type_: int, meta: int) -> int:
    """Return the size of the next value in bytes, after its length if it has one."""
    if type_ in _SIZES:
        return _SIZES[type_]
    if type_ in _VARCHARS or type_ == _STRING:
        return parts.number(2 if meta > 255 else 1)
    if type_ in _BLOBS:
        return parts.number(meta)
    return _fixed_size(type_, meta)


def _fixed_size(type_: int, meta: int) -> int:
    if type_ in _FRACTIONS:
        return _FRACTIONS[type_] + (meta + 1) // 2
    if type_ == _BIT:
        return (meta >> 8) + bool(meta & 0xFF)
    if type_ == _DECIMAL:
        precision, scale = meta >> 8, meta & 0xFF
        return sum(digits // 9 * 4 + _DIGITS[digits % 9] for digits in (precision - scale, scale))
    if type_ in {_ENUM, _SET}:
        return meta
    raise LogUnreadable(f"a column has the type {type_}, which is not known")


def column_value(parts: EventParts, type_: int, meta: int, *, unsigned: bool) -> int | str:
    """Return the next value, of a column of the key. ``unsigned``: an integer has no sign.

    Raises:
        LogUnreadable: the type is not that of a key.
    """
    data = parts.take(value_size(parts, type_, meta))
    if type_ in _INTEGERS:
        return int.from_bytes(data, "little", signed=not unsigned)
    if type_ == _DATE:
        number = int.from_bytes(data, "little")
        return date(number >> 9, number >> 5 & 15, number & 31).isoformat()
    if type_ in _VARCHARS or type_ == _STRING:
        return data.decode()
    raise LogUnreadable(f"a column of key has the type {type_}, which is not known")
