"""The identity of a file: the values of its status that show a change, without opening the file."""

from __future__ import annotations

import os
from typing import NamedTuple

from connectors.mounts import has_change_time
from ingestd.sdk import Cursor

COMPARED_BYTES = 4 * 2**20
"""If a file system keeps no change times (ctime), only smaller files are compared by content. See `Identity.is_proof`."""


class Identity(NamedTuple):
    """Device, inode, size in bytes, and times in nanoseconds since the epoch.

    If only ``ctime_ns`` differs, the file was renamed, its permissions changed, or another file replaced it. The other file
    then has the same inode, size and time, for example if an archive with fixed times was unpacked again. Only the content
    shows the actual case. ``version``: the version that a server states, such as an ETag; empty for a file on disk.
    """

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    version: str = ""

    @classmethod
    def from_status(cls, status: os.stat_result) -> Identity:
        """Return the identity that a file's status states."""
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

    def has_same_content(self, other: Identity | None) -> bool:
        """Return True if the identities are equal, which suggests equal content; see `is_proof`."""
        return self == other

    def is_renamed(self, other: Identity) -> bool:
        """Return True if ``other`` may be this file before a rename: only ``ctime_ns`` may differ."""
        return self[:4] == other[:4] and self.version == other.version

    def matches_cursor(self, cursor: Cursor | None) -> bool:
        """Return True if the cursor is from a complete reading, and the file did not change after that reading."""
        if cursor is None:
            return False
        expected = self.to_cursor(str(cursor.get("sha256")))
        return cursor == expected or ("repeated" in cursor and cursor == {**expected, "repeated": cursor["repeated"]})

    def to_cursor(self, sha256: str) -> dict[str, object]:
        """Return the cursor of a complete reading of the file."""
        cursor = {**self._asdict(), "sha256": sha256}
        if not self.version:
            del cursor["version"]
        return cursor

    @property
    def is_proof(self) -> bool:
        """True if an equal identity proves equal content, or if the file is too large to be hashed at every check.

        The identity of a remote file has no device, and counts as a proof.
        """
        return self.size >= COMPARED_BYTES or has_change_time(self.device)
