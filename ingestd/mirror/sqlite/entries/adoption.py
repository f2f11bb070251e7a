"""Adoption of the existing entries of a sink, and recovery after the service lost a sink."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from ingestd.mirror.port import Kind
from ingestd.mirror.sqlite.entries.claimed_segments import ClaimedSegments
from ingestd.mirror.sqlite.entries.entry_rows import write_rows
from ingestd.mirror.sqlite.entries.entry_writer import ADOPTED
from ingestd.mirror.sqlite.entries.former_values import keep_former, keep_found
from ingestd.mirror.sqlite.entries.known_entries import known_entries
from ingestd.mirror.sqlite.entries.segments import acknowledge_entries, leave, queue
from ingestd.mirror.sqlite.entries.target import WriteTarget
from ingestd.mirror.sqlite.sql import SQL

_PAGE = 50_000


def adopt_entries(
    connection: sqlite3.Connection, sink: int, entries: pl.DataFrame, *, claimed_segments: ClaimedSegments, at: float
) -> int:
    """Compare the service's entries (key, value, data_type) with the mirror.

    Return the number of pending entries that the service already has. ``at``: now, in seconds since the epoch.
    """
    found = entries.unique(subset="key", keep="last").sort("key")
    joined = found.join(
        known_entries(connection, sink, found["key"].to_list()), on="key", how="left", maintain_order="left"
    )
    # Entries that no source has named take the service's values, also when the sink is read again.
    unnamed = joined.filter(
        pl.col("partition").is_null() | ((pl.col("partition") == ADOPTED) & pl.col("kind").is_null())
    )
    if unnamed.height:
        keep_as_delivered(connection, sink, unnamed)
    pending = joined.filter(
        pl.col("kind").is_in(["create", "update"]) & ~pl.col("segment").is_in(list(claimed_segments))
    )
    equal = (pl.col("value") == pl.col("old_value")) & (pl.col("data_type") == pl.col("old_type"))
    delivered = pending.filter(equal.fill_null(value=False))
    acknowledge_entries(connection, sink, delivered["key"].to_list(), delivered["segment"].unique().to_list())
    differing = pending.filter(~equal.fill_null(value=False) & (pl.col("kind") == "create"))
    keep_found(
        connection, differing.select("key", "value", "data_type", pl.col("old_run").alias("ended_by")), sink=sink, at=at
    )
    _make_updates(connection, sink, differing)
    return delivered.height


def forget_entries(connection: sqlite3.Connection, sink: int) -> None:
    """Make all desired entries of the sink pending again, as creates, and delete the pending removals."""
    connection.execute(SQL["sink_forget_segments"], (sink,))
    connection.execute(SQL["sink_forget_removed"], (sink,))
    connection.execute(SQL["sink_forget_adopted"], (sink,))
    connection.execute(SQL["rejected_of_sink"], (sink,))
    after = ""
    while rows := connection.execute(SQL["sink_page"], (sink, after, _PAGE)).fetchall():
        page = pl.DataFrame(rows, schema=_PAGED, orient="row")
        queue_again(connection, sink, "create", page)
        after = rows[-1][0]


class PendingFound(NamedTuple):
    """A pending entry, and the service's entry with the same key. ``changed_at``: seconds since the epoch; 0: not known."""

    key: str
    segment: int
    partition: int
    row_hash: int
    value: str | None
    data_type: str | None
    changed_at: float


def follow_service(target: WriteTarget, found: Sequence[PendingFound]) -> None:
    """Adopt the service's values of pending entries as delivered. Entries that changed after they were found stay pending."""
    connection, sink, keys = target.connection, target.sink, [row.key for row in found]
    keep_former(target, keys, "adopted")
    acknowledge_entries(connection, sink, keys, list({row.segment for row in found}))
    connection.executemany(
        SQL["entry_follow"], ((row.value, row.data_type, sink, row.key, row.segment) for row in found)
    )


def keep_as_delivered(connection: sqlite3.Connection, sink: int, entries: pl.DataFrame) -> None:
    """Store entries (key, value, data_type) of the service that no source has named."""
    rows = entries.select(
        "key", "value", "data_type", pl.lit(0).alias("row_hash"), pl.lit(None, dtype=pl.Int64).alias("position")
    )
    write_rows(connection, rows, sink=sink, segment=0, removed=False, partition=ADOPTED, run=0)


def _make_updates(connection: sqlite3.Connection, sink: int, entries: pl.DataFrame) -> None:
    """Turn pending creates of keys that the service already has into updates with the mirror's value."""
    wanted = entries.select("key", pl.col("old_value").alias("value"), pl.col("old_type").alias("data_type"), "segment")
    queue_again(connection, sink, "update", wanted)
    leave(connection, Counter(entries["segment"].to_list()))


def queue_again(connection: sqlite3.Connection, sink: int, kind: Kind, entries: pl.DataFrame) -> None:
    """Queue entries (key, value, data_type) in new segments, separately for each partition and run."""
    rows = connection.execute(SQL["entries_source"], (json.dumps(entries["key"].to_list()), sink)).fetchall()
    found = entries.join(pl.DataFrame(rows, schema=_SOURCE, orient="row"), on="key", maintain_order="left")
    for (partition, run), group in found.group_by("partition", "run", maintain_order=True):
        location = {"sink": sink, "partition": int(str(partition)), "run": int(str(run))}
        for segment, piece in queue(connection, **location, kind=kind, entries=group, over={}):
            connection.execute(SQL["entries_point"], (segment, sink, json.dumps(piece["key"].to_list())))


_PAGED = {"key": str, "value": str, "data_type": str}
_SOURCE = {"key": str, "partition": int, "run": int, "position": int}
