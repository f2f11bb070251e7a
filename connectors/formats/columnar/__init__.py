"""Parquet and Arrow: files of typed columns, read as exact text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, ClassVar, Literal

from ingestd.sdk.formats import IsolatedFormat
from ingestd.sdk.formats.record_chunk import RecordChunk


class Parquet(IsolatedFormat):
    """An Apache Parquet file."""

    suffixes: ClassVar[tuple[str, ...]] = (".parquet", ".pq")

    type: Literal["parquet"] = "parquet"

    def parse(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        """See `connectors.formats.columnar.parquet.read_parquet`."""
        from connectors.formats.columnar.parquet import read_parquet  # noqa: PLC0415 - imported for a file that is read

        return read_parquet(file, name)


class Arrow(IsolatedFormat):
    """An Apache Arrow file (IPC, Feather 2), or a stream."""

    suffixes: ClassVar[tuple[str, ...]] = (".arrow", ".feather", ".ipc")

    type: Literal["arrow"] = "arrow"

    def parse(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        """See `connectors.formats.columnar.arrow.read_arrow`."""
        from connectors.formats.columnar.arrow import read_arrow  # noqa: PLC0415 - imported for a file that is read

        return read_arrow(file, name)
