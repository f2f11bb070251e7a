"""Cell details of xlsx and xlsm, transitional or strict, from their XML."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from posixpath import dirname, join, normpath
from typing import BinaryIO
from xml.etree.ElementTree import Element

from defusedxml.ElementTree import iterparse

from ingestd.workbooks.details import (
    NO_VALUE,
    UNKNOWN_ERROR,
    CellDetails,
    DateFormat,
    WorkbookDamaged,
    built_in_format,
    date_format,
    date_text,
)
from ingestd.workbooks.references import parse_reference

_CHUNK_BYTES = 2**20
_OVERLAP_BYTES = 64


def local_name(tag: str) -> str:
    """Return a name without its namespace."""
    return tag.rpartition("}")[2]


class OpcPackage:
    """The parts of an Open Packaging archive. Names are compared without regard to case and slashes."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._names = {name.replace("\\", "/").lstrip("/").lower(): name for name in archive.namelist()}

    def __contains__(self, part: str) -> bool:
        return part.lower() in self._names

    def open(self, part: str) -> BinaryIO:
        """Open a part for reading.

        Raises:
            WorkbookDamaged: there is no part of that name.
        """
        name = self._names.get(part.lower())
        if name is None:
            raise WorkbookDamaged(f"its part {part} is missing")
        return self._archive.open(name)  # type: ignore[return-value]  # it is a readable binary file

    def relations(self, part: str) -> Mapping[str, tuple[str, str]]:
        """Return the relations of a part (empty: of the package) by id: the last part of the type's URI, and the target."""
        folder, name = dirname(part), part.rpartition("/")[2]
        listing = join(folder, "_rels", f"{name}.rels")
        if listing not in self:
            return {}
        with self.open(listing) as file:
            return {
                element.get("Id", ""): (
                    element.get("Type", "").rpartition("/")[2],
                    _resolve_target(folder, element.get("Target", "")),
                )
                for _, element in iterparse(file)
                if local_name(element.tag) == "Relationship"
            }

    def of_type(self, part: str, kind: str) -> str:
        """Return the target of a part's relation of that type; empty if there is none."""
        return next((target for found, target in self.relations(part).values() if found == kind), "")


def _resolve_target(folder: str, target: str) -> str:
    target = target.replace("\\", "/")
    return target.lstrip("/") if target.startswith("/") else normpath(join(folder, target))


def read_xlsx_details(archive: zipfile.ZipFile, sheet: str) -> CellDetails:
    """Return the details of the sheet's cells.

    Raises:
        WorkbookDamaged: a part is missing.
    """
    package = OpcPackage(archive)
    book = package.of_type("", "officeDocument") or "xl/workbook.xml"
    relation, since_1904 = _sheet_of(package, book, sheet)
    part = package.relations(book).get(relation, ("", ""))[1]
    if not part:
        raise WorkbookDamaged(f"it does not name the part with the cells of the sheet {sheet!r}")
    styles = package.of_type(book, "styles")
    formats = _date_formats(package, styles) if styles in package else {}
    if not _is_worth_parsing(package, part, formats, since_1904=since_1904):
        return CellDetails()
    with package.open(part) as cells:
        return _collect_cells(cells, formats, since_1904=since_1904)


def _sheet_of(package: OpcPackage, book: str, sheet: str) -> tuple[str, bool]:
    relation, since_1904 = "", False
    with package.open(book) as file:
        for _, element in iterparse(file):
            if local_name(element.tag) == "workbookPr":
                since_1904 = element.get("date1904", "0") in {"1", "true", "on"}
            elif local_name(element.tag) == "sheet" and element.get("name") == sheet:
                relation = next(
                    (value for key, value in element.attrib.items() if key.endswith("relationships}id")), ""
                )
    return relation, since_1904


def _date_formats(package: OpcPackage, styles: str) -> dict[str, DateFormat]:
    """Return the formats of the styles that show dates or times, by the style numbers that cells refer to."""
    codes: dict[str, str] = {}
    formats: dict[str, DateFormat] = {}
    with package.open(styles) as file:
        for _, element in iterparse(file):
            if local_name(element.tag) == "numFmt":
                codes[element.get("numFmtId", "")] = element.get("formatCode", "")
            elif local_name(element.tag) == "cellXfs":
                for number, style in enumerate(child for child in element if local_name(child.tag) == "xf"):
                    code = style.get("numFmtId", "0")
                    shown = date_format(codes.get(code) or built_in_format(int(code)))
                    if shown.has_date or shown.has_time:
                        formats[str(number)] = shown
    return formats


def _is_worth_parsing(package: OpcPackage, part: str, formats: Mapping[str, DateFormat], *, since_1904: bool) -> bool:
    """Return True if a sheet may have errors, formulas, or dates that calamine shortens. Most sheets have none."""
    marks = [rb"""\bt=["']e["']""", rb"<(?:\w+:)?f[\s/>]"]
    if dates := [number for number, one in formats.items() if one.has_date and (one.has_time or since_1904)]:
        marks.append(rb"""\bs=["'](?:%s)["']""" % b"|".join(number.encode() for number in dates))
    if formats:
        marks.append(rb"v>\s*-")
    wanted = re.compile(b"|".join(marks))
    with package.open(part) as cells:
        before = b""
        while data := cells.read(_CHUNK_BYTES):
            if wanted.search(before + data):
                return True
            before = data[-_OVERLAP_BYTES:]
    return False


def _collect_cells(cells: BinaryIO, formats: Mapping[str, DateFormat], *, since_1904: bool) -> CellDetails:
    details = CellDetails()
    row, column = -1, -1
    for event, element in iterparse(cells, events=("start", "end")):
        tag = local_name(element.tag)
        if event == "start":
            if tag == "row":
                row, column = int(element.get("r", row + 2)) - 1, -1
        elif tag == "c":
            reference = element.get("r")
            row, column = parse_reference(reference) if reference else (row, column + 1)
            if problem := _problem(element):
                details.problems[row][column] = problem
            elif (shown := formats.get(element.get("s", ""))) and element.get("t", "n") == "n":
                text = date_text(float(_value(element) or "nan"), shown, since_1904=since_1904)
                if text is not None:
                    details.texts[row][column] = text
        elif tag == "row":
            element.clear()
    return details


def _problem(cell: Element) -> str:
    """Return why the cell has no value; empty if the cell has a value, or is empty."""
    kind = cell.get("t", "n")
    value = _value(cell)
    if kind == "e":
        return value or UNKNOWN_ERROR
    if value or (kind == "str" and value is not None):  # the value of the formula is the empty text
        return ""
    return NO_VALUE if any(local_name(child.tag) == "f" for child in cell) else ""


def _value(cell: Element) -> str | None:
    return next((child.text or "" for child in cell if local_name(child.tag) == "v"), None)
