"""The boundary of an incremental reading: the last cursor value, and the rows yielded with it.

The next reading starts at that value, not after it, because rows with the same time may have been committed meanwhile. Rows that
were yielded are recognised by a hash of their whole text, so a row that changed without its time is read again. Of one cursor
value (a bulk load), at most `REMEMBERED` rows are remembered. The others are yielded again, which changes no entry.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ingestd.sdk import Cursor

REMEMBERED = 50_000

CursorValue: TypeAlias = str | int | float
_KINDS: Mapping[str, type[str | int | float]] = {"text": str, "integer": int, "real": float}


class Boundary:
    """Follows a reading in the order of the cursor column."""

    def __init__(self, token: Cursor | None) -> None:
        self.value: CursorValue | None = None
        self._seen: dict[str, None] = {}
        if token is not None:
            self.value = _KINDS[str(token["kind"])](str(token["value"]))
            rows: Any = token["rows"]
            self._seen = dict.fromkeys(rows)

    def find_new(self, values: Sequence[CursorValue], rows: Sequence[Sequence[str | None]]) -> list[bool]:
        """Return which rows are new, and remember them. ``rows`` are in the order of their cursor values."""
        is_new = []
        for value, row in zip(values, rows, strict=True):
            if value != self.value and value == values[-1]:  # only rows with the last value can be read again
                self.value, self._seen = value, {}
            is_new.append(value != self.value or self._is_new(row))
        return is_new

    def _is_new(self, row: Sequence[str | None]) -> bool:
        digest = _digest(row)
        if digest in self._seen:
            return False
        if len(self._seen) < REMEMBERED:
            self._seen[digest] = None
        return True

    def token(self) -> dict[str, object]:
        """Return the resume token as JSON values. A number keeps its kind, so that it is compared as a number."""
        kind = next(name for name, kind in _KINDS.items() if type(self.value) is kind)
        value = repr(self.value) if kind == "real" else str(self.value)
        return {"kind": kind, "value": value, "rows": list(self._seen)}


def _digest(row: Sequence[str | None]) -> str:
    """Return a hash of a row's text.

    With lengths, so that neighbouring fields, and null and the empty text, differ.
    """
    state = hashlib.blake2b(digest_size=12)
    for text in row:
        data = b"" if text is None else text.encode("utf-8", "surrogateescape")
        state.update(b"-" if text is None else b"%d:" % len(data))
        state.update(data)
    return state.hexdigest()
