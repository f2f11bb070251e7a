"""Where a sheet has error cells (#N/A, #DIV/0! ...). calamine shows them as empty, and an error is not nothing."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import BinaryIO, TypeAlias
from xml.etree.ElementTree import Element, ParseError

import xlrd
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import iterparse
from xlrd.biffh import XLRDError

from connectors.formats.excel.area import place_of

Cell: TypeAlias = tuple[int, int]
"""Row and column, both from 0."""

_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_CALC = "{urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0}"
_CHUNK_BYTES = 2**20


class NotRead(Exception):
    """The workbook's parts are not what they should be; the message ends a sentence."""


def error_cells(file: BinaryIO, sheet: str) -> Mapping[Cell, str]:
    """The error of each error cell of the sheet; ``file`` is a workbook of any kind.

    Raises:
        NotRead: it is damaged, or its XML is made to harm.
    """
    try:
        return _found(file, sheet)
    except DefusedXmlException as error:
        raise NotRead("its XML declares entities, which no spreadsheet program writes") from error
    except (ParseError, KeyError, ValueError, zipfile.BadZipFile, XLRDError) as error:
        raise NotRead(" ".join(str(error).split())) from error


def _found(file: BinaryIO, sheet: str) -> Mapping[Cell, str]:
    if not zipfile.is_zipfile(file):
        return dict(_of_xls(file, sheet))
    file.seek(0)
    with zipfile.ZipFile(file) as archive:
        if "content.xml" in archive.namelist():
            return dict(_of_ods(archive, sheet))
        part = _part_of_sheet(archive, sheet)
        return dict(_of_xlsx(archive, part)) if part and _may_hold_errors(archive, part) else {}


def _part_of_sheet(archive: zipfile.ZipFile, sheet: str) -> str | None:
    """The name under which the workbook keeps the sheet's cells."""
    with archive.open("xl/workbook.xml") as workbook:
        relations = [
            element.get(_RELATION, "")
            for _, element in iterparse(workbook)
            if element.tag == f"{_MAIN}sheet" and element.get("name") == sheet
        ]
    with archive.open("xl/_rels/workbook.xml.rels") as listing:
        targets = {element.get("Id", ""): element.get("Target", "") for _, element in iterparse(listing)}
    target = targets.get(relations[0] if relations else "", "")
    if not target:
        return None
    return target.lstrip("/") if target.startswith("/") else str(PurePosixPath("xl") / target)


def _may_hold_errors(archive: zipfile.ZipFile, part: str) -> bool:
    """A look at the bytes, which most sheets pass, before the XML is parsed."""
    with archive.open(part) as cells:
        before = b""
        while data := cells.read(_CHUNK_BYTES):
            if b't="e"' in before + data or b"t='e'" in before + data:
                return True
            before = data[-8:]
    return False


def _of_xlsx(archive: zipfile.ZipFile, part: str) -> Iterator[tuple[Cell, str]]:
    with archive.open(part) as cells:
        for _, element in iterparse(cells):
            if element.tag == f"{_MAIN}c" and element.get("t") == "e":
                yield place_of(element.get("r", "A1")), element.findtext(f"{_MAIN}v") or "an error"
            elif element.tag == f"{_MAIN}row":
                element.clear()


def _of_ods(archive: zipfile.ZipFile, sheet: str) -> Iterator[tuple[Cell, str]]:
    inside, row = False, 0
    with archive.open("content.xml") as content:
        for event, element in iterparse(content, events=("start", "end")):
            if element.tag == f"{_TABLE}table":
                inside, row = event == "start" and element.get(f"{_TABLE}name") == sheet, 0
            elif element.tag == f"{_TABLE}table-row" and event == "end":
                if inside:
                    yield from _of_ods_row(element, row)
                    row += int(element.get(f"{_TABLE}number-rows-repeated", "1"))
                element.clear()


def _of_ods_row(element: Element, row: int) -> Iterator[tuple[Cell, str]]:
    column = 0
    for cell in element:
        if cell.tag not in {f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"}:
            continue
        if cell.get(f"{_CALC}value-type") == "error":
            yield (row, column), cell.findtext(f"{_TEXT}p") or "an error"
        column += int(cell.get(f"{_TABLE}number-columns-repeated", "1"))


def _of_xls(file: BinaryIO, sheet: str) -> Iterator[tuple[Cell, str]]:
    file.seek(0)
    with xlrd.open_workbook(file_contents=file.read(), on_demand=True) as book:
        cells = book.sheet_by_name(sheet)
        for row in range(cells.nrows):
            for column, kind in enumerate(cells.row_types(row)):
                if kind == xlrd.XL_CELL_ERROR:
                    yield (row, column), xlrd.error_text_from_code.get(int(cells.cell_value(row, column)), "an error")
