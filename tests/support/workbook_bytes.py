"""Workbooks: xlsx by openpyxl; xls (BIFF8 in a compound file), xlsb and ods without a library, as other programs write them."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import openpyxl

from tests.support.convertible_files import zipped

Error: TypeAlias = bytes
"""The one-byte code of an error in a cell."""
XlsCell: TypeAlias = str | float | Error | tuple[float, str] | None
"""The content of a cell. The tuple is a number with its format; None: no cell."""

_SECTOR = 512
_FREE, _END, _FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD


def xlsx(
    *rows: Sequence[Any],
    formats: Mapping[str, str] | None = None,
    epoch: Any = None,
    change: Callable[[Any], object] = lambda _: None,
) -> bytes:
    """Return a workbook with these rows. ``formats``: number formats by cell; ``change``: is called with the sheet."""
    book, out = openpyxl.Workbook(), io.BytesIO()
    if epoch is not None:
        book.epoch = epoch
    sheet: Any = book.worksheets[0]
    for row in rows:
        sheet.append(list(row))
    for cell, code in (formats or {}).items():
        sheet[cell].number_format = code
    change(sheet)
    book.save(out)
    return out.getvalue()


_ODS = " ".join(
    f'xmlns:{short}="urn:{long}"'
    for short, long in {
        "office": "oasis:names:tc:opendocument:xmlns:office:1.0",
        "table": "oasis:names:tc:opendocument:xmlns:table:1.0",
        "text": "oasis:names:tc:opendocument:xmlns:text:1.0",
        "calcext": "org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0",
        "manifest": "oasis:names:tc:opendocument:xmlns:manifest:1.0",
    }.items()
)


def ods(*rows: str) -> bytes:
    """Return a spreadsheet as LibreOffice writes it, without styles. ``rows``: results of `ods_row`."""
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    entry = f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/>'
    table = f'<table:table table:name="S">{"".join(rows)}</table:table>'
    body = f"<office:body><office:spreadsheet>{table}</office:spreadsheet></office:body>"
    parts = {
        "mimetype": kind,
        "META-INF/manifest.xml": f"<manifest:manifest {_ODS}>{entry}</manifest:manifest>",
        "content.xml": f"<office:document-content {_ODS}>{body}</office:document-content>",
    }
    return zipped(parts)


def ods_row(*cells: str, repeated: int = 1) -> str:
    return f'<table:table-row table:number-rows-repeated="{repeated}">{"".join(cells)}</table:table-row>'


def ods_cell(text: str, about: str = 'office:value-type="string"') -> str:
    return f"<table:table-cell {about}><text:p>{text}</text:p></table:table-cell>"


def compound_file(streams: Mapping[str, bytes]) -> bytes:
    """Return a compound file (MS-CFB) of streams. Each stream is padded to 4,096 bytes, so that it has its own sectors."""
    padded = {name: data.ljust(max(4096, len(data) + -len(data) % _SECTOR), b"\0") for name, data in streams.items()}
    fat = [_FAT, _END]  # the sector of this table, and the sector of the directory
    entries = [_directory_entry("Root Entry", 5, 1 if padded else _FREE, _END, 0)]
    for number, (name, data) in enumerate(padded.items(), start=1):
        count, first = len(data) // _SECTOR, len(fat)
        fat += [*range(first + 1, first + count), _END]
        entries.append(
            _directory_entry(name, 2, _FREE, first, len(data), right=number + 1 if number < len(padded) else _FREE)
        )
    directory = b"".join(entries).ljust(_SECTOR, b"\0")
    table = struct.pack(f"<{_SECTOR // 4}I", *fat, *[_FREE] * (_SECTOR // 4 - len(fat)))
    header = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(16) + struct.pack("<HHHHH6x", 0x3E, 3, 0xFFFE, 9, 6)
    header += struct.pack("<IIIIIIIII", 0, 1, 1, 0, 4096, _END, 0, _END, 0) + struct.pack("<109I", 0, *[_FREE] * 108)
    return header + table + directory + b"".join(padded.values())


def _directory_entry(name: str, kind: int, child: int, start: int, size: int, *, right: int = _FREE) -> bytes:
    text = name.encode("utf-16-le")
    return (
        text.ljust(64, b"\0")
        + struct.pack("<HBBIII", len(text) + 2, kind, 1, _FREE, right, child)
        + bytes(36)
        + struct.pack("<II4x", start, size)
    )


def xls(rows: Sequence[Sequence[XlsCell]], *, sheet: str = "S", others: Mapping[str, bytes] | None = None) -> bytes:
    """Return a workbook of Excel 97 to 2003. ``others``: further streams, such as the theme that Excel 2007 adds."""
    return compound_file({"Workbook": _biff(rows, sheet), **(others or {})})


def _biff(rows: Sequence[Sequence[XlsCell]], sheet: str) -> bytes:
    codes = list(dict.fromkeys(cell[1] for row in rows for cell in row if isinstance(cell, tuple)))
    head = _record(0x0809, struct.pack("<HHHHII", 0x0600, 5, 0x0DBB, 1996, 0, 6)) + _record(0x0042, b"\xb0\x04")
    head += _record(0x0031, struct.pack("<HHHHHBBBBBB", 200, 0, 0x7FFF, 400, 0, 0, 0, 0, 0, 5, 0) + b"Arial") * 5
    for number, code in enumerate(codes, start=164):
        head += _record(0x041E, struct.pack("<HHB", number, len(code), 0) + code.encode())
    for number in (0, *range(164, 164 + len(codes))):
        head += _record(0x00E0, struct.pack("<HHH", 0, number, 1) + bytes(14))
    name = struct.pack("<BB", len(sheet), 0) + sheet.encode()
    start = len(head) + 4 + 6 + len(name) + 4
    head += _record(0x0085, struct.pack("<IH", start, 0) + name) + _record(0x000A, b"")
    cells = b"".join(
        _xls_cell(at, column, cell, codes) for at, row in enumerate(rows) for column, cell in enumerate(row)
    )
    width = max((len(row) for row in rows), default=0)
    body = _record(0x0809, struct.pack("<HHHHII", 0x0600, 16, 0x0DBB, 1996, 0, 6))
    body += _record(0x0200, struct.pack("<IIHHH", 0, len(rows), 0, width, 0)) + cells + _record(0x000A, b"")
    return head + body


def _xls_cell(row: int, column: int, cell: XlsCell, codes: Sequence[str]) -> bytes:
    match cell:
        case None:
            return b""
        case str():
            text = struct.pack("<HB", len(cell), 1) + cell.encode("utf-16-le")
            return _record(0x0204, struct.pack("<HHH", row, column, 0) + text)
        case bytes():
            return _record(0x0205, struct.pack("<HHH", row, column, 0) + cell + b"\x01")
        case (number, code):
            return _record(0x0203, struct.pack("<HHHd", row, column, codes.index(code) + 1, number))
    return _record(0x0203, struct.pack("<HHHd", row, column, 0, cell))


def _record(kind: int, data: bytes) -> bytes:
    return struct.pack("<HH", kind, len(data)) + data


def xlsb(
    rows: Sequence[Sequence[XlsCell]], *, sheet: str = "S", merged: Sequence[tuple[int, int, int, int]] = ()
) -> bytes:
    """Return a workbook in Excel's binary format. ``merged``: first and last row, first and last column of merged cells."""
    codes = list(dict.fromkeys(cell[1] for row in rows for cell in row if isinstance(cell, tuple)))
    cells = b"".join(
        _binary(0, struct.pack("<II", at, 0) + bytes(17))
        + b"".join(_xlsb_cell(column, cell, codes) for column, cell in enumerate(row))
        for at, row in enumerate(rows)
    )
    width = max((len(row) for row in rows), default=1)
    size = _binary(148, struct.pack("<IIII", 0, len(rows) - 1, 0, width - 1))
    part = _binary(129, b"") + size + _binary(145, b"") + cells + _binary(146, b"")
    part += b"".join(_binary(176, struct.pack("<IIII", *cell)) for cell in merged) + _binary(130, b"")
    book = _binary(131, b"") + _binary(153, struct.pack("<II", 0, 0) + _wide(""))
    book += _binary(143, b"") + _binary(156, struct.pack("<II", 0, 1) + _wide("rId1") + _wide(sheet))
    book += _binary(144, b"") + _binary(132, b"")
    styles = _binary(278, b"") + _binary(615, struct.pack("<I", len(codes)))
    styles += b"".join(_binary(44, struct.pack("<H", 164 + at) + _wide(code)) for at, code in enumerate(codes))
    styles += _binary(616, b"") + _binary(617, struct.pack("<I", 1 + len(codes)))
    styles += b"".join(
        _binary(47, struct.pack("<HH", 0, code) + bytes(12)) for code in (0, *range(164, 164 + len(codes)))
    )
    styles += _binary(618, b"") + _binary(279, b"")
    relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    kinds = "application/vnd.ms-excel"
    parts: dict[str, str | bytes] = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"><Default Extension="rels" ContentType="{package}"/>'
        f'<Override PartName="/xl/workbook.bin" ContentType="{kinds}.sheet.binary.macroEnabled.main"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="rId1"'
        f' Type="{relation}/officeDocument" Target="xl/workbook.bin"/></Relationships>',
        "xl/_rels/workbook.bin.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="rId1"'
        f' Type="{relation}/worksheet" Target="worksheets/sheet1.bin"/><Relationship Id="rId2" Type="{relation}/styles"'
        ' Target="styles.bin"/></Relationships>',
        "xl/workbook.bin": book,
        "xl/styles.bin": styles,
        "xl/worksheets/sheet1.bin": part,
    }
    return zipped(parts)


def _xlsb_cell(column: int, cell: XlsCell, codes: Sequence[str]) -> bytes:
    plain = struct.pack("<II", column, 0)
    match cell:
        case None:
            return b""
        case str():
            return _binary(6, plain + _wide(cell))
        case bytes():
            return _binary(3, plain + cell)
        case (number, code):
            return _binary(5, struct.pack("<IId", column, codes.index(code) + 1, number))
    return _binary(5, plain + struct.pack("<d", cell))


def _binary(kind: int, data: bytes) -> bytes:
    number = bytes([kind]) if kind < 0x80 else bytes([kind & 0x7F | 0x80, kind >> 7])
    size = len(data)
    length = bytes([size]) if size < 0x80 else bytes([size & 0x7F | 0x80, size >> 7])
    return number + length + data


def _wide(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode("utf-16-le")
