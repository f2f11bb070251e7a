"""The files that this process follows. With this state, only the new end of a file is read after an append.

The prefix is the beginning of a file that was read. The hash of the prefix proves that the file is still the same file.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Collection, Sequence
from typing import BinaryIO

from connectors.files.identity import Identity
from connectors.log.cursor import CursorPart
from connectors.log.rows import RowReader

_BLOCK_BYTES = 2**20
_WINDOW_BYTES = 2**16


class Prefix:
    """The first ``offset`` bytes of a file: the hash of these bytes, and a copy of the last 64 KiB."""

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
        """The SHA-256 of the prefix."""
        return self._digest.hexdigest()

    def matches(self, file: io.FileIO) -> bool:
        """Return True if the file still has the last bytes of the prefix. After a truncation, other bytes are there."""
        window = self._window
        return os.pread(file.fileno(), len(window), self.offset - len(window)) == window


def read_prefix(file: BinaryIO, offset: int) -> Prefix | None:
    """Read the first ``offset`` bytes of a file. Return None if the file is shorter."""
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
    """Return offset and hash of the longest prefix that ``file`` surely shares with a known file; None if there is none.

    The first ``offset`` bytes of the known file have the hash ``sha256``. ``marks`` are pairs of earlier offset and hash. If
    ``file`` is shorter (a copy that was made a moment earlier, for example), the result is the last mark within ``file``.
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
    """Return True if ``longer`` begins with the whole content of ``shorter``. Both files must be at offset 0."""
    while data := shorter.read(_BLOCK_BYTES):
        same = b""
        while len(same) < len(data) and (more := longer.read(len(data) - len(same))):
            same += more
        if same != data:
            return False
    return True


class FollowedFiles:
    """Prefixes and row readers of the followed files. They are only in memory; after a restart, readings rebuild them.

    ``damaged``: packed files that can't be unpacked in their present state. ``copies``: for each file that is a copy of the
    beginning of another file, the device and inode of that other file.
    """

    def __init__(self) -> None:
        self._prefixes: dict[tuple[int, int], Prefix] = {}
        self._readers: dict[tuple[int, int], RowReader] = {}
        self.damaged: set[Identity] = set()
        self.copies: dict[Identity, tuple[int, int]] = {}

    def prefix(self, part: CursorPart, file: io.FileIO) -> Prefix | None:
        """Return the prefix if ``file`` still begins with the content of ``part`` that was read; else None.

        Afterwards, the file is at the end of the prefix.
        """
        known = self._prefixes.get(part.id)
        if known is not None and known.offset == part.offset and known.sha256 == part.sha256:
            if known.matches(file):
                file.seek(part.offset)
                return known
            return None
        file.seek(0)
        prefix = read_prefix(file, part.offset)
        if prefix is None or (part.offset and prefix.sha256 != part.sha256):
            return None
        self._prefixes[part.id] = prefix
        return prefix

    def row_reader(self, part: CursorPart) -> RowReader | None:
        """Return the remembered row reader of the file; None if there is none."""
        return self._readers.get(part.id)

    def remember_reader(self, part: CursorPart, reader: RowReader) -> None:
        """Remember the row reader of the file."""
        self._readers[part.id] = reader

    def forget(self, id_: tuple[int, int]) -> None:
        """Forget a file, because another file has its inode now, or its content was replaced."""
        self._prefixes.pop(id_, None)
        self._readers.pop(id_, None)

    def keep_only(self, ids: Collection[tuple[int, int]]) -> None:
        """Forget every file with a device and inode that are not in ``ids``."""
        for id_ in [known for known in self._prefixes.keys() | self._readers.keys() if known not in ids]:
            self.forget(id_)
        self.copies = {copy: other for copy, other in self.copies.items() if other in ids}
