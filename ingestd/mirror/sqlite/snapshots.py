"""A partition's row hashes: sorted 64-bit integers as Arrow, in pieces that SQLite holds in one row each."""

from __future__ import annotations

import io
import sqlite3

import polars as pl

from ingestd.mirror.sqlite.sql import SQL

_PIECE = 1 << 20  # hashes, so 8 MiB

KEPT = 1000
"""Of so many partitions of a pipeline the snapshots are kept, so that a folder of ever new names stays bounded."""

RUNS_APART = 64
"""Old snapshots are looked for once in so many runs, because that walks over the `KEPT` newest partitions."""


def load_snapshot(connection: sqlite3.Connection, partition: int) -> pl.Series:
    """The hashes of the last whole reading, sorted (``pl.UInt64``); empty where it had no records."""
    pieces = [
        pl.read_ipc(io.BytesIO(data))["row_hash"] for (data,) in connection.execute(SQL["snapshot_get"], (partition,))
    ]
    return pl.concat(pieces).set_sorted() if pieces else pl.Series("row_hash", [], dtype=pl.UInt64)


def store_snapshot(connection: sqlite3.Connection, partition: int, hashes: pl.Series) -> None:
    """Replace the partition's hashes by these (sorted ``pl.UInt64``)."""
    connection.execute(SQL["snapshot_clear"], (partition,))
    for piece, start in enumerate(range(0, hashes.len(), _PIECE)):
        data = io.BytesIO()
        hashes[start : start + _PIECE].alias("row_hash").to_frame().write_ipc(data)
        connection.execute(SQL["snapshot_add"], (partition, piece, data.getvalue()))


def drop_old_snapshots(connection: sqlite3.Connection, partition: int) -> None:
    """Keep only the snapshots of the pipeline's partitions that were read last; to be called every `RUNS_APART` runs."""
    rows = connection.execute(SQL["snapshots_drop_old"], (partition, 2 * RUNS_APART, KEPT)).fetchall()
    connection.executemany(SQL["partition_without_snapshot"], list(set(rows)))
