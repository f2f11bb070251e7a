"""Thrift's compact protocol: reads and writes a structure as a dictionary of fields by number. Performs no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
I32, I64, BINARY, LIST = 5, 6, _BINARY, _LIST
_INTEGERS = range(4, 7)
_DEPTH = 32
_LONGEST_SHIFT = 70

Value: TypeAlias = "tuple[int, Any]"
"""The number of a type, and the content: int, bool, bytes or `Fields`. The content of a list is the item type and the items."""
Fields: TypeAlias = "dict[int, Value]"


class NotCompact(Exception):
    """The bytes are no structure of the compact protocol."""


def read_struct(data: bytes) -> Fields:
    """Return the structure that ``data`` begins with.

    Raises:
        NotCompact: the structure ends early, is nested too deeply, or has an unknown type.
    """
    try:
        return _CompactReader(data).struct(0)
    except IndexError as error:
        raise NotCompact("it ends early") from error


def write_struct(fields: Mapping[int, Value]) -> bytes:
    """Return a structure as bytes; the inverse of `read_struct`."""
    out = bytearray()
    _write_struct(out, fields)
    return bytes(out)


class _CompactReader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def struct(self, depth: int) -> Fields:
        if depth > _DEPTH:
            raise NotCompact("it is nested too deeply")
        data, fields, number = self._data, {}, 0
        while head := data[self._at]:
            self._at += 1
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            kind = head & 15
            fields[number] = (kind, kind == TRUE if kind <= _FALSE else self._value(kind, depth + 1))
        self._at += 1
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in _INTEGERS:
            return self._zigzag()
        if kind == _BINARY:
            return self._take(self._varint())
        if kind == STRUCT:
            return self.struct(depth)
        if kind in {_LIST, _SET}:
            return self._items(depth)
        if kind in {TRUE, _FALSE, _BYTE}:
            return self._take(1)[0]  # a boolean in a list is a byte
        if kind == _DOUBLE:
            return self._take(8)
        raise NotCompact(f"it has the type {kind}")

    def _items(self, depth: int) -> tuple[int, list[Any]]:
        head = self._take(1)[0]
        kind, count = head & 15, head >> 4
        if count == 15:
            count = self._varint()
        if count > len(self._data) - self._at:
            raise NotCompact("a list is longer than the structure")
        return kind, [self._value(kind, depth) for _ in range(count)]

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise NotCompact("it ends early")
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def _varint(self) -> int:
        number, shift = 0, 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            number |= (byte & 127) << shift
            if byte < 128:
                return number
            shift += 7
            if shift > _LONGEST_SHIFT:
                raise NotCompact("a number is too long")

    def _zigzag(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)


def _write_struct(out: bytearray, fields: Mapping[int, Value]) -> None:
    last = 0
    for number in sorted(fields):
        kind, value = fields[number]
        if kind in {TRUE, _FALSE}:
            kind = TRUE if value else _FALSE
        if 0 < number - last <= 15:
            out.append((number - last) << 4 | kind)
        else:
            out.append(kind)
            _write_zigzag(out, number)
        last = number
        if kind > _FALSE:
            _write_value(out, kind, value)
    out.append(0)


def _write_value(out: bytearray, kind: int, value: Any) -> None:
    if kind in _INTEGERS:
        _write_zigzag(out, value)
    elif kind == _BINARY:
        _write_varint(out, len(value))
        out += value
    elif kind == STRUCT:
        _write_struct(out, value)
    elif kind in {_LIST, _SET}:
        item, values = value
        out.append(min(len(values), 15) << 4 | item)
        if len(values) >= 15:
            _write_varint(out, len(values))
        for one in values:
            _write_value(out, item, one)
    elif kind == _DOUBLE:
        out += value
    else:
        out.append(value)


def _write_varint(out: bytearray, number: int) -> None:
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)


def _write_zigzag(out: bytearray, number: int) -> None:
    _write_varint(out, number << 1 if number >= 0 else (-number << 1) - 1)
