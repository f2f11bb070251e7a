"""Repairs workbooks that calamine refuses or reads incompletely.

In xlsx, these are module sheets without a part, and error values of newer programs. In ods, these are texts without a type.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Container

from ingestd.workbooks.open_xml import OpcPackage

_SHEET = re.compile(rb"<(?:\w+:)?sheet\s[^>]*?(?:/>|>\s*</(?:\w+:)?sheet\s*>)")
_RELATION = re.compile(rb"""\s(?:\w+:)?id\s*=\s*["']([^"']*)["']""")
_ERROR = re.compile(
    rb"""(?P<before>\st=["']e["'][^<>]*+>(?:<(?:\w+:)?f\b[^<>]*+>(?:[^<>]*+</(?:\w+:)?f>)?+)?+<(?:\w+:)?v>)(?P<error>[^<>]*+)(?=<)"""
)
_KNOWN_ERRORS = frozenset({b"#NULL!", b"#DIV/0!", b"#VALUE!", b"#REF!", b"#NAME?", b"#NUM!", b"#N/A", b"#DATA!"})
_UNTYPED = re.compile(
    rb"(<table:(?:covered-)?table-cell\b(?![^<>]*\s(?:office:value-type|table:formula)=)[^<>]*)(?=>\s*<text:p\b)"
)
_NOT_NEEDED = re.compile(r"xl/(?:media|drawings|charts|embeddings|theme|printersettings)/", re.IGNORECASE)


def repair_xlsx(whole: io.BytesIO) -> io.BytesIO | None:
    """Return a copy of the workbook that calamine reads; None if there is nothing to repair.

    Module sheets, which have no part in the file, are left out. An error such as ``#GETTING_DATA`` becomes ``#N/A``. The
    details of the cells still have the real error, because they are read from the original file.
    """
    copy, is_changed = io.BytesIO(), False
    with zipfile.ZipFile(whole) as archive, zipfile.ZipFile(copy, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target:
        package = OpcPackage(archive)
        book = package.of_type("", "officeDocument") or "xl/workbook.xml"
        relations = package.relations(book)
        sheets = {part.lower() for kind, part in relations.values() if kind == "worksheet"}
        for info in archive.infolist():
            part = info.filename.replace("\\", "/").lstrip("/").lower()
            if info.is_dir() or _NOT_NEEDED.match(part):
                continue
            data = archive.read(info)
            repaired = data
            if part == book.lower():
                repaired = _without_modules(data, relations)
            elif part in sheets:
                repaired = _ERROR.sub(_known_error, data)
            is_changed = is_changed or repaired != data
            target.writestr(info.filename, repaired)
    return copy if is_changed else None


def repair_ods(whole: io.BytesIO) -> io.BytesIO | None:
    """Return a copy in which each cell with a text has a type; None if there is nothing to repair.

    Some libraries write texts without a type. Spreadsheet programs show them, but calamine reads empty cells.
    """
    copy = io.BytesIO()
    with zipfile.ZipFile(whole) as archive:
        try:
            content = archive.read("content.xml")
        except (zlib.error, EOFError, RuntimeError):  # damaged or encrypted: calamine reports it
            return None
        repaired = _UNTYPED.sub(rb'\1 office:value-type="string"', content)
        if repaired == content:
            return None
        with zipfile.ZipFile(copy, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target:
            for name in {"mimetype", "META-INF/manifest.xml"}.intersection(archive.namelist()):
                target.writestr(name, archive.read(name))
            target.writestr("content.xml", repaired)
    return copy


def _without_modules(book: bytes, relations: Container[str]) -> bytes:
    def keep(found: re.Match[bytes]) -> bytes:
        relation = _RELATION.search(found[0])
        return found[0] if relation is not None and relation[1].decode(errors="replace") in relations else b""

    return _SHEET.sub(keep, book)


def _known_error(found: re.Match[bytes]) -> bytes:
    return found[0] if found["error"] in _KNOWN_ERRORS else found["before"] + b"#N/A"
