"""Writes the entries of a run, and keeps its state until it ends."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping

import msgspec
import polars as pl
from msgspec.structs import replace

from ingestd.core.guard import Guard
from ingestd.mirror.sqlite.entries.claimed_segments import ClaimedSegments
from ingestd.mirror.sqlite.entries.entry_writer import Written, keep_entries, write_entries
from ingestd.mirror.sqlite.entries.repeated_keys import RepeatedKeys
from ingestd.mirror.sqlite.entries.segments import json_rows
from ingestd.mirror.sqlite.entries.target import WriteTarget
from ingestd.mirror.sqlite.rejections.rejected_rows import RejectionLocation, store_conflicts
from ingestd.mirror.sqlite.sql import SQL


class RunState(msgspec.Struct, kw_only=True):
    """The state of a run in memory. After a crash the partition is read again from its cursor.

    ``outdated``: the differences of the run are not valid. Since the run began, a held run of the pipeline was approved, or
    entries of the sink were rolled back. ``stale``: since this run was held, another partition of the pipeline has written.
    ``only_guarded``: the entries are staged for the guard and for no other reason. ``after_rollback``: a run of the partition
    was rolled back. ``approved``: a person approved the held run. ``repeated_keys`` are noted for snapshots only.
    ``positions_exact``: when the run began, each entry had the position of the only record that produced it. ``moved``: an
    entry now comes from a record with another key in the source. ``fresh``: all entries so far were new to the mirror.
    ``last_row``: the highest row number so far.
    """

    id: int
    partition: int
    pipeline: str
    sink: int
    snapshot: bool
    whole: bool
    staged: bool
    remapped: bool
    has_rejected: bool
    retries: int
    repeated_keys: RepeatedKeys
    mapped: int = 0
    repeats: bool = False
    took_over: bool = False
    replaced: list[pl.Series] = msgspec.field(default_factory=list)
    replaced_before: list[pl.Series] = msgspec.field(default_factory=list)
    guard: Guard | None = None
    only_guarded: bool = False
    after_rollback: bool = False
    approved: bool = False
    positions_exact: bool = False
    moved: bool = False
    outdated: bool = False
    stale: bool = False
    fresh: bool = False
    last_row: int = 0


class RunWriter:
    """Writes the entries of runs inside the transactions of its callers.

    ``announce`` is called with the id of a sink that has new pending entries.
    """

    def __init__(
        self, *, now: Callable[[], float], claimed_segments: ClaimedSegments, announce: Callable[[int], None]
    ) -> None:
        self._now = now
        self._claimed = claimed_segments
        self._announce = announce

    def target(self, connection: sqlite3.Connection, run: RunState) -> WriteTarget:
        """Return the target of a transaction that writes entries of a run."""
        return WriteTarget(
            connection=connection, sink=run.sink, partition=run.partition, run=run.id, claimed=self._claimed, at=self._now()
        )  # fmt: skip

    def location(self, run: RunState) -> RejectionLocation:
        """Return the location and time for rejections of a run."""
        return RejectionLocation(partition=run.partition, run=run.id, sink=run.sink, at=self._now())

    def write_or_stage(self, connection: sqlite3.Connection, run: RunState, entries: pl.DataFrame) -> Written | None:
        """Write entries. If the run is staged, stage them until its end."""
        if entries.height and run.staged:
            run.repeated_keys.note_staged(connection, run.id, entries)
            connection.execute(SQL["staging_write"], (run.id, json_rows(entries)))
            return None
        return self.write(connection, run, entries) if entries.height else None

    def write(self, connection: sqlite3.Connection, run: RunState, entries: pl.DataFrame) -> Written:
        """Write entries, and store the conflicts with other pipelines. Entries without a value do not change."""
        if entries["value"].null_count():
            kept = keep_entries(self.target(connection, run), entries)
            entries = entries.filter(pl.col("value").is_not_null())
            written = self.write(connection, run, entries) if entries.height else Written()
            return replace(
                written,
                replaced=pl.concat([written.replaced, kept.replaced]),
                replaced_before=pl.concat([written.replaced_before, kept.replaced_before]),
                moved=written.moved or kept.moved,
            )
        written = write_entries(
            self.target(connection, run),
            entries,
            pipeline=run.pipeline,
            ending="approved" if run.approved else "replaced",
            repeated=run.repeated_keys if run.snapshot else None,
            fresh=run.fresh,
            dated=run.has_rejected and not run.snapshot,
        )
        run.fresh = run.fresh and written.created == entries.height
        store_conflicts(connection, self.location(run), run.pipeline, written.foreign, entries)
        return written

    def count(
        self,
        connection: sqlite3.Connection,
        run: RunState,
        written: Written | None,
        *,
        records: int = 0,
        rejected: int = 0,
        valueless: int = 0,
        removed: int = 0,
        updated: int = 0,
        facts: Mapping[str, str] | None = None,
    ) -> None:
        """Add to the counts of the run. If entries changed, increment the pipeline's number of changes.

        ``updated``: the number of entries that got the value of another partition.
        """
        numbers = {
            "run": run.id,
            "records": records,
            "created": written.created if written else 0,
            "updated": updated + (written.updated if written else 0),
            "unchanged": written.unchanged if written else 0,
            "removed": removed,
            "rejected": rejected + (len(written.foreign) if written else 0),
            "valueless": valueless,
            "facts": json.dumps(dict(facts)) if facts else None,
        }
        connection.execute(SQL["run_count"], numbers)
        if removed or updated or (written and written.changed):
            connection.execute(SQL["pipeline_changed"], (run.partition,))
        if written and written.replaced.len():
            # The hashes of the last whole reading lack the new row hashes of some entries, so they can't be used.
            connection.execute(SQL["partition_amended"], (-1, run.partition))
        if written and written.moved:
            connection.execute(SQL["partition_positions"], (0, run.partition, 0))

    def note_written(self, run: RunState, written: Written | None) -> int:
        """Wake the delivery, record values that the end of the run needs, and return the number of changes.

        Call it after the commit.
        """
        if written is None:
            return 0
        run.took_over = run.took_over or written.took_over
        run.moved = run.moved or written.moved
        if written.replaced.len():
            run.replaced.append(written.replaced)
        if written.replaced_before.len():
            run.replaced_before.append(written.replaced_before)
        if written.changed:
            self._announce(run.sink)
        return written.changed
