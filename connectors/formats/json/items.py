"""Where the items of an array begin and end in a JSON document of any size, found without decoding them.

Inside the array only quotes and brackets need to be looked at, so an item that is malformed within its brackets spoils no
other. The way to the array is walked token by token.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from connectors.formats.stretch import BLOCK_BYTES, RECORD_BYTES
from connectors.formats.text import TextFile
from ingestd.sdk import SourceBroken

_TOKEN = re.compile(rb'[ \t\r\n]*("(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+)', re.DOTALL)
_MARK = re.compile(rb'"(?:[^"\\]|\\.)*"|"|[\[\]{},]', re.DOTALL)
_TEXT = msgspec.json.Decoder(str)
_SPACE = b" \t\r\n"


class Items:
    """The items of one array; ``path`` names the members that lead to it, empty for the document itself."""

    def __init__(
        self,
        file: TextFile,
        name: str,
        path: Sequence[str],
        *,
        block_bytes: int = BLOCK_BYTES,
        record_bytes: int = RECORD_BYTES,
    ) -> None:
        self._file = file
        self._name = name
        self._path = tuple(path)
        self._block_bytes = block_bytes
        self._record_bytes = record_bytes
        self._buffer = b""
        self._at = 0
        self._ended = False

    def __iter__(self) -> Iterator[bytes]:
        """Each item's JSON text. A document that is an object, where no path is given, is its own only item.

        Raises:
            SourceBroken: there is no such array, the document ends too early, or an item is beyond all bounds.
        """
        self._skip_space()
        if not self._path and self._peek() == b"{":
            yield self._whole()
            return
        self._enter_array()
        while (item := self._next_item()) is not None:
            yield item
        self._skip_space()
        if self._peek() and not self._path:
            raise SourceBroken(f"{self._name}: something follows the end of the array; one JSON document is expected.")

    # ------------------------------------------------------------------------------------------------ the way there

    def _enter_array(self) -> None:
        for depth, member in enumerate(self._path):
            self._skip_space()
            if self._peek() != b"{":
                raise SourceBroken(f"{self._name}: {self._spoken(depth)} is no object, so it has no member {member!r}.")
            self._at += 1
            self._find_member(member, depth)
        self._skip_space()
        if self._peek() == b"":
            raise self._cut()
        if self._peek() != b"[":
            what = self._spoken(len(self._path))
            raise SourceBroken(f"{self._name}: {what} is no array of records. Set records to the path of one.")
        self._at += 1

    def _find_member(self, member: str, depth: int) -> None:
        while True:
            token = self._token()
            if token == b",":
                continue
            if token == b"}":
                raise SourceBroken(f"{self._name}: {self._spoken(depth)} has no member {member!r} (records).")
            if not token.startswith(b'"') or self._token() != b":":
                raise SourceBroken(f"{self._name} is not valid JSON before the array of records.")
            if _decoded(token) == member:
                return
            self._pass_value()

    def _pass_value(self) -> None:
        depth = 0
        while True:
            token = self._token()
            depth += (token in b"[{") - (token in b"]}")
            if depth == 0:
                return

    def _spoken(self, depth: int) -> str:
        return ".".join(self._path[:depth]) or "the document"

    def _token(self) -> bytes:
        while True:
            found = _TOKEN.match(self._buffer, self._at)
            # A token that reaches the end of what was read may go on behind it.
            if found is not None and (found.end() < len(self._buffer) or self._ended):
                self._at = found.end()
                return found[1]
            self._read_on()

    # ------------------------------------------------------------------------------------------------ the items

    def _next_item(self) -> bytes | None:
        """The next item's text; None behind the last. Brackets are counted, what they hold is not looked at."""
        start, depth, at = self._at, 0, self._at
        while True:
            found = _MARK.search(self._buffer, at)
            if found is None or found[0] == b'"' or (found.end() == len(self._buffer) and not self._ended):
                at = (found.start() if found is not None else len(self._buffer)) - start
                self._read_on()
                start = 0
                continue
            at = found.end()
            mark = found[0]
            if mark in b"[{":
                depth += 1
            elif mark in b"]}" and depth:
                depth -= 1
            elif depth == 0 and mark in {b",", b"]"}:
                item = self._buffer[start : found.start()].strip(_SPACE)
                if mark == b"]":
                    # Stay before the bracket where an item stands before it: the next call finds the end.
                    self._at = found.start() if item else at
                    return item or None
                self._at = at
                return item
            elif depth == 0 and mark == b"}":
                raise SourceBroken(
                    f"{self._name}: a closing brace stands where none was opened; the rest can't be read."
                )

    def _whole(self) -> bytes:
        while self._more():
            continue
        return self._buffer[self._at :].strip(_SPACE)

    # ------------------------------------------------------------------------------------------------ the bytes

    def _skip_space(self) -> None:
        while True:
            rest = self._buffer[self._at :]
            left = rest.lstrip(_SPACE)
            self._at += len(rest) - len(left)
            if left or not self._more():
                return

    def _peek(self) -> bytes:
        return self._buffer[self._at : self._at + 1]

    def _more(self) -> bool:
        """Read on, forgetting what is done; whether there was more."""
        rest = self._buffer[self._at :]
        if len(rest) > self._record_bytes:
            raise SourceBroken(
                f"{self._name}: a record is larger than {self._record_bytes} bytes. Set records to the path of the array that"
                " holds the records."
            )
        data = b"" if self._ended else self._file.read(self._block_bytes)
        self._ended = not data
        self._buffer, self._at = rest + data, 0
        return bool(data)

    def _read_on(self) -> None:
        """More is needed, or at least to know that there is none."""
        if self._ended:
            raise self._cut()
        self._more()

    def _cut(self) -> SourceBroken:
        if not self._buffer.strip(_SPACE):
            return SourceBroken(f"{self._name} is empty, or ends before its JSON does.")
        return SourceBroken(f"{self._name} ends in the middle of its JSON: it was cut, or is still being written.")


def _decoded(token: bytes) -> str | None:
    try:
        return _TEXT.decode(token)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
