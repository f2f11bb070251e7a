"""Cell details of xlsb, the binary form of xlsx (MS-XLSB): each part is a stream of numbered records."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator
from typing import BinaryIO

from ingestd.workbooks.details import (
    ERRORS,
    UNKNOWN_ERROR,
    CellDetails,
    DateFormat,
    WorkbookDamaged,
    built_in_format,
    date_format,
    date_text,
)
from ingestd.workbooks.open_xml import OpcPackage

_ROW, _RK, _ERROR, _REAL, _FORMULA_REAL, _FORMULA_ERROR, _MERGED = 0, 2, 3, 5, 9, 11, 176
_BOOK_PROPERTIES, _SHEET = 153, 156
_FORMAT, _STYLE, _STYLES_BEGIN, _STYLES_END = 44, 47, 617, 618
_SINCE_1904 = 0x1
_CELL = struct.Struct("<II")
_RANGE = struct.Struct("<IIII")
_STYLE_BITS = 0xFFFFFF


def read_xlsb_details(archive: zipfile.ZipFile, sheet: str) -> CellDetails:
    """Return the details of the sheet's cells. In this format a formula always has its value.

    Raises:
        WorkbookDamaged: a part is missing or damaged.
    """
    package = OpcPackage(archive)
    book = package.of_type("", "officeDocument") or "xl/workbook.bin"
    relation, since_1904 = "", False
    try:
        with package.open(book) as file:
            for kind, data in _records(file):
                if kind == _BOOK_PROPERTIES:
                    since_1904 = bool(data[0] & _SINCE_1904)
                elif kind == _SHEET:
                    found, end = _text(data, 8)
                    if _text(data, end)[0] == sheet:
                        relation = found
        part = package.relations(book).get(relation, ("", ""))[1]
        if not part:
            raise WorkbookDamaged(f"it does not name the part with the cells of the sheet {sheet!r}")
        styles = package.of_type(book, "styles")
        formats = _date_formats(package, styles) if styles in package else {}
        with package.open(part) as cells:
            return _collect_cells(cells, formats, since_1904=since_1904)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise WorkbookDamaged(f"one of its records is damaged ({error})") from error


def _records(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    while first := file.read(1):
        kind = first[0]
        if kind & 0x80:
            kind = kind & 0x7F | (file.read(1)[0] & 0x7F) << 7
        size = 0
        for shift in range(0, 28, 7):
            byte = file.read(1)[0]
            size |= (byte & 0x7F) << shift
            if not byte & 0x80:
                break
        yield kind, file.read(size)


def _text(data: bytes, at: int) -> tuple[str, int]:
    """Return a text that is stored after its length, and the offset of its end."""
    (length,) = struct.unpack_from("<I", data, at)
    end = at + 4 + 2 * length
    return data[at + 4 : end].decode("utf-16-le"), end


def _date_formats(package: OpcPackage, styles: str) -> dict[int, DateFormat]:
    codes: dict[int, str] = {}
    formats: dict[int, DateFormat] = {}
    in_styles, number = False, 0
    with package.open(styles) as file:
        for kind, data in _records(file):
            if kind == _FORMAT:
                codes[int.from_bytes(data[:2], "little")] = _text(data, 2)[0]
            elif kind in {_STYLES_BEGIN, _STYLES_END}:
                in_styles = kind == _STYLES_BEGIN
            elif kind == _STYLE and in_styles:
                code = int.from_bytes(data[2:4], "little")
                shown = date_format(codes.get(code) or built_in_format(code))
                if shown.has_date or shown.has_time:
                    formats[number] = shown
                number += 1
    return formats


def _collect_cells(cells: BinaryIO, formats: dict[int, DateFormat], *, since_1904: bool) -> CellDetails:
    details, row = CellDetails(), 0
    for kind, data in _records(cells):
        if kind == _ROW:
            (row,) = struct.unpack_from("<I", data)
        elif kind in {_ERROR, _FORMULA_ERROR}:
            details.problems[row][_CELL.unpack_from(data)[0]] = ERRORS.get(data[8], UNKNOWN_ERROR)
        elif kind == _MERGED:
            top, _, first, last = _RANGE.unpack_from(data)
            details.merged[top].append((first, last))
        elif kind in {_RK, _REAL, _FORMULA_REAL}:
            column, style = _CELL.unpack_from(data)
            if shown := formats.get(style & _STYLE_BITS):
                serial = _decode_rk(data) if kind == _RK else struct.unpack_from("<d", data, 8)[0]
                if (text := date_text(serial, shown, since_1904=since_1904)) is not None:
                    details.texts[row][column] = text
    return details


def _decode_rk(data: bytes) -> float:
    """Return a number of four bytes: an integer or the upper half of a double, possibly times 100."""
    (bits,) = struct.unpack_from("<i", data, 8)
    number: float = bits >> 2 if bits & 2 else struct.unpack("<d", struct.pack("<q", (bits & ~3) << 32))[0]
    return number / 100 if bits & 1 else number
