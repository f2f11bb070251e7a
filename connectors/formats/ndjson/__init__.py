"""NDJSON: one JSON object in each line, with values exactly as they are written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, ClassVar, Literal

from pydantic import Field

from connectors.formats.text import DETECT, EncodingName
from ingestd.sdk.formats import Format, RecordChunk


class Ndjson(Format):
    """One JSON object in each line."""

    suffixes: ClassVar[tuple[str, ...]] = (".ndjson", ".jsonl")

    type: Literal["ndjson"] = "ndjson"
    encoding: EncodingName = Field(default=DETECT, description="The encoding of the file; as for csv.")

    def read(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        """See `connectors.formats.ndjson.reader.read_ndjson`."""
        from connectors.formats.ndjson.reader import read_ndjson  # noqa: PLC0415 - imported for a file that is read

        return read_ndjson(file, name, encoding=self.encoding)
