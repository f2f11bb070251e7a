"""Where an incremental reading stopped: the last cursor value, and which of its rows have been handed over.

The next reading starts at that value, not after it, since rows of the same time may have been committed meanwhile; those
that were handed over are recognised by a hash of their whole text, so a row that changed without its time is read again.
More than `REMEMBERED` rows of one cursor value (a bulk load) are not all remembered: the others are handed over again,
which changes nothing, as equal entries are no news.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ingestd.sdk import Cursor

REMEMBERED = 50_000

Value: TypeAlias = str | int | float
_KINDS: Mapping[str, type[str | int | float]] = {"text": str, "integer": int, "real": float}


class Boundary:
    """Follows a reading in the order of the cursor column."""

    def __init__(self, token: Cursor | None) -> None:
        self.value: Value | None = None
        self._seen: dict[str, None] = {}
        if token is not None:
            self.value = _KINDS[str(token["kind"])](str(token["value"]))
            rows: Any = token["rows"]
            self._seen = dict.fromkeys(rows)

    def news(self, values: Sequence[Value], rows: Sequence[Sequence[str | None]]) -> list[bool]:
        """Of rows in the order of their cursor values: which have not been handed over. They are remembered as handed over."""
        news = []
        for value, row in zip(values, rows, strict=True):
            if value != self.value and value == values[-1]:  # only the last value's rows can come again
                self.value, self._seen = value, {}
            news.append(value != self.value or self._is_new(row))
        return news

    def _is_new(self, row: Sequence[str | None]) -> bool:
        digest = _digest(row)
        if digest in self._seen:
            return False
        if len(self._seen) < REMEMBERED:
            self._seen[digest] = None
        return True

    def token(self) -> dict[str, object]:
        """The resume token, anything JSON can hold; a number keeps its kind, so that it is compared as one."""
        kind = next(name for name, kind in _KINDS.items() if type(self.value) is kind)
        value = repr(self.value) if kind == "real" else str(self.value)
        return {"kind": kind, "value": value, "rows": list(self._seen)}


def _digest(row: Sequence[str | None]) -> str:
    """A hash of a row's text; lengths keep neighbouring fields apart, and null from the empty text."""
    state = hashlib.blake2b(digest_size=12)
    for text in row:
        data = b"" if text is None else text.encode("utf-8", "surrogateescape")
        state.update(b"-" if text is None else b"%d:" % len(data))
        state.update(data)
    return state.hexdigest()
