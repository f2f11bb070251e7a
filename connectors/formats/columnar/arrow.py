"""The reader of Arrow files and streams: a batch at a time, with its number of rows checked against its metadata."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import polars as pl
from msgspec.structs import replace

from connectors.formats.columnar.arrow_file import ArrowDamaged, ArrowFile, ArrowPart
from connectors.formats.columnar.flatbuffer import NotFlatbuffer
from connectors.formats.columnar.typed_columns import ColumnsRead, Load
from ingestd.sdk import NOTICE, SourceBroken
from ingestd.sdk.formats.record_chunk import RecordChunk

_NO_END = "The stream has no mark of its end, so it may be incomplete."


def read_arrow(file: BinaryIO, name: str) -> Iterator[RecordChunk]:
    """Yield the rows of an Arrow file or stream, at least one chunk. Positions are row numbers from 1.

    If a column can't be read, the following chunks list it as ``unreadable``.

    Raises:
        SourceBroken: the file is no Arrow file or stream, is damaged or cut, or none of its columns can be read.
    """
    try:
        arrow = ArrowFile(file)
        columns = arrow.columns
        read = ColumnsRead(name, [one.name for one in columns], [one.leaves for one in columns], rows=arrow.rows)
        for number, column in enumerate(columns):
            if column.refusal:
                read.refuse(number, f"it holds {column.refusal}, which can't be read")
        for part in arrow.parts():
            for number, fault in arrow.find_faults(part):
                read.refuse(number, fault)
            yield from _noted(read.read(_loader(arrow, part), part.rows), arrow)
        yield from _noted(read.end(), arrow)
    except (ArrowDamaged, NotFlatbuffer) as error:
        why = str(error) or "its metadata is damaged"
        raise SourceBroken(f"{name} can't be read as Arrow: {why}.") from error


def _loader(arrow: ArrowFile, part: ArrowPart) -> Load:
    return lambda numbers: pl.read_ipc_stream(arrow.stream(part, numbers))


def _noted(chunks: Iterator[RecordChunk], arrow: ArrowFile) -> Iterator[RecordChunk]:
    """Yield the chunks. If a stream has no end mark, each chunk has a notice about this."""
    return chunks if arrow.has_end else (replace(chunk, facts={NOTICE: _NO_END}) for chunk in chunks)
