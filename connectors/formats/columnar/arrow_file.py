"""Finds the messages of an Arrow file or stream, and builds in-memory streams of some batches and columns for polars."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import msgspec

from connectors.formats.columnar.arrow_schema import ArrowColumn, read_arrow_columns
from connectors.formats.columnar.flatbuffer import NotFlatbuffer, Table
from connectors.formats.columnar.typed_columns import group_parts
from connectors.formats.file_end import has_data

_MAGIC, _FEATHER_1 = b"ARROW1", b"FEA1"
_FILE_START = 8
_CONTINUATION = 0xFFFFFFFF
_WORD = struct.Struct("<I")
_END = _WORD.pack(_CONTINUATION) + _WORD.pack(0)
_HEADER_TYPE, _HEADER, _BODY_BYTES = 1, 2, 3
_SCHEMA, _DICTIONARY, _BATCH = 1, 2, 3
_FOOTER_DICTIONARIES, _FOOTER_BATCHES = 2, 3
_METADATA_BYTES = 256 * 2**20
_NODES, _BUFFERS, _VIEW_COUNTS = 1, 2, 4
_BLOCK = 24
_PAIR = 16


class ArrowDamaged(Exception):
    """The file is no Arrow file or stream, or is damaged. The text of the exception describes the fault."""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message of an Arrow file or stream: its offset, its kind, its metadata, and the location of its body."""

    start: int
    kind: int
    metadata: bytes
    body_start: int
    body_bytes: int

    @property
    def header(self) -> Table:
        """The header as a table.

        Raises:
            NotFlatbuffer: the message has no header.
        """
        found = Table.root(self.metadata).table(_HEADER)
        if found is None:
            raise NotFlatbuffer
        return found

    @property
    def rows(self) -> int:
        """The number of rows of a batch; 0 for any other message."""
        return self.header.scalar(0, "<q") if self.kind == _BATCH else 0


class ArrowPart(msgspec.Struct, frozen=True, kw_only=True):
    """Consecutive batches that are read together, and the dictionaries of their values. ``rows``: the number of rows."""

    dictionaries: Sequence[Message]
    batches: Sequence[Message]
    rows: int


class ArrowFile:
    """The checked messages of an open file or stream. A file has exactly the messages that its footer lists."""

    def __init__(self, file: BinaryIO) -> None:
        """Read the schema and the footer, and find the messages.

        Raises:
            ArrowDamaged: the file is no Arrow file or stream, or is damaged.
        """
        self._file = file
        self.has_end = False
        """Whether a footer or an end-of-stream marker was found."""
        try:
            self._find()
        except NotFlatbuffer as error:
            raise ArrowDamaged("its metadata is damaged") from error

    def _find(self) -> None:
        self._size = self._file.seek(0, os.SEEK_END)
        self._file.seek(0)
        head = self._file.read(_FILE_START)
        if head.startswith(_FEATHER_1):
            raise ArrowDamaged("it is of version 1 of Feather, which is not supported. Save it as Feather 2")
        self._is_file = head.startswith(_MAGIC)
        if not self._is_file and self._kind_of_first() != _SCHEMA:
            raise ArrowDamaged("it begins neither as a file nor as a stream; it is damaged or of another format")
        found = self._of_footer() if self._is_file else list(self._from(0, self._size))
        self._schema, *self._messages = found
        if any(one.kind == _SCHEMA for one in self._messages):
            raise ArrowDamaged("it has a second schema")
        self.columns = read_arrow_columns(self._schema.header)
        self.rows = sum(one.rows for one in self._messages)

    def _kind_of_first(self) -> int:
        try:
            message = self._message(0, self._size)
        except (ArrowDamaged, NotFlatbuffer):
            return 0
        return message.kind if message is not None else 0

    def _of_footer(self) -> list[Message]:
        """Return the schema and the messages that the footer lists. The file must have no other messages."""
        footer, end = self._footer()
        blocks = sorted((*_blocks(footer, _FOOTER_DICTIONARIES), *_blocks(footer, _FOOTER_BATCHES)))
        found = [self._schema_before(blocks[0][0] if blocks else end)]
        at = blocks[0][0] if blocks else end
        for start, metadata_bytes, body_bytes in blocks:
            message = self._message(at, end)
            if message is None or (start, metadata_bytes, body_bytes) != (
                message.start,
                message.body_start - message.start,
                message.body_bytes,
            ):
                raise ArrowDamaged("its footer does not match its batches")
            found.append(message)
            at = message.body_start + message.body_bytes
        if next(self._from(at, end), None) is not None:
            raise ArrowDamaged("its footer lists fewer batches than the file has")
        self.has_end = True
        return found

    def _schema_before(self, end: int) -> Message:
        """Return the schema, which must be the only message before ``end``."""
        try:
            [message] = self._from(_FILE_START, end)
        except (ArrowDamaged, NotFlatbuffer, ValueError):
            # polars writes the schema without the length that the format requires.
            self._file.seek(_FILE_START)
            metadata, _, rest = self._file.read(min(end - _FILE_START, _METADATA_BYTES)).partition(_END[: _WORD.size])
            if rest.strip(b"\0"):
                raise ArrowDamaged("its footer lists fewer batches than the file has") from None
            kind = Table.root(metadata).scalar(_HEADER_TYPE, "<B")
            if kind != _SCHEMA:
                raise NotFlatbuffer from None
            message = Message(start=_FILE_START, kind=kind, metadata=metadata, body_start=end, body_bytes=0)
        return message

    def _footer(self) -> tuple[Table, int]:
        tail = _WORD.size + len(_MAGIC)
        if self._size < _FILE_START + tail:
            raise ArrowDamaged("it is too short for an Arrow file")
        self._file.seek(-tail, os.SEEK_END)
        data = self._file.read(tail)
        if not data.endswith(_MAGIC):
            raise ArrowDamaged("it does not end with ARROW1; it is incomplete")
        (length,) = _WORD.unpack_from(data)
        start = self._size - tail - length
        if start < _FILE_START:
            raise ArrowDamaged("its footer is longer than the file")
        self._file.seek(start)
        return Table.root(self._file.read(length)), start

    def _from(self, at: int, end: int) -> Iterator[Message]:
        """Yield the messages from offset ``at`` to ``end`` or to the end-of-stream marker."""
        while at < end and (message := self._message(at, end)) is not None:
            yield message
            at = message.body_start + message.body_bytes

    def _message(self, start: int, end: int) -> Message | None:
        """Return the message at offset ``start``; None at the end-of-stream marker."""
        length, at = self._word(start, end)
        if length == _CONTINUATION:
            length, at = self._word(at, end)
        if not length:
            self.has_end = True
            if has_data(self._file, at, end) if self._is_file else at < end:
                raise ArrowDamaged("it has data after the mark of its end")
            return None
        if length > min(end - at, _METADATA_BYTES):
            raise ArrowDamaged("it is incomplete, or the length of a message is damaged")
        self._file.seek(at)
        metadata = self._file.read(length)
        message = Table.root(metadata)
        body = message.scalar(_BODY_BYTES, "<q")
        if not 0 <= body <= end - at - length:
            raise ArrowDamaged("it is incomplete, or the length of a message is damaged")
        kind = message.scalar(_HEADER_TYPE, "<B")
        if kind not in {_SCHEMA, _DICTIONARY, _BATCH}:
            raise ArrowDamaged("it has a message of an unknown kind")
        return Message(start=start, kind=kind, metadata=metadata, body_start=at + length, body_bytes=body)

    def _word(self, at: int, end: int) -> tuple[int, int]:
        if at + _WORD.size > end:
            raise ArrowDamaged("it is incomplete")
        self._file.seek(at)
        return int(_WORD.unpack(self._file.read(_WORD.size))[0]), at + _WORD.size

    def parts(self) -> Iterator[ArrowPart]:
        """Yield the batches in order, as parts. Consecutive small batches form one part."""
        if self._is_file:  # a file may have its dictionaries anywhere
            dictionaries = [one for one in self._messages if one.kind == _DICTIONARY]
            yield from _parts(dictionaries, [one for one in self._messages if one.kind == _BATCH])
            return
        known: list[Message] = []
        batches: list[Message] = []
        for message in self._messages:
            if message.kind == _BATCH:
                batches.append(message)
                continue
            yield from _parts(known, batches)
            batches = []
            number, is_delta = message.header.scalar(0, "<q"), message.header.scalar(2, "<B")
            known = [one for one in known if is_delta or one.header.scalar(0, "<q") != number] + [message]
        yield from _parts(known, batches)

    def find_faults(self, part: ArrowPart) -> Iterator[tuple[int, str]]:
        """Yield each column that has too few or too many values for a batch: its number, and a clause for an error message."""
        for batch in part.batches:
            header = batch.header
            start, count = header.vector(_NODES, _PAIR)
            node = 0
            for number, column in enumerate(self.columns):
                values = int(header.number("<q", start + node * _PAIR)) if node < count else 0
                if values != batch.rows:
                    yield number, f"it has {values} values for {batch.rows} rows"
                node += column.nodes

    def stream(self, part: ArrowPart, numbers: Sequence[int]) -> bytes:
        """Return the columns ``numbers`` of the batches of ``part`` as a separate stream.

        Raises:
            NotFlatbuffer: a batch lacks parts of its columns.
            OSError: the file can't be read.
        """
        needed = {one for number in numbers for one in self.columns[number].dictionaries}
        pieces = [*self._piece(self._schema, _schema_of(self._schema, numbers))]
        for one in part.dictionaries:
            if one.header.scalar(0, "<q") in needed:
                pieces += self._piece(one, one.metadata)
        for batch in part.batches:
            pieces += self._piece(batch, _batch_of(batch, self.columns, numbers))
        return b"".join([*pieces, _END])

    def _piece(self, message: Message, metadata: bytes) -> tuple[bytes, ...]:
        self._file.seek(message.body_start)
        body = self._file.read(message.body_bytes)
        return (_WORD.pack(_CONTINUATION), _WORD.pack(len(metadata)), metadata, body)


def _parts(dictionaries: Sequence[Message], batches: Sequence[Message]) -> Iterator[ArrowPart]:
    for part in group_parts(batches, lambda one: one.rows, lambda one: one.body_bytes):
        yield ArrowPart(dictionaries=dictionaries, batches=part, rows=sum(one.rows for one in part))


def _blocks(footer: Table, field: int) -> Iterator[tuple[int, int, int]]:
    start, count = footer.vector(field, _BLOCK)
    for at in range(start, start + count * _BLOCK, _BLOCK):
        yield int(footer.number("<q", at)), int(footer.number("<i", at + 8)), int(footer.number("<q", at + 16))


def _schema_of(message: Message, numbers: Sequence[int]) -> bytes:
    """Return the metadata of a schema with only the columns ``numbers``. The offsets of all other columns are removed."""
    metadata = bytearray(message.metadata)
    start, count = message.header.vector(1, 4)
    targets = [at + int(_WORD.unpack_from(metadata, at)[0]) for at in range(start, start + 4 * count, 4)]
    for index, number in enumerate(numbers):
        at = start + 4 * index
        _WORD.pack_into(metadata, at, targets[number] - at)
    _WORD.pack_into(metadata, start - 4, len(numbers))
    return bytes(metadata)


def _batch_of(message: Message, columns: Sequence[ArrowColumn], numbers: Sequence[int]) -> bytes:
    """Return the metadata of a batch with only the columns ``numbers``. The body of the batch needs no change."""
    metadata, batch = bytearray(message.metadata), message.header
    counts_start, count = batch.vector(_VIEW_COUNTS, 8)
    if count != sum(column.views for column in columns):
        raise NotFlatbuffer
    extra = [int(batch.number("<I", counts_start + 8 * index)) for index in range(count)]
    spans: list[tuple[range, range, range]] = []
    node = buffer = view = 0
    for column in columns:
        ends = (
            node + column.nodes,
            buffer + column.buffers + sum(extra[view : view + column.views]),
            view + column.views,
        )
        spans.append((range(node, ends[0]), range(buffer, ends[1]), range(view, ends[2])))
        node, buffer, view = ends
    for index, (field, total, size) in enumerate(
        ((_NODES, node, _PAIR), (_BUFFERS, buffer, _PAIR), (_VIEW_COUNTS, view, 8))
    ):
        start, count = batch.vector(field, size)
        if count != total:
            raise NotFlatbuffer
        if start:
            kept = [
                metadata[start + size * at : start + size * (at + 1)]
                for number in numbers
                for at in spans[number][index]
            ]
            metadata[start : start + size * len(kept)] = b"".join(kept)
            _WORD.pack_into(metadata, start - 4, len(kept))
    return bytes(metadata)
