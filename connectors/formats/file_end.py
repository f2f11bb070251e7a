"""Finds data after the end of a binary file, such as another file that was appended: libraries read only one of the two."""

from __future__ import annotations

import os
import zipfile
from typing import BinaryIO

_BLOCK_BYTES = 2**20
_END_MARK, _END_BYTES = b"PK\x05\x06", 22
"""The record with which a zip file ends. A comment of at most `zipfile.ZIP_MAX_COMMENT` bytes may follow."""
_ZIP_TAIL_BYTES = _END_BYTES + zipfile.ZIP_MAX_COMMENT


def has_data(file: BinaryIO, start: int, end: int | None = None) -> bool:
    """Return whether a byte from offset ``start`` to ``end`` (None: the end of the file) is not zero."""
    left = (file.seek(0, os.SEEK_END) if end is None else end) - start
    file.seek(start)
    while left > 0 and (block := file.read(min(left, _BLOCK_BYTES))):
        if block.strip(b"\0"):
            return True
        left -= len(block)
    return False


def check_single_zip(file: BinaryIO, archive: zipfile.ZipFile) -> None:
    """Check that an opened zip file is not two files that were joined. `zipfile` reads only the last directory.

    Raises:
        zipfile.BadZipFile: there is data after the end of the file, or the end of another zip file before the first member.
    """
    file.seek(max(0, file.seek(0, os.SEEK_END) - _ZIP_TAIL_BYTES))
    tail = file.read()
    at = tail.rfind(_END_MARK)
    end = at + _END_BYTES + int.from_bytes(tail[at + 20 : at + _END_BYTES], "little")
    if tail[end:].strip(b"\0"):
        raise zipfile.BadZipFile("it has data after its end, such as another file that was appended")
    first = min((info.header_offset for info in archive.infolist()), default=0)
    file.seek(max(0, first - _ZIP_TAIL_BYTES))
    if _END_MARK in file.read(min(first, _ZIP_TAIL_BYTES)):
        raise zipfile.BadZipFile("it is several zip files that were joined")
