"""CSV of entries (RFC 4180, UTF-8 without a byte order mark). Performs no I/O.

Values are written exactly as stored, also values that begin with ``=``, ``+``, ``-`` or ``@``. Users of a spreadsheet must
import the columns as text, because a spreadsheet reads formulas even from quoted fields. A null value is an empty field; an
empty value is a quoted empty field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from workspaced.core.timestamps import stamp
from workspaced.storage.port import Row

MEDIA_TYPE: Final = "text/csv; charset=utf-8; header=present"
HEADING: Final = b"key,value,dataType,createdAt,updatedAt,createdBy,updatedBy\r\n"


def csv_parts(chunks: Iterable[list[Row]]) -> Iterator[bytes]:
    """Yield the header line, then the lines of each chunk. The columns of a row are in the order of `StoredEntry`."""
    yield HEADING
    for rows in chunks:
        yield "".join(map(_line, rows)).encode()


def _line(row: Row) -> str:
    _, _, key, value, data_type, _, _, created_at, updated_at, created_by, updated_by, _ = row
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
