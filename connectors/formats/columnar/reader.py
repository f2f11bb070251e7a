"""Parquet and Arrow files, a stretch of rows at a time, by the columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import UnsupportedOperation
from typing import IO, BinaryIO

import polars as pl

from connectors.formats.columnar.text import ColumnNotText, as_text
from connectors.formats.record_chunk import RecordChunk, RecordLocation
from ingestd.sdk import SourceBroken

ROWS = 50_000

Scan = Callable[[str | IO[bytes]], pl.LazyFrame]


def read_columnar(file: BinaryIO, name: str, scan: Scan, kind: str) -> Iterator[RecordChunk]:
    """The rows of a file of typed columns; at least one stretch. Positions are row numbers from 1.

    Raises:
        SourceBroken: it is not of this kind, is damaged, or has a column that can't be written as text.
    """
    place = RecordLocation()
    try:
        frames = scan(_source(file)).collect_batches(chunk_size=ROWS, maintain_order=True)
        nothing = True
        for frame in frames:
            nothing = False
            chunk = _chunk(as_text(frame), place)
            place = chunk.end
            yield chunk
        if nothing:
            yield _chunk(as_text(scan(_source(file)).limit(0).collect()), place)
    except ColumnNotText as error:
        raise SourceBroken(f"{name}: {error}. Leave the column out, or write it as text.") from error
    except (pl.exceptions.PolarsError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk failed, not the file
        raise SourceBroken(f"{name} can't be read as {kind}: {str(error).splitlines()[0]}") from error


def _source(file: BinaryIO) -> str | IO[bytes]:
    """The open file itself, wherever its name leads by now: the reader jumps about in it."""
    try:
        return f"/proc/self/fd/{file.fileno()}"
    except (UnsupportedOperation, AttributeError):  # bytes in memory
        return file


def _chunk(records: pl.DataFrame, place: RecordLocation) -> RecordChunk:
    end = RecordLocation(offset=place.offset + records.height, row=place.row + records.height)
    positions = pl.int_range(place.row + 1, end.row + 1, dtype=pl.Int64, eager=True).alias("position")
    return RecordChunk(records=records, positions=positions, rejects=(), end=end, header=True)
