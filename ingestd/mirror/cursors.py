"""The cursors of partitions, for `ingestd cursor`."""

from __future__ import annotations

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
