"""Details of a sheet of xls (BIFF), by xlrd."""

from __future__ import annotations

import io
import struct
from typing import Any

import xlrd
from xlrd.biffh import XLRDError

from connectors.formats.excel.details import ERRORS, UNKNOWN_ERROR, CellDetails, DateFormat, WorkbookDamaged, date_text
from connectors.formats.excel.number_formats import date_format

# xlrd checks a damaged file by assertions, and by what Python raises where data is missing.
_DAMAGED = (AssertionError, XLRDError, struct.error, IndexError, KeyError, ValueError, TypeError, AttributeError)


def read_xls_details(data: bytes, sheet: str) -> CellDetails:
    """The details of the sheet's cells. What a formula gave is always saved here.

    Raises:
        NotRead: xlrd can't read it.
    """
    try:
        return _details(data, sheet, with_formats=True)
    except _DAMAGED:  # in the formats, perhaps, without which there are all cells but no midnights
        try:
            return _details(data, sheet, with_formats=False)
        except _DAMAGED as error:
            raise WorkbookDamaged(_reason(error)) from error


def _details(data: bytes, sheet: str, *, with_formats: bool) -> CellDetails:
    log = io.StringIO()  # it prints what it finds odd
    with xlrd.open_workbook(file_contents=data, on_demand=True, formatting_info=with_formats, logfile=log) as book:
        return _details_of(book, sheet)


def _details_of(book: xlrd.book.Book, sheet: str) -> CellDetails:
    details = CellDetails()
    cells: Any = book.sheet_by_name(sheet)
    for row in range(cells.nrows):
        for column, kind in enumerate(cells.row_types(row)):
            if kind == xlrd.XL_CELL_ERROR:
                details.problems[row][column] = ERRORS.get(int(cells.cell_value(row, column)), UNKNOWN_ERROR)
            elif kind == xlrd.XL_CELL_DATE:
                serial, shown = cells.cell_value(row, column), _shown(book, cells, row, column)
                if (text := date_text(serial, shown, since_1904=bool(book.datemode))) is not None:
                    details.texts[row][column] = text
    return details


def _shown(book: Any, cells: Any, row: int, column: int) -> DateFormat:
    if not book.formatting_info:
        return DateFormat(has_date=False, has_time=False)
    style = book.xf_list[cells.cell_xf_index(row, column)]
    return date_format(book.format_map[style.format_key].format_str)


def _reason(error: Exception) -> str:
    if isinstance(error, XLRDError):
        return " ".join(str(error).split())
    return "its records contradict each other, as those of a damaged file do"
