"""Row hashes of a partition: sorted 64-bit integers in Arrow format, in pieces of one row each."""

from __future__ import annotations

import io
import sqlite3

import polars as pl

from ingestd.mirror.sqlite.sql import SQL

_PIECE = 1 << 20  # hashes, so 8 MiB

KEPT = 1000
"""Maximum number of snapshots of a pipeline, which bounds the state file of a folder that always gets new file names."""

RUNS_APART = 64
"""Number of runs between two searches for old snapshots, because each reads the `KEPT` newest partitions."""


def load_snapshot(connection: sqlite3.Connection, partition: int) -> pl.Series:
    """Return the hashes of the last whole reading, sorted (``pl.UInt64``); empty if it had no records."""
    pieces = [
        pl.read_ipc(io.BytesIO(data))["row_hash"] for (data,) in connection.execute(SQL["snapshot_get"], (partition,))
    ]
    return pl.concat(pieces).set_sorted() if pieces else pl.Series("row_hash", [], dtype=pl.UInt64)


def store_snapshot(connection: sqlite3.Connection, partition: int, hashes: pl.Series) -> None:
    """Replace the stored hashes of the partition by ``hashes`` (sorted ``pl.UInt64``)."""
    connection.execute(SQL["snapshot_clear"], (partition,))
    for piece, start in enumerate(range(0, hashes.len(), _PIECE)):
        data = io.BytesIO()
        hashes[start : start + _PIECE].alias("row_hash").to_frame().write_ipc(data)
        connection.execute(SQL["snapshot_add"], (partition, piece, data.getvalue()))


def drop_old_snapshots(connection: sqlite3.Connection, partition: int) -> None:
    """Delete snapshots except those of the pipeline's most recently read partitions. Call it every `RUNS_APART` runs."""
    rows = connection.execute(SQL["snapshots_drop_old"], (partition, 2 * RUNS_APART, KEPT)).fetchall()
    connection.executemany(SQL["partition_without_snapshot"], list(set(rows)))
