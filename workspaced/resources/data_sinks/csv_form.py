"""Entries as CSV (RFC 4180, UTF-8 without a byte order mark). Pure.

Values are exactly what is stored: nothing is put before one that begins with ``=``, ``+``, ``-`` or ``@``, since a changed
value is a wrong one. Whoever opens the file in a spreadsheet has to import the columns as text; quoting alone does not
keep a spreadsheet from reading a formula. A value that is null is an empty field, one that is empty a quoted one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from workspaced.core.timestamps import stamp
from workspaced.storage.port import Row

MEDIA_TYPE: Final = "text/csv; charset=utf-8; header=present"
HEADING: Final = b"key,value,dataType,createdAt,updatedAt,createdBy,updatedBy\r\n"


def csv_parts(chunks: Iterable[list[Row]]) -> Iterator[bytes]:
    """The heading, then the lines of each chunk of rows in `StoredEntry`'s order."""
    yield HEADING
    for rows in chunks:
        yield "".join(map(_line, rows)).encode()


def _line(row: Row) -> str:
    _, _, key, value, data_type, _, _, created_at, updated_at, created_by, updated_by = row
    fields = (
        _quoted(key),
        "" if value is None else _quoted(value),
        data_type,
        stamp(created_at),
        stamp(updated_at),
        _quoted(created_by),
        _quoted(updated_by),
    )
    return ",".join(fields) + "\r\n"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
