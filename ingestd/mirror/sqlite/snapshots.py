"""Row hashes of a partition: sorted 64-bit integers in Arrow format, in pieces of one row each."""

from __future__ import annotations

import hashlib
import io
import sqlite3
from collections.abc import Iterator

import polars as pl

from ingestd.mirror.sqlite.sql import SQL

_PIECE = 1 << 20  # hashes, so 8 MiB

KEPT = 1000
"""Maximum number of snapshots of a pipeline, which bounds the state file of a folder that always gets new file names."""

RUNS_APART = 64
"""Number of runs between two searches for old snapshots, because each reads the `KEPT` newest partitions."""


def load_snapshot(connection: sqlite3.Connection, partition: int) -> pl.Series:
    """Return the hashes of the last whole reading, sorted (``pl.UInt64``); empty if it had no records."""
    return _load(connection, "snapshot_get", partition)


def load_held_snapshot(connection: sqlite3.Connection, run: int) -> pl.Series:
    """Return the hashes of a held run, as `load_snapshot` does."""
    return _load(connection, "held_snapshot_get", run)


def store_snapshot(connection: sqlite3.Connection, partition: int, hashes: pl.Series) -> None:
    """Replace the stored hashes of the partition by ``hashes`` (sorted ``pl.UInt64``)."""
    connection.execute(SQL["snapshot_clear"], (partition,))
    for piece, data in enumerate(_pieces(hashes)):
        connection.execute(SQL["snapshot_add"], (partition, piece, data))


def store_held_snapshot(connection: sqlite3.Connection, run: int, hashes: pl.Series) -> None:
    """Store the hashes of a held run."""
    for piece, data in enumerate(_pieces(hashes)):
        connection.execute(SQL["held_snapshot_add"], (run, piece, data))


def digest_of(hashes: pl.Series) -> str:
    """Return a digest of sorted hashes, which identifies the content of a reading."""
    digest = hashlib.sha256()
    for data in _pieces(hashes):
        digest.update(data)
    return digest.hexdigest()


def _pieces(hashes: pl.Series) -> Iterator[bytes]:
    for start in range(0, hashes.len(), _PIECE):
        data = io.BytesIO()
        hashes[start : start + _PIECE].alias("row_hash").to_frame().write_ipc(data)
        yield data.getvalue()


def _load(connection: sqlite3.Connection, statement: str, of: int) -> pl.Series:
    pieces = [pl.read_ipc(io.BytesIO(data))["row_hash"] for (data,) in connection.execute(SQL[statement], (of,))]
    return pl.concat(pieces).set_sorted() if pieces else pl.Series("row_hash", [], dtype=pl.UInt64)


def drop_old_snapshots(connection: sqlite3.Connection, partition: int) -> None:
    """Delete snapshots except those of the pipeline's most recently read partitions. Call it every `RUNS_APART` runs."""
    rows = connection.execute(SQL["snapshots_drop_old"], (partition, 2 * RUNS_APART, KEPT)).fetchall()
    connection.executemany(SQL["partition_without_snapshot"], list(set(rows)))
