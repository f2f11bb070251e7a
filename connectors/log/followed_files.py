"""The files that this process follows, so that only the end of a file is read after an append."""

from __future__ import annotations

import io
from collections.abc import Collection

from connectors.files import Identity
from connectors.log.cursor import CursorPart
from connectors.log.prefix import Prefix, read_prefix
from connectors.log.rows import RowReader


class FollowedFiles:
    """Prefixes and row readers of the followed files. Kept in memory only; found again by reading.

    ``damaged``: packed files that can't be unpacked as they are. ``copies``: files that are copies of the beginning of another
    one, with the device and inode of that.
    """

    def __init__(self) -> None:
        self._prefixes: dict[tuple[int, int], Prefix] = {}
        self._readers: dict[tuple[int, int], RowReader] = {}
        self.damaged: set[Identity] = set()
        self.copies: dict[Identity, tuple[int, int]] = {}

    def prefix(self, part: CursorPart, file: io.FileIO) -> Prefix | None:
        """Return the proof that ``file`` begins with what was read of ``part``, with the file at its end.

        The result is None if it does not.
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
        """Return the row reader of this file, if it is known."""
        return self._readers.get(part.id)

    def remember_reader(self, part: CursorPart, reader: RowReader) -> None:
        """Remember the row reader of this file."""
        self._readers[part.id] = reader

    def forget(self, id_: tuple[int, int]) -> None:
        """Forget a file, because another file has its inode now, or its content was replaced."""
        self._prefixes.pop(id_, None)
        self._readers.pop(id_, None)

    def keep_only(self, ids: Collection[tuple[int, int]]) -> None:
        """Forget every other file."""
        for id_ in [known for known in self._prefixes.keys() | self._readers.keys() if known not in ids]:
            self.forget(id_)
        self.copies = {copy: other for copy, other in self.copies.items() if other in ids}
