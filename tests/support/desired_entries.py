"""Desired entries of a sink, written through the mirror's intake store as if a snapshot source had been read."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import polars as pl

from ingestd.core.address import SinkAddress
from ingestd.core.guard import Guard
from ingestd.core.record import Partition
from ingestd.mirror.port import RunSummary, Snapshot
from ingestd.mirror.row_hashes import RowHashes
from ingestd.mirror.sqlite import SqliteMirror
from tests.support.memory_mirror import Desired

SCHEMA = {
    "key": pl.String,
    "value": pl.String,
    "data_type": pl.String,
    "row_hash": pl.UInt64,
    "position": pl.Int64,
}


def desire_all(
    mirror: SqliteMirror, address: SinkAddress, entries: Mapping[str, Desired], *, guard: Guard | None = None
) -> RunSummary:
    """Replace the desired entries of a sink, unless the guard holds the run."""
    rows = [
        (key, value, data_type, _hash(key, value, data_type), position)
        for position, (key, (value, data_type)) in enumerate(entries.items(), start=1)
    ]
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    partition = mirror.intake.open_partition("desires", Partition(name=str(address)), address, "digest")
    run = mirror.intake.begin_run(partition.id, snapshot=True, whole=True, guard=guard)
    mirror.intake.commit(run, entries=frame, records=len(rows), rejects=(), cursor={}, facts={})
    return mirror.intake.finish_run(
        run, cursor={}, seen=Snapshot(hashes=RowHashes.of(frame["row_hash"])), deletes="remove"
    )


def _hash(*parts: str | None) -> int:
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8])
