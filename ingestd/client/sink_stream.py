"""An incremental JSON parser for a sink of any size: it returns entries as they arrive.

The memory holds one chunk, an incomplete entry, and the entries of this chunk, but never the whole sink. All members of the
sink except ``entries`` are skipped, in any order. Each entry needs one call of the C scanner of the standard library.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

from ingestd.client.bodies import UnreadableBody

_SPACE = re.compile(r"[ \t\r\n]*")
_SCANNER = json.JSONDecoder(strict=False)
_ENDS = ",]} \t\r\n"
_MAX_PENDING_CHARS = 32 * 1024 * 1024

T = TypeVar("T")


class SinkStream(Generic[T]):
    """Parses one body: pass its bytes to `feed` in chunks of any size, then call `finish`.

    ``make`` converts the members of an entry to a result. Both methods raise `UnreadableBody` if the body is not a sink
    with entries.
    """

    def __init__(self, make: Callable[[dict[str, Any]], T]) -> None:
        self._make = make
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._at = 0
        self._found: list[T] = []
        self._had_entries = False
        self._complete = False
        self._parser = self._sink()

    def feed(self, chunk: bytes) -> list[T]:
        """Return the results for the entries that end in this chunk."""
        try:
            self._text = self._text[self._at :] + self._decoder.decode(chunk)
        except UnicodeDecodeError:
            raise UnreadableBody("not UTF-8") from None
        self._at = 0
        next(self._parser)
        if len(self._text) - self._at > _MAX_PENDING_CHARS:
            raise UnreadableBody("no JSON, or a member that is too large")
        found, self._found = self._found, []
        return found

    def finish(self) -> None:
        """Check that the body ended with the sink."""
        if not self._complete or not self._had_entries:
            raise UnreadableBody("the body ended before the sink did")

    # Each method below yields whenever it needs more text, and continues at `_at` after `feed` has appended text.

    def _sink(self) -> Generator[None]:
        yield from self._expect("{")
        while (yield from self._head()) != "}":
            name = yield from self._value()
            yield from self._expect(":")
            if (yield from self._head()) == "[" and name == "entries":
                yield from self._entries()
            else:
                yield from self._value()
            yield from self._separator("}")
        self._at += 1
        self._complete = True
        yield from self._head()
        raise UnreadableBody("something follows the JSON object")

    def _entries(self) -> Generator[None]:
        self._at += 1
        self._had_entries = True
        while (head := (yield from self._head())) != "]":
            if head != "{":
                raise UnreadableBody("an entry is no object")
            entry = yield from self._value()
            self._found.append(self._make(entry))
            if self._text[self._at] == ",":  # nearly always; a value is complete only if a character follows
                self._at += 1
            else:
                yield from self._separator("]")
        self._at += 1

    def _value(self) -> Generator[None, None, Any]:
        """Return the JSON value at the current position."""
        while True:
            try:
                value, end = _SCANNER.raw_decode(self._text, self._at)
            except (json.JSONDecodeError, RecursionError):
                yield
                continue
            # A number is complete only before another character: 1 may become 15, or 1.5e3.
            following = self._text[end : end + 1]
            if following and (isinstance(value, str) or following in _ENDS):
                self._at = end
                return value
            yield

    def _head(self) -> Generator[None, None, str]:
        """Skip whitespace, and return the next character."""
        while True:
            match = _SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            yield

    def _expect(self, mark: str) -> Generator[None]:
        if (yield from self._head()) != mark:
            raise UnreadableBody("no JSON object")
        self._at += 1

    def _separator(self, end: str) -> Generator[None]:
        """Skip a comma. If the next character is ``end`` instead, skip nothing."""
        head = yield from self._head()
        if head == ",":
            self._at += 1
        elif head != end:
            raise UnreadableBody("no JSON object")
