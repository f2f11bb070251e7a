"""ReqIF: requirements that tools such as DOORS, Polarion and Capella exchange."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, ClassVar, Literal

from pydantic import Field

from ingestd.sdk.formats import Format, RecordChunk


class ReqIf(Format):
    """A file of the Requirements Interchange Format: requirements or their relations; .reqifz is a zip of such files."""

    suffixes: ClassVar[tuple[str, ...]] = (".reqif", ".reqifz")

    type: Literal["reqif"] = "reqif"
    records: Literal["requirements", "relations"] = Field(
        default="requirements",
        description=(
            "What a record is: a requirement (SPEC-OBJECT), or a relation between two requirements (SPEC-RELATION) with the"
            " fields source and target. Attributes are fields by their names; @IDENTIFIER, @LONG-NAME, @LAST-CHANGE and @DESC are"
            " attributes of the element, @type is the name of its type."
        ),
    )

    def read(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        """See `connectors.formats.reqif.reader.read_reqif`."""
        from connectors.formats.reqif.reader import read_reqif  # noqa: PLC0415 - imported for a file that is read

        return read_reqif(file, name, element=_ELEMENTS[self.records])


_ELEMENTS = {"requirements": "SPEC-OBJECT", "relations": "SPEC-RELATION"}
