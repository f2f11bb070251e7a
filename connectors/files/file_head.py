"""The beginning of a file up to an offset, if something other than records follows."""

from __future__ import annotations

from typing import BinaryIO


class FileHead:
    """The first ``end`` bytes of a file, for a format that reads in order."""

    def __init__(self, file: BinaryIO, end: int) -> None:
        self._file = file
        self._left = end

    def read(self, size: int = -1) -> bytes:
        """Read as from a binary file; return nothing at ``end``."""
        data = self._file.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(data)
        return data
