"""Cell details of ods, from its XML."""

from __future__ import annotations

import re
import zipfile
from xml.etree.ElementTree import Element

from defusedxml.ElementTree import iterparse

from ingestd.workbooks.details import NO_VALUE, UNKNOWN_ERROR, CellDetails

_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_MOST_ROWS, _MOST_COLUMNS = 1_048_576, 16_384
_CALC = "{urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0}"

_BREAKS = {f"{_TEXT}tab": "\t", f"{_TEXT}line-break": "\n"}
_NO_TEXT = frozenset({f"{_OFFICE}annotation", f"{_TEXT}note"})
_MOST_SPACES = 32_767  # the limit for a cell
_ERROR_TEXT = re.compile(r"#[^\W\d_]|Err:\d")
"""How an error begins in any language, such as #N/A, #WERT! and Err:502. The text of a number has no letter after #."""
_TIME_OF_DAY = re.compile(r"PT(?:[01]\d|2[0-3])H[0-5]\dM[0-5]\d(?:\.\d+)?S")
_DURATION = re.compile(
    r"(?P<sign>-?)P(?:(?P<days>\d{1,9})D)?(?:T(?:(?P<hours>\d{1,9})H)?(?:(?P<minutes>\d{1,9})M)?"
    r"(?:(?P<seconds>\d{1,9})(?P<fraction>\.\d{1,12})?S)?)?"
)


def read_ods_details(archive: zipfile.ZipFile, sheet: str) -> CellDetails:
    """Return the details of the sheet's cells.

    calamine reads all dates of ods, but no tabs, line breaks, elapsed times or merged cells.
    """
    details = CellDetails()
    inside, row = False, 0
    with archive.open("content.xml") as content:
        for event, element in iterparse(content, events=("start", "end")):
            if element.tag == f"{_TABLE}table":
                inside, row = event == "start" and element.get(f"{_TABLE}name") == sheet, 0
            elif element.tag == f"{_TABLE}table-row" and event == "end":
                if inside:
                    times = int(element.get(f"{_TABLE}number-rows-repeated", "1"))
                    rows = range(row, row + min(times, _MOST_ROWS))
                    problems, texts, merged = _read_row(element)
                    if problems:
                        details.problems.update(dict.fromkeys(rows, problems))
                    if texts:
                        details.texts.update(dict.fromkeys(rows, texts))
                    if merged:
                        details.merged.update(dict.fromkeys(rows, merged))
                    row += times
                element.clear()
    return details


def _read_row(row: Element) -> tuple[dict[int, str], dict[int, str], list[tuple[int, int]]]:
    """Return the problems and the texts of a row by column, and the columns of its merged cells."""
    problems: dict[int, str] = {}
    texts: dict[int, str] = {}
    merged: list[tuple[int, int]] = []
    column = 0
    for cell in row:
        if cell.tag not in {f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"}:
            continue
        times = int(cell.get(f"{_TABLE}number-columns-repeated", "1"))
        if _is_error(cell):
            problem = cell.findtext(f"{_TEXT}p") or UNKNOWN_ERROR
        elif cell.get(f"{_TABLE}formula") is not None and cell.get(f"{_OFFICE}value-type") is None:
            problem = NO_VALUE
        else:
            problem = ""
        columns = range(column, column + min(times, _MOST_COLUMNS))
        if problem:
            problems.update(dict.fromkeys(columns, problem))
        elif (text := _text(cell)) is not None:
            texts.update(dict.fromkeys(columns, text))
        if (spanned := int(cell.get(f"{_TABLE}number-columns-spanned", "1"))) > 1:
            merged.append((column, column + spanned - 1))
        column += times
    return problems, texts, merged


def _is_error(cell: Element) -> bool:
    """Return whether the value is an error. OpenOffice saves the number 0, and the error only as the text that it shows."""
    if "error" in {cell.get(f"{_CALC}value-type"), cell.get(f"{_OFFICE}value-type")}:
        return True
    is_zero = cell.get(f"{_TABLE}formula") is not None and cell.get(f"{_OFFICE}value") == "0"
    return is_zero and _ERROR_TEXT.match(cell.findtext(f"{_TEXT}p") or "") is not None


def _text(cell: Element) -> str | None:
    """Return the text of a cell that calamine reads wrongly; None for other cells."""
    match cell.get(f"{_OFFICE}value-type"):
        case "time":
            return _elapsed(cell.get(f"{_OFFICE}time-value", ""))
        case "string" | None if cell.get(f"{_OFFICE}string-value") is None:
            paragraphs = [child for child in cell if child.tag == f"{_TEXT}p"]
            if any(part.tag in _BREAKS for paragraph in paragraphs for part in paragraph.iter()):
                return "\n".join(map(_paragraph, paragraphs))
    return None


def _paragraph(element: Element) -> str:
    """Return the text of a paragraph or of a part of it."""
    found = [element.text or ""]
    for child in element:
        if child.tag in _BREAKS:
            found.append(_BREAKS[child.tag])
        elif child.tag == f"{_TEXT}s":
            found.append(" " * min(int(child.get(f"{_TEXT}c", "1")), _MOST_SPACES))
        elif child.tag not in _NO_TEXT:
            found.append(_paragraph(child))
        found.append(child.tail or "")
    return "".join(found)


def _elapsed(value: str) -> str | None:
    """Return an elapsed time as hours, minutes and seconds; None for a time of a day, which calamine reads."""
    if _TIME_OF_DAY.fullmatch(value) or (found := _DURATION.fullmatch(value)) is None:
        return None
    days, hours, minutes, seconds = (int(found[part] or 0) for part in ("days", "hours", "minutes", "seconds"))
    fraction = (found["fraction"] or "").rstrip("0").removesuffix(".")
    return f"{found['sign']}{days * 24 + hours:02d}:{minutes:02d}:{seconds:02d}{fraction}"
