"""Row hashes of a partition: 64-bit integers in Arrow format, in pieces of one row each.

Few of them are an Arrow stream, because polars writes an Arrow file by a query, which takes longer than the rest of a small file.
The first piece also has the sections of the source. Only the end of a reading stores sections; any other change of the row
hashes discards them, because then they no longer describe the hashes.
"""

from __future__ import annotations

import hashlib
import io
import sqlite3
from collections.abc import Iterator

import polars as pl

from ingestd.mirror.sqlite.sql import SQL

_PIECE = 1 << 20  # hashes, so 8 MiB

_SMALL = 200
_ARROW_FILE = b"ARROW1"

KEPT = 1000
"""Maximum number of snapshots of a pipeline, which bounds the state file of a folder that always gets new file names."""

RUNS_APART = 64
"""Number of runs between two searches for old snapshots, because each reads the `KEPT` newest partitions."""


def load_snapshot(connection: sqlite3.Connection, partition: int) -> pl.Series:
    """Return the hashes of the last whole reading (``pl.UInt64``, in any order); empty if it had no records."""
    return _load(connection, "snapshot_get", partition)


def load_sections(connection: sqlite3.Connection, partition: int) -> pl.DataFrame | None:
    """Return the sections of the last whole reading; see `ingestd.mirror.port.Snapshot`."""
    row = connection.execute(SQL["snapshot_sections"], (partition,)).fetchone()
    return pl.read_ipc(io.BytesIO(row[0])) if row is not None and row[0] is not None else None


def load_held_snapshot(connection: sqlite3.Connection, run: int) -> pl.Series:
    """Return the hashes of a held run, as `load_snapshot` does."""
    return _load(connection, "held_snapshot_get", run)


def store_snapshot(
    connection: sqlite3.Connection, partition: int, hashes: pl.Series, sections: pl.DataFrame | None = None
) -> None:
    """Replace the stored hashes of the partition by ``hashes`` (``pl.UInt64``), and its sections."""
    connection.execute(SQL["snapshot_clear"], (partition,))
    pieces = [_stream(hashes)] if 0 < hashes.len() <= _SMALL else _pieces(hashes)
    for piece, data in enumerate(pieces):
        described = _encode(sections) if sections is not None and not piece else None
        connection.execute(SQL["snapshot_add"], (partition, piece, data, described))


def store_held_snapshot(connection: sqlite3.Connection, run: int, hashes: pl.Series) -> None:
    """Store the hashes of a held run."""
    for piece, data in enumerate(_pieces(hashes)):
        connection.execute(SQL["held_snapshot_add"], (run, piece, data))


def digest_of(hashes: pl.Series) -> str:
    """Return a digest of hashes in any order, which identifies the content of a reading."""
    digest = hashlib.sha256()
    for data in _pieces(hashes.sort()):
        digest.update(data)
    return digest.hexdigest()


def _pieces(hashes: pl.Series) -> Iterator[bytes]:
    for start in range(0, hashes.len(), _PIECE):
        yield _encode(hashes[start : start + _PIECE].alias("row_hash").to_frame())


def _encode(frame: pl.DataFrame) -> bytes:
    data = io.BytesIO()
    frame.write_ipc(data)
    return data.getvalue()


def _stream(hashes: pl.Series) -> bytes:
    data = io.BytesIO()
    hashes.alias("row_hash").to_frame().write_ipc_stream(data)
    return data.getvalue()


def _load(connection: sqlite3.Connection, statement: str, of: int) -> pl.Series:
    pieces = [
        (pl.read_ipc if data.startswith(_ARROW_FILE) else pl.read_ipc_stream)(io.BytesIO(data))["row_hash"]
        for (data,) in connection.execute(SQL[statement], (of,))
    ]
    return pl.concat(pieces) if pieces else pl.Series("row_hash", [], dtype=pl.UInt64)


def drop_old_snapshots(connection: sqlite3.Connection, partition: int) -> None:
    """Delete snapshots except those of the pipeline's most recently read partitions. Call it every `RUNS_APART` runs."""
    rows = connection.execute(SQL["snapshots_drop_old"], (partition, 2 * RUNS_APART, KEPT)).fetchall()
    connection.executemany(SQL["partition_without_snapshot"], list(set(rows)))
