"""Which file this is, as far as its status tells without opening it."""

from __future__ import annotations

import os
from typing import NamedTuple

from ingestd.sdk import Cursor


class Identity(NamedTuple):
    """Device and inode, size in bytes, times in nanoseconds. ``ctime_ns`` tells a changed permission, no other content."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def from_status(cls, status: os.stat_result) -> Identity:
        """Return the identity that a file's status states."""
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

    def same_content(self, other: Identity | None) -> bool:
        """Whether nothing suggests that the content differs: all but the time of the last status change is equal."""
        return other is not None and self[:4] == other[:4]

    def is_at(self, cursor: Cursor | None) -> bool:
        """Whether a cursor speaks of this very file, read to its end."""
        return cursor is not None and cursor == self.cursor(str(cursor.get("sha256")))

    def cursor(self, sha256: str) -> dict[str, object]:
        """The cursor of a reading to the end."""
        return {
            "device": self.device,
            "inode": self.inode,
            "size": self.size,
            "mtime_ns": self.mtime_ns,
            "sha256": sha256,
        }
