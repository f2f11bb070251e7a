"""XML: each element at one path of a document, or at any depth, is a record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, BinaryIO, ClassVar, Literal, Self

from pydantic import Field, model_validator

from connectors.formats.nested import ItemId, nested_name
from ingestd.sdk.formats import Format, RecordChunk


class Xml(Format):
    """An XML document; the elements at a path are its records."""

    suffixes: ClassVar[tuple[str, ...]] = (".xml",)

    type: Literal["xml"] = "xml"
    records: str = Field(
        default="*",
        pattern=r"^[^/\s]+(/[^/\s]+)*$",
        description=(
            "The path from below the root to the elements that are records, such as results/row; * means any name. **/Item"
            " means the elements Item at any depth, also inside an Item. Names are without namespace. Each child of a record is"
            " a field, attributes are @name, nested names are joined by dots."
        ),
    )
    id: ItemId = ""
    lists: tuple[Annotated[str, Field(pattern=r"^[^/\s]+(/[^/\s]+)*$")], ...] = Field(
        default=(),
        description=(
            "Paths from a record to elements that may be repeated, such as part or part/property. They become a JSON list of"
            " objects, for 'each' of a mapping."
        ),
        examples=[["part", "part/property"]],
    )

    @model_validator(mode="after")
    def _records_are_a_path(self) -> Self:
        nested_name(self.records, self.id)
        return self

    def read(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        """See `connectors.formats.xml.reader.read_xml` and `connectors.formats.xml.nested.read_nested`."""
        if nested := nested_name(self.records, self.id):
            from connectors.formats.xml.nested import read_nested  # noqa: PLC0415 - imported for a file that is read

            return read_nested(file, name, element=nested, item_id=self.id, lists=self.lists)
        from connectors.formats.xml.reader import read_xml  # noqa: PLC0415 - imported for a file that is read

        return read_xml(file, name, path=self.records.split("/"), lists=self.lists)
