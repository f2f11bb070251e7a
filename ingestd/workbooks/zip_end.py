"""Finds a zip file that was joined with another file: `zipfile` and calamine read only the last of them."""

from __future__ import annotations

import os
import zipfile
from typing import BinaryIO

_END_MARK, _END_BYTES = b"PK\x05\x06", 22
"""The record with which a zip file ends. A comment of at most `zipfile.ZIP_MAX_COMMENT` bytes may follow."""
_TAIL_BYTES = _END_BYTES + zipfile.ZIP_MAX_COMMENT


def check_single_zip(file: BinaryIO, archive: zipfile.ZipFile) -> None:
    """Check that an opened zip file is not two files that were joined. `zipfile` reads only the last directory.

    Raises:
        zipfile.BadZipFile: there is data after the end of the file, or the end of another zip file before the first member.
    """
    file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
    tail = file.read()
    at = tail.rfind(_END_MARK)
    end = at + _END_BYTES + int.from_bytes(tail[at + 20 : at + _END_BYTES], "little")
    if tail[end:].strip(b"\0"):
        raise zipfile.BadZipFile("it has data after its end, such as another file that was appended")
    first = min((info.header_offset for info in archive.infolist()), default=0)
    file.seek(max(0, first - _TAIL_BYTES))
    if _END_MARK in file.read(min(first, _TAIL_BYTES)):
        raise zipfile.BadZipFile("it is several zip files that were joined")
