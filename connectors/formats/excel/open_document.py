"""Cell details of ods, from its XML."""

from __future__ import annotations

import zipfile
from xml.etree.ElementTree import Element

from defusedxml.ElementTree import iterparse

from connectors.formats.excel.details import NO_VALUE, UNKNOWN_ERROR, CellDetails

_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_MOST_ROWS, _MOST_COLUMNS = 1_048_576, 16_384
_CALC = "{urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0}"


def read_ods_details(archive: zipfile.ZipFile, sheet: str) -> CellDetails:
    """Return the details of the sheet's cells. calamine reads its dates completely."""
    details = CellDetails()
    inside, row = False, 0
    with archive.open("content.xml") as content:
        for event, element in iterparse(content, events=("start", "end")):
            if element.tag == f"{_TABLE}table":
                inside, row = event == "start" and element.get(f"{_TABLE}name") == sheet, 0
            elif element.tag == f"{_TABLE}table-row" and event == "end":
                if inside:
                    times = int(element.get(f"{_TABLE}number-rows-repeated", "1"))
                    if problems := _problems(element):
                        details.problems.update((row + at, problems) for at in range(min(times, _MOST_ROWS)))
                    row += times
                element.clear()
    return details


def _problems(row: Element) -> dict[int, str]:
    found: dict[int, str] = {}
    column = 0
    for cell in row:
        if cell.tag not in {f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"}:
            continue
        times = int(cell.get(f"{_TABLE}number-columns-repeated", "1"))
        if cell.get(f"{_CALC}value-type") == "error":
            problem = cell.findtext(f"{_TEXT}p") or UNKNOWN_ERROR
        elif cell.get(f"{_TABLE}formula") is not None and cell.get(f"{_OFFICE}value-type") is None:
            problem = NO_VALUE
        else:
            problem = ""
        if problem:
            found.update(dict.fromkeys(range(column, column + min(times, _MOST_COLUMNS)), problem))
        column += times
    return found
