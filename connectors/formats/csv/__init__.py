"""CSV: rows of text under a header, read as Python's csv module reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, BinaryIO, ClassVar, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from connectors.formats.column_names import Columns, Naming, Repeated, Unnamed, check_columns
from connectors.formats.csv.dialect import Dialect, Layout
from connectors.formats.preamble import DESCRIPTION
from connectors.formats.text import DETECT, EncodingName
from ingestd.sdk.formats import Format, RecordChunk

_Mark = Annotated[str, StringConstraints(pattern=r"^[!-/:-@\[-`{-~\t ]$")]


class Csv(Format):
    """Rows of fields below a header, separated by a comma, a semicolon, a tab or another character."""

    suffixes: ClassVar[tuple[str, ...]] = (".csv", ".tsv", ".tab")

    type: Literal["csv"] = "csv"
    encoding: EncodingName = Field(
        default=DETECT,
        description=(
            "The encoding of the file. `detect` uses the byte order mark, else UTF-8. If no line is UTF-8, it guesses by the"
            " letters (Windows-1252 and others), and reports the guess. A row with bytes that are invalid in the encoding is"
            " rejected. A file with the byte order mark of UTF-8 is UTF-8, whatever the setting."
        ),
    )
    delimiter: Literal["detect"] | _Mark = Field(
        default="detect",
        description='What separates fields; `detect` chooses comma, semicolon, tab ("\\t") or `|` by the first rows.',
    )
    quote: Literal[""] | _Mark = Field(
        default='"', description="What encloses fields that hold separators; empty if quotes are ordinary text."
    )
    comment: Literal[""] | _Mark = Field(
        default="", description="A row that begins with this character is a comment; empty: there are no comments."
    )
    header_row: int | None = Field(
        default=None,
        ge=1,
        description=(
            "The header's row number as a spreadsheet counts. By default the header is the first row. If most rows below it"
            " have more fields, the header is the first row that looks like names and has the same number of fields as most rows."
            " Then no row between the two may have the same number of fields as the first row, unless `preamble` is true, or"
            " that number is 1."
        ),
    )
    header_rows: int = Field(
        default=1,
        ge=1,
        le=10,
        description=(
            "The number of header rows. In the rows above the last one, an empty cell continues the cell on its left. The names"
            " in the header cells of a column are joined by a space. More than 1 needs header_row."
        ),
    )
    columns: Columns = None
    units_row: bool = Field(
        default=False,
        description="Whether the row below the header holds units. A mapping finds them as {units.COLUMN}.",
    )
    preamble: bool = Field(default=False, description=DESCRIPTION)
    ragged: Literal["reject", "fill"] = Field(
        default="reject",
        description=(
            "What happens to a row with too few fields: it is rejected (reject), or read with its last fields absent (fill)."
        ),
    )
    unnamed_columns: Unnamed = "number"
    repeated_columns: Repeated = "refuse"

    @model_validator(mode="after")
    def _check_characters_and_columns(self) -> Self:
        given = [mark for mark in (self.delimiter, self.quote, self.comment) if len(mark) == 1]
        if len(set(given)) < len(given):
            raise ValueError("delimiter, quote and comment must be different characters")
        if self.header_rows > 1 and self.header_row is None:
            raise ValueError("header_rows needs header_row: without it, the header is one row")
        has_header = self.header_row is not None or self.header_rows > 1 or self.units_row or self.preamble
        check_columns(self.columns, has_header=has_header)
        return self

    @property
    def dialect(self) -> Dialect:
        """The dialect. Its delimiter is empty if the delimiter has to be detected."""
        delimiter = "" if self.delimiter == "detect" else self.delimiter
        return Dialect(delimiter=delimiter, quote=self.quote, comment=self.comment)

    @property
    def layout(self) -> Layout:
        """The layout of the rows."""
        return Layout(
            header_row=self.header_row,
            header_rows=self.header_rows,
            columns=tuple(self.columns or ()),
            units_row=self.units_row,
            preamble=self.preamble,
            ragged=self.ragged,
            naming=Naming(unnamed=self.unnamed_columns, repeated=self.repeated_columns),
        )

    def read(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        """See `connectors.formats.csv.reader.read_csv`."""
        return self._read(file, name, None)

    def read_sections(self, file: BinaryIO, name: str, known: Mapping[bytes, int]) -> Iterator[RecordChunk]:
        """See `connectors.formats.csv.sections`."""
        return self._read(file, name, known)

    def _read(self, file: BinaryIO, name: str, known: Mapping[bytes, int] | None) -> Iterator[RecordChunk]:
        from connectors.formats.csv.reader import read_csv  # noqa: PLC0415 - imported for a file that is read

        return read_csv(file, name, dialect=self.dialect, layout=self.layout, encoding=self.encoding, known=known)
