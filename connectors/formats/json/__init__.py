"""JSON: an array of objects in one document, or objects at any depth, with values exactly as they are written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, ClassVar, Literal, Self

from pydantic import Field, model_validator

from connectors.formats.nested import ItemId, nested_name
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
            " or is itself the only record. **/parts means the objects in every member called parts, at any depth. **/*"
            " means all objects that have the field id."
        ),
    )
    id: ItemId = ""
    encoding: EncodingName = Field(default=DETECT, description="The encoding of the file; as for csv.")

    @model_validator(mode="after")
    def _records_are_a_path(self) -> Self:
        nested_name(self.records, self.id)
        return self

    def read(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        """See `connectors.formats.json.reader.read_json` and `connectors.formats.json.nested.read_nested`."""
        if nested := nested_name(self.records, self.id):
            from connectors.formats.json.nested import read_nested  # noqa: PLC0415 - imported for a file that is read

            return read_nested(file, name, member=nested, item_id=self.id, encoding=self.encoding)
        from connectors.formats.json.reader import read_json  # noqa: PLC0415 - imported for a file that is read

        return read_json(file, name, path=self.records.split(".") if self.records else (), encoding=self.encoding)
