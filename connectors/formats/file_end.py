"""Finds data after the end of a binary file, such as another file that was appended: libraries read only one of the two."""

from __future__ import annotations

import os
from typing import BinaryIO

_BLOCK_BYTES = 2**20


def has_data(file: BinaryIO, start: int, end: int | None = None) -> bool:
    """Return whether a byte from offset ``start`` to ``end`` (None: the end of the file) is not zero."""
    left = (file.seek(0, os.SEEK_END) if end is None else end) - start
    file.seek(start)
    while left > 0 and (block := file.read(min(left, _BLOCK_BYTES))):
        if block.strip(b"\0"):
            return True
        left -= len(block)
    return False
