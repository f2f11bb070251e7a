"""The cursors of partitions, for `ingestd cursor`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from ingestd.core.record import Cursor


class StoredCursor(msgspec.Struct, frozen=True, kw_only=True):
    """The cursor of a partition; None: the next reading starts at the beginning.

    ``at``: when the last reading began, in seconds since the epoch; None: never read. ``pending``: entries of the partition that
    are not delivered yet. ``rejected``: its rejections.
    """

    partition: str
    cursor: Cursor | None
    at: float | None
    pending: int
    rejected: int


class CursorReader(Protocol):
    """Reads cursors."""

    def cursors(self, pipeline: str, partitions: Sequence[str] = ()) -> list[StoredCursor]:
        """Return the cursors of the named partitions, or of all that the source still has, by name."""


class CursorKeeper(Protocol):
    """Changes cursors. The delivered values stay known, so a second reading sends only values that differ."""

    def set_cursor(self, pipeline: str, partition: str, cursor: Cursor | None) -> bool:
        """Store the cursor of a partition (None: its beginning); return False if the pipeline never had the partition.

        No reading of the partition may run, because its end would store another cursor.
        """
