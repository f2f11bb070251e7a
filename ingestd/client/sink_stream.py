"""An incremental JSON parser for a sink of any size: it returns entries as they arrive.

Memory: the text of one chunk, one entry, and the entries found in that chunk; never the whole sink. All members of the
sink except ``entries`` are skipped, in any order. Each entry costs one call of the standard library's C scanner.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from ingestd.client.checks import UnreadableBody

_SPACE = re.compile(r"[ \t\r\n]*")
_SCANNER = json.JSONDecoder(strict=False)
_ENDS = ",]} \t\r\n"
_MAX_PENDING_CHARS = 32 * 1024 * 1024

_NEXT_STATE: dict[str, dict[str, str]] = {
    "start": {"{": "member"},
    "member": {"}": "end"},
    "after member": {",": "member", "}": "end"},
    "elements": {"]": "after member"},
    "after element": {",": "elements", "]": "after member"},
    "end": {},
}
"""The state after each punctuation mark. The methods handle the start of a member or an entry."""

T = TypeVar("T")

Row = tuple[str, str | None, str | None]
"""Key, value and data type."""


SignedRow = tuple[str, str | None, str | None, str | None]
"""Key, value, data type, and the author if one author created the entry and wrote it last."""


def _text(value: object) -> str | None:
    # The interface document types both as strings. JSON of another type never equals a desired text.
    return value if value is None or isinstance(value, str) else json.dumps(value)


def row_of(entry: Mapping[str, Any]) -> Row:
    """Return the members of an entry that the mirror stores.

    Raises:
        UnreadableBody: it has no key.
    """
    key = entry.get("key")
    if not isinstance(key, str):
        raise UnreadableBody("an entry has no key")
    return (key, _text(entry.get("value")), _text(entry.get("dataType")))


def signed_row_of(entry: Mapping[str, Any]) -> SignedRow:
    """Return `row_of` with the author: None if two authors wrote it, or if the service does not name one.

    Raises:
        UnreadableBody: it has no key.
    """
    key, value, data_type = row_of(entry)
    author = entry.get("updatedBy")
    one = isinstance(author, str) and bool(author) and entry.get("createdBy") == author
    return (key, value, data_type, author if one else None)


class SinkStream(Generic[T]):
    """Parses one body: pass its bytes to `feed` in chunks of any size, then call `finish`.

    ``make`` turns the members of an entry into a result. Both methods raise `UnreadableBody` if the body is not a sink
    with entries.
    """

    def __init__(self, make: Callable[[dict[str, Any]], T]) -> None:
        self._make = make
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._at = 0
        self._state = "start"
        self._complete = False
        self._had_entries = False

    def feed(self, chunk: bytes) -> list[T]:
        """Return the entries that this chunk completes."""
        try:
            self._text = self._text[self._at :] + self._decoder.decode(chunk)
        except UnicodeDecodeError:
            raise UnreadableBody("not UTF-8") from None
        self._at = 0
        rows: list[T] = []
        while self._step(rows):
            pass
        if len(self._text) - self._at > _MAX_PENDING_CHARS:
            raise UnreadableBody("no JSON, or a member that is too large")
        return rows

    def finish(self) -> None:
        """Check that the body ended with the sink."""
        if not self._complete or not self._had_entries or self._peek():
            raise UnreadableBody("the body ended before the sink did")

    def _peek(self) -> str:
        match = _SPACE.match(self._text, self._at)
        self._at = match.end() if match else self._at
        return self._text[self._at : self._at + 1]

    def _step(self, rows: list[T]) -> bool:
        """Advance by one token or member; return False if more text is needed."""
        head = self._peek()
        if not head:
            return False
        if self._state == "member" and head != "}":
            return self._member()
        if self._state == "elements" and head != "]":
            return self._element(rows)
        return self._punctuation(head)

    def _punctuation(self, head: str) -> bool:
        following = _NEXT_STATE[self._state]
        if head not in following:
            raise UnreadableBody("no JSON object, or something follows it")
        self._state = following[head]
        self._at += 1
        self._complete = self._state == "end"
        return True

    def _value(self, start: int) -> tuple[Any, int] | None:
        """Return the JSON value at ``start``, and its end; None if it is not complete."""
        try:
            value, end = _SCANNER.raw_decode(self._text, start)
        except (json.JSONDecodeError, RecursionError):
            return None
        # A number is complete only before another character: 1 may become 15, or 1.5e3.
        following = self._text[end : end + 1]
        return (value, end) if following and (isinstance(value, str) or following in _ENDS) else None

    def _member(self) -> bool:
        name = self._value(self._at)
        if name is None:
            return False
        colon = _SPACE.match(self._text, name[1])
        start = colon.end() if colon else name[1]
        if start >= len(self._text):
            return False
        if not isinstance(name[0], str) or self._text[start] != ":":
            raise UnreadableBody("no JSON object")
        space = _SPACE.match(self._text, start + 1)
        start = space.end() if space else start + 1
        if name[0] == "entries" and self._text[start : start + 1] == "[":
            self._at, self._state, self._had_entries = start + 1, "elements", True
            return True
        value = self._value(start)
        if value is None:
            return False
        self._at, self._state = value[1], "after member"
        return True

    def _element(self, rows: list[T]) -> bool:
        if self._text[self._at] != "{":
            raise UnreadableBody("an entry is no object")
        found = self._value(self._at)
        if found is None:
            return False
        entry, self._at = found
        rows.append(self._make(entry))
        self._state = "after element"
        return True
