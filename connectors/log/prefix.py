"""The prefix of a file: a running hash of what was read, which proves that it is still the same file."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Sequence
from typing import BinaryIO

_BLOCK_BYTES = 2**20
_WINDOW_BYTES = 2**16


class Prefix:
    """The first ``offset`` bytes of a file: their hash, and the last 64 KiB of them."""

    def __init__(self) -> None:
        self.offset = 0
        self._digest = hashlib.sha256()
        self._window = b""

    def add(self, data: bytes) -> None:
        """Add the next bytes of the file."""
        self.offset += len(data)
        self._digest.update(data)
        self._window = (self._window + data[-_WINDOW_BYTES:])[-_WINDOW_BYTES:]

    @property
    def sha256(self) -> str:
        """The hash of the bytes."""
        return self._digest.hexdigest()

    def matches(self, file: io.FileIO) -> bool:
        """Return True if the last bytes are still there. They are not if the file was cut and has grown again."""
        window = self._window
        return os.pread(file.fileno(), len(window), self.offset - len(window)) == window


def read_prefix(file: BinaryIO, offset: int) -> Prefix | None:
    """Read the first ``offset`` bytes of a file from its start; return None if it has fewer."""
    prefix = Prefix()
    while prefix.offset < offset:
        data = file.read(min(_BLOCK_BYTES, offset - prefix.offset))
        if not data:
            return None
        prefix.add(data)
    return prefix


def find_common_prefix(
    file: BinaryIO, offset: int, sha256: str, marks: Sequence[tuple[int, str]]
) -> tuple[int, str] | None:
    """Return the longest proven prefix that ``file`` shares with another file: offset and hash.

    The first ``offset`` bytes of the other file have the hash ``sha256``; ``marks`` are earlier such pairs. If ``file`` is
    shorter, as a copy made a moment earlier, the result is the last of its marks. None: nothing is proven.
    """
    prefix, proven = Prefix(), None
    for at, expected in (*sorted(marks), (offset, sha256)):
        while prefix.offset < at:
            data = file.read(min(_BLOCK_BYTES, at - prefix.offset))
            if not data:
                return proven
            prefix.add(data)
        if prefix.sha256 != expected:
            return None
        proven = (at, expected)
    return proven


def starts_with(longer: BinaryIO, shorter: BinaryIO) -> bool:
    """Return True if one file begins with all of the other. Both are read from their start."""
    while data := shorter.read(_BLOCK_BYTES):
        same = b""
        while len(same) < len(data) and (more := longer.read(len(data) - len(same))):
            same += more
        if same != data:
            return False
    return True
