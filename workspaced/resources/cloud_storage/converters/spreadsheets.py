"""Converter of workbooks (xlsx, xlsm, xls, ods) to a Parquet file and a JSON preview for each sheet.

Numbers stay binary floating point, as in the workbook. A cell with an error, such as #N/A, becomes empty.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import polars as pl
from python_calamine import CalamineError, CalamineSheet, CalamineWorkbook, SheetTypeEnum

from ingestd.workbooks.workbook import WorkbookUnreadable, detect_kind, open_book, read_workbook
from workspaced.resources.cloud_storage.converters.results import ConversionRefused, Outputs, Produced
from workspaced.resources.cloud_storage.converters.tables import PARQUET, column_names, of_cells, write_preview

SHEETS: Final = 50
UNPACKED_BYTES: Final = 536_870_912
_NOT_IN_NAMES = str.maketrans(dict.fromkeys('/\\:*?"<>|', "_"))


def convert(source: Path, into: Path) -> list[Produced]:
    """Make two files for each sheet with cells; see `Convert`."""
    outputs = Outputs(into)
    require_convertible(source)
    try:
        with source.open("rb") as file:
            whole = read_workbook(file, "The file")
        workbook = open_book(whole, detect_kind(whole, "The file"), "The file")
        for name in _sheet_names(workbook):
            _convert_sheet(workbook.get_sheet_by_name(name), outputs)
    except WorkbookUnreadable as error:
        raise ConversionRefused("user", str(error)) from error
    except (CalamineError, OSError, ValueError) as error:
        raise ConversionRefused("user", f"The workbook can't be read: it is damaged ({error}).") from error
    if not outputs.made:
        raise ConversionRefused("user", "The workbook has no sheet with cells in it.")
    return outputs.made


def require_convertible(source: Path) -> None:
    """Check a file before it is unpacked. Raises ConversionRefused: it is too large when unpacked."""
    with suppress(zipfile.BadZipFile, OSError, ValueError), zipfile.ZipFile(source) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())
        if unpacked > UNPACKED_BYTES:
            raise ConversionRefused(
                "unsupported", f"The workbook unpacks to {unpacked} bytes; up to {UNPACKED_BYTES} are converted."
            )


def _sheet_names(workbook: CalamineWorkbook) -> list[str]:
    """Return the names of the worksheets, without chart sheets. Raises ConversionRefused: there are too many worksheets."""
    sheets = [sheet.name for sheet in workbook.sheets_metadata if sheet.typ == SheetTypeEnum.WorkSheet]
    if len(sheets) > SHEETS:
        raise ConversionRefused("unsupported", f"The workbook has {len(sheets)} sheets; up to {SHEETS} are converted.")
    return sheets


def _convert_sheet(sheet: CalamineSheet, outputs: Outputs) -> None:
    rows = _rows_of(sheet)
    first = next(rows, None)
    if first is None:
        return
    second = next(rows, None)
    names, has_header = column_names(first, more=second is not None)
    columns: list[list[Any]] = [[] for _ in names]
    for row in (*(() if has_header else (first,)), *(() if second is None else (second,))):
        _append(columns, row)
    for row in rows:
        _append(columns, row)
    frame = pl.DataFrame([of_cells(name, cells) for name, cells in zip(names, columns, strict=True)])
    stem = sheet.name.translate(_NOT_IN_NAMES)
    parquet = outputs.place(f"{stem}.parquet", PARQUET)
    frame.write_parquet(parquet)
    write_preview(parquet, outputs, f"{stem}.json", sheet=sheet.name, header=has_header)


def _rows_of(sheet: CalamineSheet) -> Iterator[list[Any]]:
    """Yield the rows of a sheet from the first row that has a cell with a value. An empty cell is None."""
    started = False
    for row in sheet.iter_rows():
        cells = [None if cell == "" else cell for cell in row]
        started = started or any(cell is not None for cell in cells)
        if started:
            yield cells


def _append(columns: list[list[Any]], row: list[Any]) -> None:
    for column, cell in zip(columns, row, strict=True):
        column.append(cell)
