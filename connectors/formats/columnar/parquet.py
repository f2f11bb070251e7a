"""The reader of Parquet files: some row groups at a time, with the number of rows checked against the footer.

Each part is read from memory and in one call, because a background read of polars ends early, without an error, if a worker
panics.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO

import polars as pl

from connectors.formats.columnar.parquet_file import ParquetDamaged, ParquetFile, RowGroup
from connectors.formats.columnar.typed_columns import PART_BYTES, ROWS, ColumnsRead, Load, group_parts
from ingestd.sdk import SourceBroken
from ingestd.sdk.formats.record_chunk import RecordChunk


def read_parquet(file: BinaryIO, name: str) -> Iterator[RecordChunk]:
    """Yield the rows of a Parquet file, at least one chunk. Positions are row numbers from 1.

    If a column can't be read, the following chunks list it as ``unreadable``.

    Raises:
        SourceBroken: the file is not a Parquet file, its footer is damaged, or none of its columns can be read.
    """
    try:
        parquet = ParquetFile(file)
    except ParquetDamaged as error:
        raise SourceBroken(f"{name} can't be read as Parquet: {error}.") from error
    columns = parquet.columns
    read = ColumnsRead(name, [one.name for one in columns], [one.leaves for one in columns], rows=parquet.rows)
    for number, column in enumerate(columns):
        if column.refusal:
            read.refuse(number, f"it holds {column.refusal}, which has no text form")
    for groups in group_parts(parquet.groups, lambda one: one.rows, lambda one: one.size):
        for number, column in enumerate(columns):
            if fault := parquet.find_fault(column, groups):
                read.refuse(number, fault)
        part = _Part(parquet, groups)
        for start, count in part.slices():
            yield from read.read(part.load(start, count), count)
    yield from read.end()


class _Part:
    """Row groups that are read together. Holds one in-memory Parquet file with the columns of the last request."""

    def __init__(self, parquet: ParquetFile, groups: Sequence[RowGroup]) -> None:
        self._parquet = parquet
        self._groups = groups
        self._held: tuple[Sequence[int], bytes] = ((), b"")

    def slices(self) -> Iterator[tuple[int, int]]:
        """Yield the first row and the number of rows of each slice to read. Pages that a slice doesn't need are skipped."""
        rows, size = sum(group.rows for group in self._groups), sum(group.size for group in self._groups)
        step = rows if size <= PART_BYTES else max(ROWS, rows * PART_BYTES // size)
        for start in range(0, rows, step):
            yield start, min(step, rows - start)

    def load(self, start: int, count: int) -> Load:
        """Return the function that reads the rows of a slice for given columns."""

        def load(numbers: Sequence[int]) -> pl.DataFrame:
            if self._held[0] != numbers:
                self._held = ((), b"")
                columns = [self._parquet.columns[number] for number in numbers]
                self._held = (numbers, self._parquet.part(self._groups, columns))
            part = pl.scan_parquet(self._held[1], glob=False, use_statistics=False)
            return part.slice(start, count).collect(engine="in-memory")

        return load
