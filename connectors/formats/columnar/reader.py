"""The reader of Parquet and Arrow files: a chunk of rows at a time, by columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import UnsupportedOperation
from typing import IO, BinaryIO, TypeAlias

import polars as pl

from connectors.formats.columnar.text import ColumnNotText, columns_as_text
from ingestd.sdk import SourceBroken
from ingestd.sdk.formats.record_chunk import RecordChunk, RecordLocation, row_positions

ROWS = 50_000

Scan: TypeAlias = "Callable[[str | IO[bytes]], pl.LazyFrame]"


def read_columnar(file: BinaryIO, name: str, scan: Scan, kind: str) -> Iterator[RecordChunk]:
    """Yield the rows of a file of typed columns, at least one chunk. Positions are row numbers from 1.

    Raises:
        SourceBroken: the file is not of this kind, is damaged, or has a column that can't be written as text.
    """
    location = RecordLocation()
    try:
        frames = scan(_scan_source(file)).collect_batches(chunk_size=ROWS, maintain_order=True)
        is_empty = True
        for frame in frames:
            is_empty = False
            chunk = _chunk(columns_as_text(frame), location)
            location = chunk.end
            yield chunk
        if is_empty:
            yield _chunk(columns_as_text(scan(_scan_source(file)).limit(0).collect()), location)
    except ColumnNotText as error:
        raise SourceBroken(f"{name}: {error}. Leave the column out, or write it as text.") from error
    except (pl.exceptions.PolarsError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk failed, not the file
        raise SourceBroken(f"{name} can't be read as {kind}: {str(error).splitlines()[0]}") from error


def _scan_source(file: BinaryIO) -> str | IO[bytes]:
    """Return the path of the open file itself, for a reader that seeks.

    The file's name may belong to another file now.
    """
    try:
        return f"/proc/self/fd/{file.fileno()}"
    except (UnsupportedOperation, AttributeError):  # the file is in memory
        return file


def _chunk(records: pl.DataFrame, location: RecordLocation) -> RecordChunk:
    end = RecordLocation(offset=location.offset + records.height, row=location.row + records.height)
    positions = row_positions(range(location.row + 1, end.row + 1))
    return RecordChunk(records=records, positions=positions, rejects=(), end=end, header=True)
