"""Parser of pgoutput messages (version 1) that returns only the keys of changed rows. The rows are read from the table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

Key: TypeAlias = tuple[str, ...]


class UnreadableChange(Exception):
    """A message does not show the key of the changed row: a part is missing, or the key is not published."""


class ChangedKeys(NamedTuple):
    """Keys: ``written`` of inserted and updated rows; ``removed`` of deleted rows, and old keys of updated rows. May overlap."""

    written: frozenset[Key]
    removed: frozenset[Key]
    truncated: bool


def changed_keys(messages: Iterable[bytes], key: Sequence[str], relations: frozenset[int]) -> ChangedKeys:
    """Return the keys in the messages of committed transactions.

    ``key``: the names of the key columns. ``relations``: object ids of the table and its partitions. Other tables are ignored.

    Raises:
        UnreadableChange: a message does not show the key of a row.
    """
    written: set[Key] = set()
    removed: set[Key] = set()
    truncated = False
    places: dict[int, list[int]] = {}
    for message in messages:
        reader = _Reader(message)
        match reader.tag():
            case b"R":
                relation, columns = reader.number(4), reader.columns()
                if relation in relations:
                    places[relation] = _places(columns, key)
            case b"T":
                count, _ = reader.number(4), reader.number(1)
                truncated = truncated or not relations.isdisjoint(reader.number(4) for _ in range(count))
            case (b"I" | b"U" | b"D") as kind:
                relation = reader.number(4)
                if relation not in relations:
                    continue
                at = places[relation]
                found = reader.tag()
                if found in {b"K", b"O"}:
                    removed.add(reader.key(at))
                    found = b"" if kind == b"D" else reader.tag()
                if found == b"N":
                    written.add(reader.key(at))
    return ChangedKeys(frozenset(written), frozenset(removed), truncated)


def _places(columns: Sequence[str], key: Sequence[str]) -> list[int]:
    if any(name not in columns for name in key):
        raise UnreadableChange
    return [columns.index(name) for name in key]


class _Reader:
    """Reads the parts of one message in order. A message that ends too early raises `UnreadableChange`."""

    def __init__(self, message: bytes) -> None:
        self._message = message
        self._at = 0

    def tag(self) -> bytes:
        return self._take(1)

    def number(self, size: int) -> int:
        return int.from_bytes(self._take(size))

    def columns(self) -> list[str]:
        """Return the names of a relation's columns."""
        self._text()
        self._text()
        self._take(1)  # the replica identity
        names = []
        for _ in range(self.number(2)):
            self._take(1)
            names.append(self._text())
            self._take(8)
        return names

    def key(self, places: Sequence[int]) -> Key:
        """Return the values of a tuple at the column indexes ``places``."""
        count, last, values = self.number(2), max(places), list[str | None]()
        for at in range(count):
            kind = self._take(1)
            size = self.number(4) if kind in {b"t", b"b"} else 0
            if at <= last:
                values.append(self._take(size).decode() if kind == b"t" else None)
            else:
                self._at += size
        found = [values[at] if at < len(values) else None for at in places]
        if None in found:
            raise UnreadableChange
        return tuple(value for value in found if value is not None)

    def _text(self) -> str:
        end = self._message.find(b"\x00", self._at)
        if end < 0:
            raise UnreadableChange
        text = self._message[self._at : end].decode()
        self._at = end + 1
        return text

    def _take(self, size: int) -> bytes:
        part = self._message[self._at : self._at + size]
        if len(part) < size:
            raise UnreadableChange
        self._at += size
        return part
