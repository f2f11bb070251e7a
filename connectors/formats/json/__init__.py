"""JSON: an array of objects in one document, with values exactly as they are written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, ClassVar, Literal

from pydantic import Field

from connectors.formats.text import DETECT, EncodingName
from ingestd.sdk.formats import Format, RecordChunk


class Json(Format):
    """One JSON document that holds an array of records, or is one record."""

    suffixes: ClassVar[tuple[str, ...]] = (".json",)

    type: Literal["json"] = "json"
    records: str = Field(
        default="",
        description=(
            "The path to the array of records: names joined by dots, such as results.rows. Empty: the document is the array,"
            " or is itself the only record."
        ),
    )
    encoding: EncodingName = Field(default=DETECT, description="The encoding of the file; as for csv.")

    def read(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        """See `connectors.formats.json.reader.read_json`."""
        from connectors.formats.json.reader import read_json  # noqa: PLC0415 - imported for a file that is read

        return read_json(file, name, path=self.records.split(".") if self.records else (), encoding=self.encoding)
