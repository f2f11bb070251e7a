"""Reading a sink of any size piece by piece: a JSON parser that hands out entries as they arrive.

Memory: the text of one chunk, one entry, and the entries found in that chunk; never the whole sink. Members of the sink
other than ``entries`` are skipped, wherever they stand. Speed is that of the standard library's C scanner, one call an entry.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from ingestd.client.decoding import Unreadable

_SPACE = re.compile(r"[ \t\r\n]*")
_SCANNER = json.JSONDecoder(strict=False)
_ENDS = ",]} \t\r\n"
_MOST_UNFINISHED_CHARS = 32 * 1024 * 1024

_FOLLOWING: dict[str, dict[str, str]] = {
    "start": {"{": "member"},
    "member": {"}": "end"},
    "after member": {",": "member", "}": "end"},
    "elements": {"]": "after member"},
    "after element": {",": "elements", "]": "after member"},
    "end": {},
}
"""Which state a mark of punctuation leads to; where a member or an entry begins, the methods say."""

T = TypeVar("T")

Row = tuple[str, str | None, str | None]
"""Key, value and data type."""


SignedRow = tuple[str, str | None, str | None, str | None]
"""Key, value, data type, and who created the entry if it is who wrote it last."""


def _text(value: object) -> str | None:
    # The document types both as strings; what a service sends instead is kept apart from every desired text by its JSON.
    return value if value is None or isinstance(value, str) else json.dumps(value)


def row_of(entry: Mapping[str, Any]) -> Row:
    """As much of an entry as the mirror wants.

    Raises:
        Unreadable: it has no key.
    """
    key = entry.get("key")
    if not isinstance(key, str):
        raise Unreadable("an entry has no key")
    return (key, _text(entry.get("value")), _text(entry.get("dataType")))


def signed_row_of(entry: Mapping[str, Any]) -> SignedRow:
    """As `row_of`, and who wrote the entry: None if it was created and updated by two, or if the service does not say.

    Raises:
        Unreadable: it has no key.
    """
    key, value, data_type = row_of(entry)
    author = entry.get("updatedBy")
    one = isinstance(author, str) and bool(author) and entry.get("createdBy") == author
    return (key, value, data_type, author if one else None)


class SinkStream(Generic[T]):
    """Feed it the body's bytes in pieces of any size, then call `finish`. ``make`` turns an entry's members into what you want.

    Raises:
        Unreadable: from either method, where the body is no sink with entries.
    """

    def __init__(self, make: Callable[[dict[str, Any]], T]) -> None:
        self._make = make
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._at = 0
        self._state = "start"
        self._complete = False
        self._had_entries = False

    def feed(self, piece: bytes) -> list[T]:
        """The entries that this piece completes."""
        try:
            self._text = self._text[self._at :] + self._decoder.decode(piece)
        except UnicodeDecodeError:
            raise Unreadable("not UTF-8") from None
        self._at = 0
        rows: list[T] = []
        while self._step(rows):
            pass
        if len(self._text) - self._at > _MOST_UNFINISHED_CHARS:
            raise Unreadable("no JSON, or a single member beyond all bounds")
        return rows

    def finish(self) -> None:
        """The body has ended."""
        if not self._complete or not self._had_entries or self._peek():
            raise Unreadable("the body ended before the sink did")

    def _peek(self) -> str:
        match = _SPACE.match(self._text, self._at)
        self._at = match.end() if match else self._at
        return self._text[self._at : self._at + 1]

    def _step(self, rows: list[T]) -> bool:
        """Advance by one token or member; False where more text is needed."""
        head = self._peek()
        if not head:
            return False
        if self._state == "member" and head != "}":
            return self._member()
        if self._state == "elements" and head != "]":
            return self._element(rows)
        return self._punctuation(head)

    def _punctuation(self, head: str) -> bool:
        following = _FOLLOWING[self._state]
        if head not in following:
            raise Unreadable("no JSON object, or something follows it")
        self._state = following[head]
        self._at += 1
        self._complete = self._state == "end"
        return True

    def _value(self, start: int) -> tuple[Any, int] | None:
        """A whole JSON value that begins at ``start``, with its end; None where it goes on beyond the text."""
        try:
            value, end = _SCANNER.raw_decode(self._text, start)
        except (json.JSONDecodeError, RecursionError):
            return None
        # A number goes on until something follows that can't be part of it: 1 may become 15, or 1.5e3.
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
            raise Unreadable("no JSON object")
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
            raise Unreadable("an entry is no object")
        found = self._value(self._at)
        if found is None:
            return False
        entry, self._at = found
        rows.append(self._make(entry))
        self._state = "after element"
        return True
