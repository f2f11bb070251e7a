"""Spreadsheets (xlsx, xlsm, xlsb, xls and ods): one sheet is read as rows under a header."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, BinaryIO, ClassVar, Literal, Self

from pydantic import Field, model_validator

from connectors.formats.column_names import Columns, Naming, Repeated, Unnamed, check_columns
from connectors.formats.excel.area import Area, parse_area
from connectors.formats.preamble import DESCRIPTION
from connectors.option_types import checked_by
from ingestd.sdk.formats import IsolatedFormat
from ingestd.sdk.formats.record_chunk import RecordChunk


class Excel(IsolatedFormat):
    """A sheet of a workbook: xlsx, xlsm, xlsb, xls or ods."""

    suffixes: ClassVar[tuple[str, ...]] = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")

    type: Literal["excel"] = "excel"
    sheet: Annotated[str, Field(min_length=1)] | Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="The sheet's name, or its number from 1. Default: the first visible sheet with cells."
    )
    area: Annotated[str, checked_by(parse_area)] | None = Field(
        default=None, description="The cells to read, such as B3:H200, or B3:H for all rows from the third on."
    )
    header_row: int | None = Field(
        default=None, ge=1, description="The header's row number. Default: the first row that is not empty."
    )
    header_rows: int = Field(
        default=1,
        ge=1,
        le=10,
        description=(
            "The number of header rows. A merged cell belongs to each of its columns. The names in the header cells of a column"
            " are joined by a space."
        ),
    )
    columns: Columns = None
    units_row: bool = Field(
        default=False,
        description="Whether the row below the header holds units. A mapping finds them as {units.COLUMN}.",
    )
    preamble: bool = Field(default=False, description=f"{DESCRIPTION} It needs header_row.")
    errors: Literal["reject", "missing"] = Field(
        default="reject",
        description=(
            "What happens to a row with an error such as #N/A, or with a formula that has no saved value. It is rejected"
            " (reject), or read without that cell (missing)."
        ),
    )
    unnamed_columns: Unnamed = "number"
    repeated_columns: Repeated = "refuse"

    @model_validator(mode="after")
    def _check_header(self) -> Self:
        has_header = self.header_row is not None or self.header_rows > 1 or self.units_row or self.preamble
        check_columns(self.columns, has_header=has_header)
        if self.preamble and self.header_row is None:
            raise ValueError("preamble needs header_row: by default the first row that is not empty is the header")
        return self

    def parse(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        """See `connectors.formats.excel.reader.read_excel`."""
        from connectors.formats.excel.reader import SheetLayout, read_excel  # noqa: PLC0415 - imported for a file that is read

        layout = SheetLayout(
            area=parse_area(self.area) if self.area else Area(),
            header_row=self.header_row,
            header_rows=self.header_rows,
            columns=tuple(self.columns or ()),
            units_row=self.units_row,
            preamble=self.preamble,
            errors=self.errors,
            naming=Naming(unnamed=self.unnamed_columns, repeated=self.repeated_columns),
        )
        return read_excel(file, name, sheet=self.sheet, layout=layout)
