"""The differing entries that a source confirms."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection

import polars as pl

from ingestd.mirror.sqlite.entries.snapshots import load_snapshot
from ingestd.mirror.sqlite.sql import SQL


def confirmed_entries(
    connection: sqlite3.Connection, page: pl.DataFrame, opened: Collection[int], snapshots: dict[int, pl.Series | None]
) -> pl.DataFrame:
    """Return the entries that a source confirms: the source has named their replayable partition since the start.

    If the partition has a valid whole reading, this reading must have the entry's record. If a partition has a held run or
    can't be read, its entries are not confirmed: the newer state file may have delivered later records.

    ``opened``: the replayable partitions that the sources have named since the start. ``snapshots``: a cache of row hashes by
    partition for all pages; None for a partition without a whole reading.
    """
    kept = []
    for (partition,), group in page.group_by("partition", maintain_order=True):
        identity = int(str(partition))
        if identity not in opened:
            continue
        if connection.execute(SQL["partition_withheld"], {"partition": identity}).fetchone()[0]:
            continue
        if identity not in snapshots:
            read_whole = connection.execute(SQL["partition_read_whole"], (identity,)).fetchone()[0]
            snapshots[identity] = load_snapshot(connection, identity).reinterpret(signed=True) if read_whole else None
        hashes = snapshots[identity]
        kept.append(group if hashes is None else group.filter(pl.col("row_hash").is_in(hashes.implode())))
    return pl.concat(kept) if kept else page.clear()
