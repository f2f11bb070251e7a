"""Files for conversion, written without a library, because a library that shares code with the reader would hide defects."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def xlsx(sheets: Mapping[str, str]) -> bytes:
    """Return a workbook. ``sheets``: sheet name to the XML of the rows. Style 1 is a date, 2 a date with a time, 3 text."""
    overrides = "".join(
        f'<Override PartName="/xl/worksheets/sheet{number}.xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>'
        for number, _ in enumerate(sheets, 1)
    )
    names = "".join(
        f'<sheet name="{escape(name)}" sheetId="{number}" r:id="rId{number}"/>' for number, name in enumerate(sheets, 1)
    )
    relations = "".join(
        f'<Relationship Id="rId{number}" Type="{_RELATIONS}/worksheet" Target="worksheets/sheet{number}.xml"/>'
        for number, _ in enumerate(sheets, 1)
    )
    styles = f'<Relationship Id="rId900" Type="{_RELATIONS}/styles" Target="styles.xml"/>'
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        '<Override PartName="/xl/workbook.xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>'
        f"{overrides}</Types>",
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" '
        f'Type="{_RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_RELATIONS}"><sheets>{names}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">{relations}{styles}</Relationships>',
        "xl/styles.xml": f'<styleSheet xmlns="{_MAIN}"><cellXfs count="4"><xf numFmtId="0"/><xf numFmtId="14"/>'
        '<xf numFmtId="22"/><xf numFmtId="49"/></cellXfs></styleSheet>',
    }
    for number, rows in enumerate(sheets.values(), 1):
        parts[f"xl/worksheets/sheet{number}.xml"] = (
            f'<worksheet xmlns="{_MAIN}"><sheetData>{rows}</sheetData></worksheet>'
        )
    return zipped(parts)


def rows(*cells: Sequence[str | int | float | bool | None]) -> str:
    """Return the XML of rows of plain cells; the first cell is A1."""
    return "".join(
        f'<row r="{number}">{"".join(_cell(column, number, value) for column, value in enumerate(row))}</row>'
        for number, row in enumerate(cells, 1)
    )


def _cell(column: int, row: int, value: str | float | bool | None) -> str:
    place = f"{chr(ord('A') + column)}{row}"
    if value is None:
        return ""
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f'<c r="{place}"><v>{value}</v></c>'


def zipped(parts: Mapping[str, str | bytes]) -> bytes:
    """Return a zip archive."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content, zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED)
    return target.getvalue()


def ods(table: str) -> bytes:
    """Return an OpenDocument spreadsheet with one sheet, Budget; ``table`` is the XML of its rows."""
    names = {
        "office": "urn:oasis:names:tc:opendocument:xmlns:office:1.0",
        "table": "urn:oasis:names:tc:opendocument:xmlns:table:1.0",
        "text": "urn:oasis:names:tc:opendocument:xmlns:text:1.0",
    }
    spaces = " ".join(f'xmlns:{prefix}="{name}"' for prefix, name in names.items())
    return zipped(
        {
            "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
            "META-INF/manifest.xml": '<manifest xmlns="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>',
            "content.xml": f"<office:document-content {spaces}><office:body><office:spreadsheet>"
            f'<table:table table:name="Budget">{table}</table:table>'
            "</office:spreadsheet></office:body></office:document-content>",
        }
    )


def png_header(width: int, height: int) -> bytes:
    """Return a PNG with less data than the size in its header requires."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = chunk(b"IDAT", zlib.compress(bytes(1_000)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + data + chunk(b"IEND", b"")


def pdf_bomb(megabytes: int) -> bytes:
    """Return a PDF of a few kilobytes. Its only page has ``megabytes`` MiB of content."""
    packer = zlib.compressobj(1)
    once = b"".join([*(packer.compress(b" " * 1_048_576) for _ in range(megabytes)), packer.flush()])
    twice = zlib.compress(once, 9)
    small = pdf("x")
    begin = small.index(b"5 0 obj")
    content = b"5 0 obj\n<< /Length %d /Filter [/FlateDecode /FlateDecode] >>\nstream\n%s\nendstream\n" % (
        len(twice),
        twice,
    )
    return small[:begin] + content + small[small.index(b"endobj", begin) :]


def pdf(text: str, *, pages: int = 1) -> bytes:
    """Return a document with the same text on every page."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(pages))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {pages} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number in range(pages):
        content = f"BT /F1 24 Tf 40 100 Td ({text}) Tj ET".encode("latin-1")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Contents {5 + 2 * number} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>".encode()
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))
    out = bytearray(b"%PDF-1.4\n")
    places = []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(out)
