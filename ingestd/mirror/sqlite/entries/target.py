"""The sink, partition and run for which a transaction writes entries."""

from __future__ import annotations

import sqlite3

import msgspec

from ingestd.mirror.sqlite.entries.claimed_segments import ClaimedSegments


class WriteTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A run of a partition that writes to a sink, in an open transaction.

    ``claimed``: the segments in open claims. ``at``: now, in seconds since the epoch.
    """

    connection: sqlite3.Connection
    sink: int
    partition: int
    run: int
    claimed: ClaimedSegments
    at: float
