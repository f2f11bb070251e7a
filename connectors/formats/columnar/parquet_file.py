"""Reads the footer of a Parquet file, and builds small in-memory files for polars from parts of the file."""

from __future__ import annotations

import base64
import binascii
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO

import msgspec
from msgspec.structs import replace

from connectors.formats.columnar.arrow_schema import stored_leaves
from connectors.formats.columnar.flatbuffer import NotFlatbuffer, Table
from connectors.formats.columnar.parquet_schema import BadSchema, ParquetColumn, numbered, read_columns
from connectors.formats.columnar.text import TYPED, Leaf
from connectors.formats.columnar.thrift_compact import (
    BINARY,
    I32,
    I64,
    LIST,
    STRUCT,
    Fields,
    NotCompact,
    read_struct,
    write_struct,
)

_MAGIC, _ENCRYPTED = b"PAR1", b"PARE"
_TAIL = struct.Struct("<I4s")

_VERSION, _SCHEMA, _ROWS, _GROUPS, _PAIRS = 1, 2, 3, 4, 5
_CHUNKS, _TOTAL_BYTES, _GROUP_ROWS = 1, 2, 3
_FILE_PATH, _CHUNK_OFFSET, _META, _CRYPTO = 1, 2, 3, 8
_TYPE, _PATH, _VALUES, _COMPRESSED, _DATA_OFFSET, _DICTIONARY_OFFSET = 1, 3, 5, 7, 9, 11
_OFFSET_INDEX, _COLUMN_INDEX, _BLOOM_FILTER = 4, 6, 14
"""The fields with the offsets of the indexes and the Bloom filter of a column chunk. The next field is the length."""
_META_KEPT = (1, 2, 3, 4, 5, 6, 7, 9, 11)
"""The fields of a column chunk that polars needs. Statistics are left out, because they may be damaged and are not used."""
_INT96, _FIXED = 3, 7
_ARROW_SCHEMA, _ARROW_HEADER, _ARROW_HEAD = b"ARROW:schema", 2, 8
"""The metadata key of the message with Arrow's schema, the field of its header, and the number of bytes before the message."""


class ParquetDamaged(Exception):
    """The file is not a Parquet file, or its footer is damaged. The text of the exception describes the fault."""


class ColumnChunk(msgspec.Struct, frozen=True, kw_only=True):
    """The pages of a leaf in a row group, and the facts about these pages in the footer.

    ``fault``: why the pages can't be read, or empty.
    """

    start: int
    size: int
    values: int
    meta: Fields
    fault: str


class RowGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A row group. ``size``: the number of bytes of its values. ``chunks``: one chunk for each leaf."""

    rows: int
    size: int
    chunks: Sequence[ColumnChunk]


class ParquetFile:
    """The checked footer of an open file: the counts of rows agree, and each row group has a chunk for each leaf."""

    def __init__(self, file: BinaryIO) -> None:
        """Read the footer.

        Raises:
            ParquetDamaged: the file is not a Parquet file, or its footer is damaged.
        """
        self._file = file
        try:
            footer = read_struct(self._footer())
            stored = _stored_leaves({bytes(one[1][1]): bytes(one[2][1]) for one in _pairs(footer)})
            self.columns = [_with_leaf(one, stored) for one in read_columns(footer[_SCHEMA][1][1])]
            self.rows = int(footer[_ROWS][1])
            stored_groups = footer[_GROUPS][1][1] if _GROUPS in footer else ()
            groups = [_row_group(group, self._end) for group in stored_groups]
            ends = [_content_end(chunk) for group in stored_groups for chunk in group[_CHUNKS][1][1]]
        except (NotCompact, BadSchema) as error:
            raise ParquetDamaged(f"its footer is damaged: {error}") from error
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise ParquetDamaged("its footer is damaged") from error  # a value has another type, or is missing
        self.groups = [group for group in groups if group.rows]
        self._check()
        self._check_single(max(ends, default=len(_MAGIC)))

    def _footer(self) -> bytes:
        size = self._file.seek(0, os.SEEK_END)
        if size < len(_MAGIC) + _TAIL.size:
            raise ParquetDamaged("it is too short for a Parquet file")
        self._file.seek(-_TAIL.size, os.SEEK_END)
        length, magic = _TAIL.unpack(self._file.read(_TAIL.size))
        if magic == _ENCRYPTED:
            raise ParquetDamaged("its footer is encrypted")
        if magic != _MAGIC:
            raise ParquetDamaged("it does not end with PAR1; it is incomplete or of another format")
        if length > size - len(_MAGIC) - _TAIL.size:
            raise ParquetDamaged("its footer is longer than the file")
        self._end = size - _TAIL.size - length
        self._file.seek(self._end)
        return self._file.read(length)

    def _check(self) -> None:
        leaves = sum(len(column.leaves) for column in self.columns)
        counted = sum(group.rows for group in self.groups)
        if counted != self.rows:
            raise ParquetDamaged(f"its footer counts {self.rows} rows, but its row groups have {counted}")
        for group in self.groups:
            if group.rows < 0 or len(group.chunks) != leaves:
                raise ParquetDamaged("a row group does not have the columns of the footer")

    def _check_single(self, content_end: int) -> None:
        """Check that no other file precedes this one. The offsets of the last footer would lead to its pages."""
        begin = self._end - content_end
        self._file.seek(max(0, begin - len(_MAGIC)))
        if begin and self._file.read(2 * len(_MAGIC)) == 2 * _MAGIC:
            raise ParquetDamaged("it is several Parquet files that were joined. Drop each file alone")

    def find_fault(self, column: ParquetColumn, groups: Sequence[RowGroup]) -> str:
        """Return why a column of some row groups can't be read, as a clause; empty if no fault is found."""
        for group in groups:
            for chunk in self._chunks(column, group):
                if chunk.fault:
                    return chunk.fault
                if column.flat and chunk.values != group.rows:
                    return f"it has {chunk.values} values for {group.rows} rows"
        return ""

    def part(self, groups: Sequence[RowGroup], columns: Sequence[ParquetColumn]) -> bytes:
        """Return ``groups``, with only ``columns``, as a separate Parquet file.

        Raises:
            OSError: the file can't be read.
        """
        out = bytearray(_MAGIC)
        written: list[Fields] = []
        for group in groups:
            chunks = [
                self._copied(chunk, (str(index).encode(), *path[1:]), out)
                for index, column in enumerate(columns)
                for chunk, path in zip(self._chunks(column, group), column.paths, strict=True)
            ]
            written.append(
                {_CHUNKS: (LIST, (STRUCT, chunks)), _TOTAL_BYTES: (I64, group.size), _GROUP_ROWS: (I64, group.rows)}
            )
        footer = write_struct(
            {
                _VERSION: (I32, 1),
                _SCHEMA: (LIST, (STRUCT, numbered(columns))),
                _ROWS: (I64, sum(group.rows for group in groups)),
                _GROUPS: (LIST, (STRUCT, written)),
            }
        )
        out += footer
        out += _TAIL.pack(len(footer), _MAGIC)
        return bytes(out)

    def _chunks(self, column: ParquetColumn, group: RowGroup) -> Sequence[ColumnChunk]:
        return group.chunks[column.first : column.first + len(column.leaves)]

    def _copied(self, chunk: ColumnChunk, path: tuple[bytes, ...], out: bytearray) -> Fields:
        """Append the pages of a chunk to ``out``, and return the chunk with its new offsets."""
        shift = len(out) - chunk.start
        self._file.seek(chunk.start)
        out += self._file.read(chunk.size)
        kept: Fields = {number: chunk.meta[number] for number in _META_KEPT if number in chunk.meta}
        kept[_PATH] = (LIST, (BINARY, list(path)))
        for number in (_DATA_OFFSET, _DICTIONARY_OFFSET):
            if number in kept and kept[number][1] > 0:
                kept[number] = (I64, kept[number][1] + shift)
            else:
                kept.pop(number, None)
        if kept[_TYPE][1] == _INT96:
            kept[_TYPE] = (I32, _FIXED)
        return {_CHUNK_OFFSET: (I64, chunk.start + shift), _META: (STRUCT, kept)}


def _stored_leaves(metadata: Mapping[bytes, bytes]) -> Mapping[str, Leaf]:
    """Return leaves by column name from the schema that Arrow's writers store; empty if this schema is missing or damaged."""
    try:
        message = base64.b64decode(metadata.get(_ARROW_SCHEMA, b""))
        header = Table.root(message[_ARROW_HEAD:]).table(_ARROW_HEADER)
        return stored_leaves(header) if header is not None else {}
    except (binascii.Error, NotFlatbuffer):
        return {}


def _with_leaf(column: ParquetColumn, stored: Mapping[str, Leaf]) -> ParquetColumn:
    """Return the column with its leaf in ``stored``, if Arrow writes this kind of leaf as the column's type in Parquet."""
    leaf = stored.get(column.name, TYPED)
    if column.leaves != [TYPED] or leaf.kind != column.may_be:
        return column
    return replace(column, leaves=[leaf])


def _row_group(fields: Fields, end: int) -> RowGroup:
    return RowGroup(
        rows=int(fields[_GROUP_ROWS][1]),
        size=int(fields[_TOTAL_BYTES][1]),
        chunks=[_column_chunk(chunk, end) for chunk in fields[_CHUNKS][1][1]],
    )


def _column_chunk(fields: Fields, end: int) -> ColumnChunk:
    """Return a column chunk. ``end``: the offset at which the pages of the file end."""
    if _CRYPTO in fields or _META not in fields:
        return ColumnChunk(start=0, size=0, values=0, meta={}, fault="it is encrypted")
    meta: Fields = fields[_META][1]
    starts = [int(meta[number][1]) for number in (_DATA_OFFSET, _DICTIONARY_OFFSET) if number in meta]
    start, size = min(one for one in starts if one > 0), int(meta[_COMPRESSED][1])
    fault = "its values are in another file" if _FILE_PATH in fields else ""
    if max(starts) >= start + size or start + size > end:
        fault = fault or "its values are beyond the end of the file"
    return ColumnChunk(start=start, size=size, values=int(meta[_VALUES][1]), meta=meta, fault=fault)


def _content_end(chunk: Fields) -> int:
    """Return the end of the pages, indexes and Bloom filter of a column chunk."""
    meta: Fields = chunk[_META][1] if _META in chunk else {}
    starts = [meta[number] for number in (_DICTIONARY_OFFSET, _DATA_OFFSET) if number in meta and meta[number][1] > 0]
    ranges = [(start, meta[_COMPRESSED]) for start in starts[:1]]
    ranges += [
        (fields[at], fields[at + 1])
        for fields, at in ((chunk, _OFFSET_INDEX), (chunk, _COLUMN_INDEX), (meta, _BLOOM_FILTER))
        if at in fields and at + 1 in fields
    ]
    return max((int(start[1]) + int(size[1]) for start, size in ranges), default=0)


def _pairs(footer: Fields) -> Iterator[Fields]:
    return (pair for pair in (footer[_PAIRS][1][1] if _PAIRS in footer else ()) if len(pair) > 1)
