"""Changes of the footer of a Parquet file. The pages of the file stay unchanged."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from connectors.formats.columnar.thrift_compact import Fields, read_struct, write_struct

SCHEMA, ROWS, GROUPS = 2, 3, 4
NAME, CONVERTED, LOGICAL = 4, 6, 10
CHUNKS, CHUNK_PATH, META, VALUES, COMPRESSED, DATA_OFFSET = 1, 1, 3, 5, 7, 9


def edit_footer(data: bytes, edit: Callable[[Fields], object]) -> bytes:
    """Return a Parquet file after ``edit`` has changed its footer."""
    (length,) = struct.unpack("<I", data[-8:-4])
    start = len(data) - 8 - length
    footer = read_struct(data[start:])
    edit(footer)
    written = write_struct(footer)
    return data[:start] + written + struct.pack("<I", len(written)) + b"PAR1"


def element(footer: Fields, name: str) -> Fields:
    """Return the first schema element with this name."""
    found: Fields = next(one for one in footer[SCHEMA][1][1] if NAME in one and one[NAME][1] == name.encode())
    return found


def chunk(footer: Fields, group: int, column: int) -> Any:
    """Return a column chunk of a row group."""
    return footer[GROUPS][1][1][group][CHUNKS][1][1][column]
