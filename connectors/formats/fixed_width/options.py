"""The options of fixed width."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, BinaryIO, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from connectors.formats.text import DETECT, EncodingName
from ingestd.sdk.formats.format import Format
from ingestd.sdk.formats.record_chunk import RecordChunk


class FixedColumn(BaseModel):
    """A field of a fixed-width file."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    name: str = Field(min_length=1, description="The field's name.")
    start: int = Field(ge=1, description="The position of its first character, from 1.")
    width: int = Field(ge=1, description="The number of its characters.")


class FixedWidth(Format):
    """Lines with fields at fixed positions. No suffix implies this format, so it must be configured."""

    suffixes: ClassVar[tuple[str, ...]] = ()

    type: Literal["fixed_width"] = "fixed_width"
    columns: Annotated[list[FixedColumn], Field(min_length=1)] = Field(description="The fields of a line.")
    skip_rows: int = Field(default=0, ge=0, description="The number of lines above the first record that are skipped.")
    preamble: bool = Field(
        default=False,
        description="Whether skipped lines such as `Operator: J. Doe` are facts of the file; as for csv. It needs skip_rows.",
    )
    trim: bool = Field(default=True, description="Whether the spaces around a value are removed.")
    encoding: EncodingName = Field(default=DETECT, description="The encoding of the file; as for csv.")

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        if len({column.name for column in self.columns}) < len(self.columns):
            raise ValueError("columns has a name twice")
        if self.preamble and not self.skip_rows:
            raise ValueError("preamble needs skip_rows, the number of lines above the first record")
        return self

    def read(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        """See `connectors.formats.fixed_width.reader.read_fixed_width`."""
        # Imported for a file that is read.
        from connectors.formats.fixed_width.reader import Column, read_fixed_width  # noqa: PLC0415

        columns = [Column(column.name, column.start, column.width) for column in self.columns]
        return read_fixed_width(
            file,
            name,
            columns,
            skip_rows=self.skip_rows,
            preamble=self.preamble,
            trim=self.trim,
            encoding=self.encoding,
        )
