"""Fixed width as a format that can be configured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, BinaryIO, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from connectors.formats.fixed_width.reader import Column, read_fixed_width
from connectors.formats.format import Format
from connectors.formats.record_chunk import RecordChunk
from connectors.formats.text import DETECT, EncodingName


class FixedColumn(BaseModel):
    """A field of a fixed-width file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1, description="The field's name.")
    start: int = Field(ge=1, description="The character at which it begins, counted from 1.")
    width: int = Field(ge=1, description="How many characters it has.")


class FixedWidth(Format):
    """Lines whose fields are known by where they stand. No end of a name tells it: it must be configured."""

    suffixes: ClassVar[tuple[str, ...]] = ()

    type: Literal["fixed_width"] = "fixed_width"
    columns: Annotated[list[FixedColumn], Field(min_length=1)] = Field(description="The fields of a line.")
    skip_rows: int = Field(default=0, ge=0, description="How many lines above the first record to pass over.")
    trim: bool = Field(default=True, description="Whether the spaces that pad a field are left out of its value.")
    encoding: EncodingName = Field(default=DETECT, description="In which encoding the file is; as of csv.")

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        if len({column.name for column in self.columns}) < len(self.columns):
            raise ValueError("columns names a field twice")
        return self

    def read(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        """As `connectors.formats.fixed_width.reader.read_fixed_width`."""
        columns = [Column(column.name, column.start, column.width) for column in self.columns]
        return read_fixed_width(file, name, columns, skip_rows=self.skip_rows, trim=self.trim, encoding=self.encoding)
