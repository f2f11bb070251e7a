"""What a file begins with, as a hash that is carried on while it is read: proof that it still is the file that was read."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Sequence
from typing import BinaryIO

_CHUNK_BYTES = 2**20
_WINDOW_BYTES = 2**16


class Prefix:
    """The first ``offset`` bytes of a file: their hash, and the last of them as they are."""

    def __init__(self) -> None:
        self.offset = 0
        self._digest = hashlib.sha256()
        self._window = b""

    def add(self, data: bytes) -> None:
        """Take in the next bytes."""
        self.offset += len(data)
        self._digest.update(data)
        self._window = (self._window + data[-_WINDOW_BYTES:])[-_WINDOW_BYTES:]

    @property
    def sha256(self) -> str:
        """The hash."""
        return self._digest.hexdigest()

    def stands(self, file: io.FileIO) -> bool:
        """Whether the last bytes are still there: not in a file that was cut and has grown again."""
        window = self._window
        return os.pread(file.fileno(), len(window), self.offset - len(window)) == window


def read_prefix(file: BinaryIO, offset: int) -> Prefix | None:
    """The first ``offset`` bytes of a file that stands at its start, and stands behind them then; None: it has not so many."""
    prefix = Prefix()
    while prefix.offset < offset:
        data = file.read(min(_CHUNK_BYTES, offset - prefix.offset))
        if not data:
            return None
        prefix.add(data)
    return prefix


def find_common_prefix(
    file: BinaryIO, offset: int, sha256: str, marks: Sequence[tuple[int, str]]
) -> tuple[int, str] | None:
    """How far ``file`` is proven to be one whose first ``offset`` bytes hash to ``sha256``: an offset and the hash up to there.

    Of a file that ends before, it is the last of the ``marks`` that it holds: a copy that was made a moment earlier. None:
    nothing proves it.
    """
    prefix, proven = Prefix(), None
    for at, expected in (*sorted(marks), (offset, sha256)):
        while prefix.offset < at:
            data = file.read(min(_CHUNK_BYTES, at - prefix.offset))
            if not data:
                return proven
            prefix.add(data)
        if prefix.sha256 != expected:
            return None
        proven = (at, expected)
    return proven


def holds(longer: BinaryIO, shorter: BinaryIO) -> bool:
    """Whether one file begins with all of the other; both stand at their start."""
    while data := shorter.read(_CHUNK_BYTES):
        ours = b""
        while len(ours) < len(data) and (more := longer.read(len(data) - len(ours))):
            ours += more
        if ours != data:
            return False
    return True
