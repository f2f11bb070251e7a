"""Copies of workbooks in which calamine, which reads errors as empty cells, reads the texts that the cells show."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from pathlib import Path

_PREFIX = rb"(?:\w+:)?"
_ERROR = re.compile(rb"""(<%sc\s[^<>]*?\bt=)["']e["']""" % _PREFIX)
_FORMULA = re.compile(
    rb"""<(?P<prefix>%s)c\b(?P<about>[^<>]*)>(?P<formula><%sf\b[^<>]*(?:/>|>(?P<text>[^<>]*)</%sf>))"""
    rb"""(?P<value><%sv\s*(?:/>|></%sv>))?(?=</%sc>)""" % ((_PREFIX,) * 6)
)
_TYPE = re.compile(rb"""\st=["'](\w*)["']""")
_ODS_ERROR = re.compile(rb"""<table:table-cell\s[^<>]*\bcalcext:value-type=["']error["'][^<>]*>""")
_ODS_VALUE = re.compile(rb"""\soffice:string-value=["']["']""")


def with_shown_errors(source: Path) -> io.BytesIO | None:
    """Return a copy of an xlsx or ods workbook; None if nothing is to be changed, or the file is no readable archive.

    An error becomes its text, such as #N/A. A formula without a saved value becomes its own text, such as =A1+1.
    """
    copy, is_changed = io.BytesIO(), False
    try:
        with (
            zipfile.ZipFile(source) as archive,
            zipfile.ZipFile(copy, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target,
        ):
            for info in archive.infolist():
                data = shown = archive.read(info)
                part = info.filename.replace("\\", "/").lower()
                if part.endswith(".xml") and "/worksheets/" in part:
                    shown = _FORMULA.sub(_with_formula, _ERROR.sub(rb'\1"str"', data))
                elif part == "content.xml":
                    shown = _ODS_ERROR.sub(lambda cell: _ODS_VALUE.sub(b"", cell[0]), data)
                is_changed = is_changed or shown != data
                target.writestr(info.filename, shown)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError):
        return None
    copy.seek(0)
    return copy if is_changed else None


def _with_formula(cell: re.Match[bytes]) -> bytes:
    kind = _TYPE.search(cell["about"])
    if kind is not None and kind[1] == b"str" and cell["value"]:
        return cell[0]  # the value of the formula is the empty text
    prefix, about = cell["prefix"], _TYPE.sub(b"", cell["about"])
    value = b"<%sv>=%s</%sv>" % (prefix, cell["text"] or b"", prefix)
    return b'<%sc%s t="str">%s%s' % (prefix, about, cell["formula"], value)
