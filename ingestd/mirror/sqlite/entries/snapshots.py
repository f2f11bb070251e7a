"""Row hashes of a partition: 64-bit integers in Arrow format, in pieces. Each piece is one row of a table.

A small number of hashes is stored as an Arrow stream. polars writes an Arrow file by a query, which takes longer than all other
work for a small file. The first piece also has the sections of the source. Only the end of a reading stores sections. Any other
change of the row hashes deletes the sections, because the sections no longer match.
"""

from __future__ import annotations

import hashlib
import io
import sqlite3
from collections.abc import Iterable, Iterator

import polars as pl

from ingestd.mirror.row_hashes import RowHashes
from ingestd.mirror.sqlite.sql import SQL

_PIECE = 1 << 17  # hashes, so 1 MiB; while a piece is stored, SQLite and its caller have several copies of it
_DIGEST_PIECE = 1 << 20  # hashes; the digests in state files depend on this number

_SMALL = 200
_ARROW_FILE = b"ARROW1"

KEPT = 1000
"""Maximum number of snapshots of a pipeline, which bounds the state file of a folder that always gets new file names."""

RUNS_APART = 64
"""Number of runs between two searches for old snapshots, because each search reads the `KEPT` newest partitions."""


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
    connection: sqlite3.Connection, partition: int, hashes: RowHashes, sections: pl.DataFrame | None = None
) -> None:
    """Replace the stored hashes and sections of the partition."""
    connection.execute(SQL["snapshot_clear"], (partition,))
    pieces = [_stream(hashes.series())] if 0 < hashes.count <= _SMALL else _pieces(hashes.pieces(), _PIECE)
    for piece, data in enumerate(pieces):
        described = _encode(sections) if sections is not None and not piece else None
        connection.execute(SQL["snapshot_add"], (partition, piece, data, described))


def keep_in_snapshot(connection: sqlite3.Connection, partition: int, seen: RowHashes) -> None:
    """Keep only the stored hashes of the partition that are in ``seen``, and delete its sections."""
    connection.execute(SQL["snapshot_without_sections"], (partition,))
    pieces = connection.execute(SQL["snapshot_pieces"], (partition,)).fetchall()
    for part in seen.ranges():
        for (piece,) in pieces:
            (data,) = connection.execute(SQL["snapshot_piece"], (partition, piece)).fetchone()
            hashes = _decode(data)
            within = part.within(hashes)
            gone = within.filter(part.mask_absent(within))
            if gone.len():
                kept = _encode(hashes.filter(~hashes.is_in(gone.implode())).to_frame())
                connection.execute(SQL["snapshot_piece_set"], (kept, partition, piece))


def store_held_snapshot(connection: sqlite3.Connection, run: int, hashes: RowHashes) -> None:
    """Store the hashes of a held run."""
    for piece, data in enumerate(_pieces(hashes.pieces(), _PIECE)):
        connection.execute(SQL["held_snapshot_add"], (run, piece, data))


def digest_of(hashes: RowHashes) -> str:
    """Return a digest that identifies the content of a reading. The order of the hashes does not change the digest."""
    digest = hashlib.sha256()
    for data in _pieces((part.hashes for part in hashes.ranges()), _DIGEST_PIECE):
        digest.update(data)
    return digest.hexdigest()


def _pieces(parts: Iterable[pl.Series], size: int) -> Iterator[bytes]:
    """Yield the encoded hashes in pieces of ``size``; the last piece may be smaller."""
    rest = pl.DataFrame(schema={"row_hash": pl.UInt64})
    for part in parts:
        rest = pl.concat([rest, part.to_frame("row_hash")], rechunk=True)  # a digest depends on the chunks
        while rest.height >= size:
            yield _encode(rest[:size])
            rest = rest[size:]
    if rest.height:
        yield _encode(rest)


def _encode(frame: pl.DataFrame) -> bytes:
    data = io.BytesIO()
    frame.write_ipc(data)
    return data.getvalue()


def _stream(hashes: pl.Series) -> bytes:
    data = io.BytesIO()
    hashes.alias("row_hash").to_frame().write_ipc_stream(data)
    return data.getvalue()


def _load(connection: sqlite3.Connection, statement: str, of: int) -> pl.Series:
    pieces = [_decode(data) for (data,) in connection.execute(SQL[statement], (of,))]
    return pl.concat(pieces) if pieces else pl.Series("row_hash", [], dtype=pl.UInt64)


def _decode(data: bytes) -> pl.Series:
    return (pl.read_ipc if data.startswith(_ARROW_FILE) else pl.read_ipc_stream)(io.BytesIO(data))["row_hash"]


def drop_old_snapshots(connection: sqlite3.Connection, partition: int) -> None:
    """Delete snapshots, except the snapshots of the pipeline's most recently read partitions.

    Call it every `RUNS_APART` runs.
    """
    rows = connection.execute(SQL["snapshots_drop_old"], (partition, 2 * RUNS_APART, KEPT)).fetchall()
    connection.executemany(SQL["partition_without_snapshot"], list(set(rows)))
