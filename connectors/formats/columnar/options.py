"""The options of Parquet and Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, ClassVar, Literal

import polars as pl

from ingestd.sdk.formats.parser_process import IsolatedFormat
from ingestd.sdk.formats.record_chunk import RecordChunk


class Parquet(IsolatedFormat):
    """An Apache Parquet file."""

    suffixes: ClassVar[tuple[str, ...]] = (".parquet", ".pq")

    type: Literal["parquet"] = "parquet"

    def parse(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        """See `connectors.formats.columnar.reader.read_columnar`."""
        from connectors.formats.columnar.reader import read_columnar  # noqa: PLC0415 - imported for a file that is read

        return read_columnar(file, name, pl.scan_parquet, "Parquet")


class Arrow(IsolatedFormat):
    """An Apache Arrow file (IPC, Feather 2)."""

    suffixes: ClassVar[tuple[str, ...]] = (".arrow", ".feather", ".ipc")

    type: Literal["arrow"] = "arrow"

    def parse(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        """See `connectors.formats.columnar.reader.read_columnar`."""
        from connectors.formats.columnar.reader import read_columnar  # noqa: PLC0415 - imported for a file that is read

        return read_columnar(file, name, pl.scan_ipc, "Arrow")
