"""Cell details of xls (BIFF), read by xlrd."""

from __future__ import annotations

import io
import struct
from typing import Any

import xlrd
from xlrd.biffh import XLRDError

from ingestd.workbooks.details import (
    ERRORS,
    UNKNOWN_ERROR,
    CellDetails,
    DateFormat,
    WorkbookDamaged,
    date_format,
    date_text,
)

# For a damaged file, xlrd raises assertion errors, or Python's errors for missing data.
_DAMAGED = (AssertionError, XLRDError, struct.error, IndexError, KeyError, ValueError, TypeError, AttributeError)


def read_xls_details(data: bytes, sheet: str) -> CellDetails:
    """Return the details of the sheet's cells. In this format the value of a formula is always saved.

    Raises:
        WorkbookDamaged: xlrd can't read the workbook.
    """
    try:
        return _collect_cells(data, sheet, with_formats=True)
    except (
        _DAMAGED
    ):  # if only the formats are damaged, the cells can be read without formats, but midnights are not recognised
        try:
            return _collect_cells(data, sheet, with_formats=False)
        except _DAMAGED as error:
            raise WorkbookDamaged(_reason(error)) from error


def _collect_cells(data: bytes, sheet: str, *, with_formats: bool) -> CellDetails:
    log = io.StringIO()  # xlrd prints warnings
    with xlrd.open_workbook(file_contents=data, on_demand=True, formatting_info=with_formats, logfile=log) as book:
        return _collect_details(book, sheet)


def _collect_details(book: xlrd.book.Book, sheet: str) -> CellDetails:
    details = CellDetails()
    cells: Any = book.sheet_by_name(sheet)
    for row in range(cells.nrows):
        for column, kind in enumerate(cells.row_types(row)):
            if kind == xlrd.XL_CELL_ERROR:
                details.problems[row][column] = ERRORS.get(int(cells.cell_value(row, column)), UNKNOWN_ERROR)
            elif kind == xlrd.XL_CELL_DATE:
                serial, shown = cells.cell_value(row, column), _shown_format(book, cells, row, column)
                if (text := date_text(serial, shown, since_1904=bool(book.datemode))) is not None:
                    details.texts[row][column] = text
    return details


def _shown_format(book: Any, cells: Any, row: int, column: int) -> DateFormat:
    if not book.formatting_info:
        return DateFormat(has_date=False, has_time=False)
    style = book.xf_list[cells.cell_xf_index(row, column)]
    return date_format(book.format_map[style.format_key].format_str)


def _reason(error: Exception) -> str:
    if isinstance(error, XLRDError):
        return " ".join(str(error).split())
    return "its records contradict each other, so the file is damaged"
