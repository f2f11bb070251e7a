"""The pending entries of a partition that writes another sink now, although the service never had its former sink."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import groupby

import polars as pl
from msgspec.structs import replace

from ingestd.mirror.sqlite.entries.entry_writer import pass_on, write_entries
from ingestd.mirror.sqlite.entries.segments import keys_of, leave
from ingestd.mirror.sqlite.entries.target import WriteTarget
from ingestd.mirror.sqlite.sql import SQL

_ENTRIES = {"key": str, "value": str, "data_type": str, "row_hash": int, "position": None}


def leave_unknown_sink(target: WriteTarget, former: int, *, pipeline: str, replayable: bool) -> bool:
    """Delete the pending entries of the target's partition in its ``former`` sink, if the service never had that sink.

    No lane could deliver them: the name of the sink or of its workspace was wrong. ``replayable``: the source names the entries
    again. Otherwise the entries become pending in the target's sink. Return whether entries became pending there.
    """
    connection, partition = target.connection, target.partition
    moved = False
    at_former = {"sink": former, "partition": partition}
    for segment, body in connection.execute(SQL["segments_of_unknown_sink"], at_former).fetchall():
        target.claimed.keep_unclaimed([segment])
        parameters = {**at_former, "segment": segment, "keys": json.dumps(sorted(keys_of(body)))}
        rows = connection.execute(SQL["entries_of_segment"], parameters).fetchall()
        passed = set(pass_on(replace(target, sink=former), [key for key, *_ in rows])[0])
        left = [row for row in rows if row[0] not in passed]
        connection.execute(SQL["entries_delete"], (former, json.dumps([key for key, *_ in left])))
        leave(connection, Counter({segment: len(left)}))
        if not replayable:
            for run, entries in _by_run(left):
                moved |= write_entries(replace(target, run=run), entries, pipeline=pipeline).changed > 0
    return moved


def _by_run(rows: list[tuple[object, ...]]) -> Iterator[tuple[int, pl.DataFrame]]:
    """Yield the entries of each run, sorted by key. Pending removals are left out."""
    present = sorted((row for row in rows if not row[-1]), key=lambda row: (row[-2], row[0]))
    for run, group in groupby(present, key=lambda row: int(str(row[-2]))):
        yield run, pl.DataFrame([row[:-2] for row in group], schema=_ENTRIES, orient="row", infer_schema_length=None)
