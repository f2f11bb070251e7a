"""What one process remembers of the files that it follows, so that an append costs a look at its end and no more."""

from __future__ import annotations

import io
from collections.abc import Collection

from connectors.files import Identity
from connectors.log.cursor import CursorPart
from connectors.log.prefix import Prefix, read_prefix
from connectors.log.rows import RowReader


class FollowedFiles:
    """Forgets with the process; all of it is found out again by reading. Bounded by the files that are followed."""

    def __init__(self) -> None:
        self._prefixes: dict[tuple[int, int], Prefix] = {}
        self._rows: dict[tuple[int, int], RowReader] = {}
        self.damaged: set[Identity] = set()
        """Packed files that can't be unpacked as they are."""
        self.copies: dict[Identity, tuple[int, int]] = {}
        """Files that are copies of the beginning of another, by the other's device and inode."""

    def prefix(self, part: CursorPart, file: io.FileIO) -> Prefix | None:
        """The proof that ``file`` begins with what was read of ``part``; None: it does not. Leaves it behind that."""
        known = self._prefixes.get(part.id)
        if known is not None and known.offset == part.offset and known.sha256 == part.sha256:
            if known.stands(file):
                file.seek(part.offset)
                return known
            return None
        file.seek(0)
        prefix = read_prefix(file, part.offset)
        if prefix is None or (part.offset and prefix.sha256 != part.sha256):
            return None
        self._prefixes[part.id] = prefix
        return prefix

    def rows(self, part: CursorPart) -> RowReader | None:
        """What reads the rows of this file."""
        return self._rows.get(part.id)

    def read_by(self, part: CursorPart, rows: RowReader) -> None:
        """Remember what reads them."""
        self._rows[part.id] = rows

    def forget(self, id_: tuple[int, int]) -> None:
        """Another file has this inode now, or it has another content."""
        self._prefixes.pop(id_, None)
        self._rows.pop(id_, None)

    def keep_only(self, ids: Collection[tuple[int, int]]) -> None:
        """Forget the files that are followed no longer."""
        for id_ in [known for known in self._prefixes.keys() | self._rows.keys() if known not in ids]:
            self.forget(id_)
        self.copies = {copy: other for copy, other in self.copies.items() if other in ids}
