"""The JSON reader: the items of an array are the records. The document may have any size.

A decoder splits well-formed items, one block at a time. If the decoder fails, items are found by their quotes and brackets,
so a malformed item does not affect the other items. The path to the array is followed token by token.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import BinaryIO

import msgspec

from connectors.formats.members import MemberNames
from connectors.formats.ndjson.block import CELLS, read_texts
from connectors.formats.text import DETECT, TextFile, open_text
from ingestd.sdk import SourceBroken
from ingestd.sdk.formats.record_chunk import BLOCK_BYTES, RECORD_BYTES, RecordChunk, RecordLocation

_TOKEN = re.compile(rb'[ \t\r\n]*("(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+)', re.DOTALL)
_MARK = re.compile(rb'"(?:[^"\\]|\\.)*"|"|[\[\]{},]', re.DOTALL)
_COMMA = re.compile(rb"[ \t\r\n]*,")
_RAWS = msgspec.json.Decoder(list[msgspec.Raw])
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_TEXT = msgspec.json.Decoder(str)
_CUTS = 8
"""The maximum number of cuts that `Items._decode_many` tries in a block."""
_ONE_BY_ONE = 100
"""After the decoder fails, this number of items is found one by one before the decoder is tried again."""
_SPACE = b" \t\r\n"


def read_json(
    file: BinaryIO,
    name: str,
    *,
    path: Sequence[str] = (),
    encoding: str = DETECT,
    block_bytes: int = BLOCK_BYTES,
    record_bytes: int = RECORD_BYTES,
    cells: int = CELLS,
) -> Iterator[RecordChunk]:
    """Yield the records of a JSON document, at least one chunk.

    ``path``: the members that lead to the array of records (empty: the document is the array, or one record).
    A position is the number of an item, from 1. Values are as in NDJSON: each number keeps its characters.

    Raises:
        SourceBroken: there is no such array, or the document is truncated (raised after its complete items).
    """
    text = open_text(file, encoding)
    facts = text.encoding.facts
    items = Items(text, name, path, block_bytes=block_bytes, record_bytes=record_bytes)
    location, buffered, size = RecordLocation(), list[bytes](), 0
    for item in items:
        buffered.append(item)
        size += len(item)
        if size >= block_bytes:
            for chunk in read_texts(buffered, location, record_bytes, cells, unit="Item", facts=facts):
                location = chunk.end
                yield chunk
            buffered, size = [], 0
    yield from read_texts(buffered, location, record_bytes, cells, unit="Item", facts=facts)


class Items:
    """The items of one array. ``path``: the members that lead to the array (empty: the document is the array)."""

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
        self._empty = True

    def __iter__(self) -> Iterator[bytes]:
        """Yield each item's JSON text. Without a path, a document that is an object is the only item.

        Raises:
            SourceBroken: there is no such array or a second array, the document is truncated, text follows the document, or an
                item is above the size limit.
        """
        self._skip_space()
        if not self._path and self._peek() == b"{":
            self._require_one_document()
            yield self._read_rest()
            return
        self._enter_array()
        one_by_one = 0
        while True:
            if one_by_one == 0:
                yield from (many := self._decode_many())
                one_by_one = 0 if many else _ONE_BY_ONE
            else:
                one_by_one -= 1
            if (item := self._next_item()) is None:
                break
            yield item
        self._require_end()

    # ------------------------------------------------------------------------------------------------ the path to the array

    def _enter_array(self) -> None:
        for depth, member in enumerate(self._path):
            self._skip_space()
            if self._peek() != b"{":
                raise SourceBroken(
                    f"{self._name}: {self._path_text(depth)} is no object, so it has no member {member!r}."
                )
            self._at += 1
            self._find_member(member, depth)
        self._skip_space()
        if self._peek() == b"":
            raise self._truncated()
        if self._peek() != b"[":
            what = self._path_text(len(self._path))
            raise SourceBroken(f"{self._name}: {what} is no array of records. Set records to the path of the array.")
        self._at += 1

    def _find_member(self, member: str, depth: int) -> None:
        names = MemberNames()
        while True:
            token = self._token()
            if token == b",":
                continue
            if token == b"}":
                there = f"{self._path_text(depth)} has no member {member!r} (records)"
                raise SourceBroken(f"{self._name}: {there}.{names.sentence(member)}")
            if not token.startswith(b'"') or self._token() != b":":
                raise SourceBroken(f"{self._name} is not valid JSON before the array of records.")
            if (name := _decode_text(token)) == member:
                return
            names.add(name or "")
            self._skip_value()

    def _require_end(self) -> None:
        """Read from the end of the array to the end of the document; raise `SourceBroken` if the path occurs again."""
        for depth in reversed(range(len(self._path))):
            while (token := self._token()) != b"}":
                if token == b",":
                    continue
                if not token.startswith(b'"') or self._token() != b":":
                    raise SourceBroken(f"{self._name} is not valid JSON after the array of records.")
                if _decode_text(token) == self._path[depth]:
                    raise SourceBroken(
                        f"{self._name}: {self._path_text(depth)} names {self._path[depth]!r} twice (records), so it does not say"
                        " which one counts. The records of the first one were read."
                    )
                self._skip_value()
        self._skip_space()
        if self._peek():
            raise SourceBroken(
                f"{self._name}: text follows the end of the document, but one JSON document is expected."
            )

    def _require_one_document(self) -> None:
        """Raise `SourceBroken` if the first line is a whole object and another object follows, as in NDJSON."""
        line, _, rest = self._buffer[self._at :].partition(b"\n")
        if rest.lstrip(_SPACE).startswith(b"{"):
            with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                _OBJECT.decode(line)
                raise SourceBroken(
                    f"{self._name} has several JSON documents, one in each line, but one document is expected. If it is a file,"
                    " set format: ndjson, or rename it to .ndjson."
                )

    def _skip_value(self) -> None:
        depth = 0
        while True:
            token = self._token()
            depth += (token in b"[{") - (token in b"]}")
            if depth == 0:
                return

    def _path_text(self, depth: int) -> str:
        return ".".join(self._path[:depth]) or "the document"

    def _token(self) -> bytes:
        while True:
            found = _TOKEN.match(self._buffer, self._at)
            # A token that reaches the end of the buffer may continue after it.
            if found is not None and (found.end() < len(self._buffer) or self._ended):
                self._at = found.end()
                return found[1]
            self._require_more()

    # ------------------------------------------------------------------------------------------------ the items

    def _decode_many(self) -> list[bytes]:
        """Return the items that one call of the decoder finds in the buffer; empty if the decoder fails.

        The buffer is cut between a closing brace and a comma, and the part before the cut is put in square brackets. The
        result is valid JSON only if the cut is between two items, because a JSON text can be read in one way only.
        """
        end = len(self._buffer)
        for _ in range(_CUTS):
            end = self._buffer.rfind(b"}", self._at, end)
            if end < 0:
                return []
            comma = _COMMA.match(self._buffer, end + 1)
            if comma is None:
                continue
            try:
                items = _RAWS.decode(b"[%b]" % self._buffer[self._at : end + 1])
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue
            self._at = comma.end()
            return [bytes(item) for item in items]
        return []

    def _next_item(self) -> bytes | None:
        """Return the next item's text; None after the last item. Brackets are counted, and the content is not checked."""
        start, depth, at = self._at, 0, self._at
        while True:
            found = _MARK.search(self._buffer, at)
            if found is None or found[0] == b'"' or (found.end() == len(self._buffer) and not self._ended):
                at = (found.start() if found is not None else len(self._buffer)) - start
                self._require_more()
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
                    # If an item comes before the bracket, stay before the bracket: the next call finds the end.
                    self._at = found.start() if item else at
                    return item or None
                self._at = at
                return item
            elif depth == 0 and mark == b"}":
                raise SourceBroken(f"{self._name}: a closing brace has no opening brace; the rest can't be read.")

    def _read_rest(self) -> bytes:
        while self._read_more():
            continue
        return self._buffer[self._at :].strip(_SPACE)

    # ------------------------------------------------------------------------------------------------ the bytes

    def _skip_space(self) -> None:
        while True:
            rest = self._buffer[self._at :]
            left = rest.lstrip(_SPACE)
            self._at += len(rest) - len(left)
            if left or not self._read_more():
                return

    def _peek(self) -> bytes:
        return self._buffer[self._at : self._at + 1]

    def _read_more(self) -> bool:
        """Remove the processed part of the buffer, and append the next block. Return False at the end of the file."""
        rest = self._buffer[self._at :]
        if len(rest) > self._record_bytes:
            raise SourceBroken(
                f"{self._name}: a record is larger than {self._record_bytes} bytes. Set records to the path of the array that"
                " holds the records."
            )
        data = b"" if self._ended else self._file.read(self._block_bytes)
        self._ended = not data
        self._empty = self._empty and not data.strip(_SPACE)
        self._buffer, self._at = rest + data, 0
        return bool(data)

    def _require_more(self) -> None:
        """Append the next block to the buffer.

        Raises:
            SourceBroken: the file has already ended.
        """
        if self._ended:
            raise self._truncated()
        self._read_more()

    def _truncated(self) -> SourceBroken:
        if self._empty:
            return SourceBroken(f"{self._name} is empty.")
        return SourceBroken(
            f"{self._name} ends in the middle of its JSON: it was truncated, or is still being written."
        )


def _decode_text(token: bytes) -> str | None:
    try:
        return _TEXT.decode(token)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
