"""The effect of a staged run on the mirror's entries, before it is written."""

from __future__ import annotations

import sqlite3
from collections import Counter

import msgspec
import polars as pl

from ingestd.core.guard import RunEffect, count_near_factors
from ingestd.mirror.port import Removal
from ingestd.mirror.sqlite.entries.entry_writer import compare_with_known, find_kept, known_entries
from ingestd.mirror.sqlite.entries.seen_hashes import SeenHashes, read_frames
from ingestd.mirror.sqlite.runs.run_writer import RunState
from ingestd.mirror.sqlite.sql import SQL

PAGE = 10_000
"""Maximum number of entries in one transaction, which takes some tenths of a second."""

STAGED = {
    "key": str,
    "value": str,
    "data_type": str,
    "row_hash": int,
    "position": None,
    "deadband": str,
}
"""The columns of ``staging_read``."""

UNSTAGED = {"key": str, "row_hash": int}
"""The columns of ``entries_unstaged``."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of a run. ``collides``: its differences do not show which record owns a key."""

    effect: RunEffect
    collides: bool


def measure_effect(reader: sqlite3.Connection, run: RunState, *, seen: pl.Series | None, deletes: Removal) -> Measured:
    """Compare the staged entries of a run with the mirror, in pages. ``seen``: the row hashes of a whole reading (Int64)."""
    before = reader.execute(SQL["entries_count"], (run.sink, run.partition)).fetchone()[0]
    counts, near, collides, after = Counter[str](), Counter[str](), False, ""
    hashes = SeenHashes(seen) if seen is not None else None
    while rows := reader.execute(SQL["staging_read"], (run.id, after, PAGE)).fetchall():
        after = rows[-1][0]
        page = pl.DataFrame(rows, schema=STAGED, orient="row", infer_schema_length=None)
        if seen is not None and not collides:
            kept = find_kept(reader, page, sink=run.sink, partition=run.partition)
            collides = bool(kept["old_hash"].is_in(seen.implode()).any())
        page = page.filter(pl.col("value").is_not_null())
        joined = page.join(known_entries(reader, run.sink, page["key"].to_list()), on="key", how="left")
        exists = pl.col("partition").is_not_null() & (pl.col("removed") == 0)
        joined = compare_with_known(reader, run.sink, joined)
        updated = joined.filter(exists & ~pl.col("equal"))
        numeric, of_page = count_near_factors(updated["old_value"], updated["value"])
        counts["created"] += joined.filter(~exists.fill_null(value=False)).height
        counts["updated"] += updated.height
        counts["retyped"] += updated.filter(pl.col("old_type") != pl.col("data_type")).height
        counts["numeric"] += numeric
        near.update(of_page)
        own = pl.col("partition") == run.partition
        collides = collides or bool(updated.filter(~own).height)
        if hashes is not None and not collides:
            other_record = joined.filter(exists & own & (pl.col("old_hash") != pl.col("row_hash")))
            collides = not hashes.mask_absent(other_record["old_hash"]).all()
    effect = RunEffect(
        before=before,
        created=counts["created"],
        updated=counts["updated"],
        removed=_removed(reader, run, hashes) if hashes is not None and deletes == "remove" else 0,
        retyped=counts["retyped"],
        numeric=counts["numeric"],
        near=dict(near),
        empty=seen is not None and not seen.len(),
    )
    return Measured(effect=effect, collides=collides and not run.whole)


def _removed(reader: sqlite3.Connection, run: RunState, seen: SeenHashes) -> int:
    parameters = {"sink": run.sink, "partition": run.partition, "run": run.id}
    is_every = run.remapped and run.whole
    return sum(
        frame.height if is_every else int(seen.mask_absent(frame["row_hash"]).sum())
        for frame in read_frames(reader.execute(SQL["entries_unstaged"], parameters), UNSTAGED)
    )
