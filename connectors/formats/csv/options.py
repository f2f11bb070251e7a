"""CSV as a format that can be configured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, BinaryIO, ClassVar, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from connectors.formats.column_names import Naming
from connectors.formats.csv.dialect import Dialect
from connectors.formats.csv.layout import Layout
from connectors.formats.csv.reader import read_csv
from connectors.formats.format import Format
from connectors.formats.record_chunk import RecordChunk
from connectors.formats.text import DETECT, EncodingName

_Mark = Annotated[str, StringConstraints(pattern=r"^[!-/:-@\[-`{-~\t ]$")]


class Csv(Format):
    """Rows of fields under a header: comma, semicolon, tab or whatever separates them."""

    suffixes: ClassVar[tuple[str, ...]] = (".csv", ".tsv", ".tab")

    type: Literal["csv"] = "csv"
    encoding: EncodingName = Field(
        default=DETECT,
        description=(
            "In which encoding the file is. `detect` goes by its byte order mark, else takes it for UTF-8 unless no line of it"
            " is; then it guesses by the letters (Windows-1252 and others), and the guess is on record. A row with bytes that"
            " the encoding does not know is rejected."
        ),
    )
    delimiter: Literal["detect"] | _Mark = Field(
        default="detect",
        description='What separates fields; `detect` chooses comma, semicolon, tab ("\\t") or bar by the first rows.',
    )
    quote: Literal[""] | _Mark = Field(
        default='"', description="What encloses fields that hold separators; empty where quotes are ordinary text."
    )
    comment: Literal[""] | _Mark = Field(
        default="", description="A row that begins with this character is no record; empty: there are no such rows."
    )
    header_row: int | None = Field(
        default=None,
        ge=1,
        description=(
            "The header's row number as a spreadsheet counts. Without it the header is the first row, or, where all rows below"
            " have more fields than that, the first row that has as many and looks like names."
        ),
    )
    columns: list[Annotated[str, Field(min_length=1)]] | None = Field(
        default=None, min_length=1, description="The columns' names where the file has no header."
    )
    units_row: bool = Field(
        default=False,
        description="Whether the row below the header holds units. A mapping finds them as {units.COLUMN}.",
    )
    ragged: Literal["park", "fill"] = Field(
        default="park",
        description="What becomes of a row with too few fields: parked, or taken with its last fields absent.",
    )
    unnamed_columns: Literal["number", "refuse"] = Field(
        default="number",
        description="Columns without a name: called `column 3`, or the file is not read.",
    )
    repeated_columns: Literal["refuse", "number"] = Field(
        default="refuse",
        description="A name that two columns have: the file is not read, or the second is called `mass 2`.",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        given = [mark for mark in (self.delimiter, self.quote, self.comment) if len(mark) == 1]
        if len(set(given)) < len(given):
            raise ValueError("delimiter, quote and comment must be different characters")
        if self.columns is not None:
            if self.header_row is not None or self.units_row:
                raise ValueError("columns is for files without a header: leave out header_row and units_row")
            if len(set(self.columns)) < len(self.columns):
                raise ValueError("columns names a column twice")
        return self

    @property
    def dialect(self) -> Dialect:
        """The dialect, without a delimiter where that is to be found out."""
        delimiter = "" if self.delimiter == "detect" else self.delimiter
        return Dialect(delimiter=delimiter, quote=self.quote, comment=self.comment)

    @property
    def layout(self) -> Layout:
        """Where the columns' names come from, and what becomes of what does not fit them."""
        return Layout(
            header_row=self.header_row,
            columns=tuple(self.columns or ()),
            units_row=self.units_row,
            ragged=self.ragged,
            naming=Naming(unnamed=self.unnamed_columns, repeated=self.repeated_columns),
        )

    def read(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        """As `connectors.formats.csv.reader.read_csv`."""
        return read_csv(file, name, dialect=self.dialect, layout=self.layout, encoding=self.encoding)
