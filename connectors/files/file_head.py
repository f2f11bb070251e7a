"""A file up to an offset, for what lies behind its records."""

from __future__ import annotations

from typing import BinaryIO


class FileHead:
    """The first ``end`` bytes of a file, for a format that reads in order."""

    def __init__(self, file: BinaryIO, end: int) -> None:
        self._file = file
        self._left = end

    def read(self, size: int = -1) -> bytes:
        """As of a file."""
        data = self._file.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(data)
        return data
