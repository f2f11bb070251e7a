"""The end of a complete run: staged entries, vanished entries, resolved rejections, and the row hashes of a snapshot.

Large work is split into pages, one transaction each. After a crash, the next reading of the partition completes it.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import closing

import polars as pl

from ingestd.core.record import Cursor, Deletes
from ingestd.mirror.port import RunSummary
from ingestd.mirror.sqlite.connection import StateFile
from ingestd.mirror.sqlite.entry_writer import remove_entries
from ingestd.mirror.sqlite.ownership import disown, left_over
from ingestd.mirror.sqlite.pages import pages
from ingestd.mirror.sqlite.rejected_rows import find_corrected, find_vanished
from ingestd.mirror.sqlite.rejected_store import reopen
from ingestd.mirror.sqlite.run_writer import RunState, RunWriter
from ingestd.mirror.sqlite.snapshots import RUNS_APART, drop_old_snapshots, load_snapshot, store_snapshot
from ingestd.mirror.sqlite.sql import SQL

_PAGE = 10_000
"""Maximum number of entries in one transaction, which takes some tenths of a second."""

_SUMMARY = ("id", "records", "created", "updated", "unchanged", "removed", "rejected")
_STAGED = {"key": pl.String, "value": pl.String, "data_type": pl.String, "row_hash": pl.Int64, "position": None}


class RunFinisher:
    """Ends complete runs. Thread-safe for different partitions."""

    def __init__(
        self,
        state: StateFile,
        writer: RunWriter,
        *,
        now: Callable[[], float],
        claimed_segments: Collection[int],
        announce: Callable[[int], None],
    ) -> None:
        self._state = state
        self._writer = writer
        self._now = now
        self._claimed = claimed_segments
        self._announce = announce
        self._finished: Counter[str] = Counter()

    def finish(
        self, run: RunState, *, cursor: Cursor, seen: pl.Series | None, deletes: Deletes, partial: bool = False
    ) -> RunSummary:
        """End a complete run; see `Intake.finish_run`."""
        if run.staged:
            self._apply_staged(run)
        hashes = seen.reinterpret(signed=True) if seen is not None else None
        repeats = hashes is not None and _has_replaced_record(run, hashes)
        collided = not run.whole and (run.took_over or repeats)
        if hashes is not None and not collided:
            self._remove_unnamed(run, hashes, deletes)
        if run.has_rejected and not collided:
            self._delete_rejections(run, seen, partial=partial)
        with self._state.writing() as connection:
            if collided:
                # The differences do not show which record owns a key: discard them and read the whole partition.
                connection.execute(SQL["partition_doubted"], (run.partition,))
            else:
                if seen is not None:
                    self._end_snapshot(connection, run, seen, repeats=repeats)
                connection.execute(SQL["rejected_partition"], (run.partition,)).fetchall()
            if run.staged:
                connection.execute(SQL["staging_clear"], (run.id,))
            row = connection.execute(SQL["run_end"], (self._now(), "", run.id)).fetchone()
            summary = RunSummary(**dict(zip(_SUMMARY, row, strict=True)), collided=collided)
            if partial and summary.changed:
                connection.execute(SQL["partition_amended"], (run.partition,))
            if not collided:
                end = {
                    "changed": summary.changed,
                    "cursor": json.dumps(cursor),
                    "run": run.id,
                    "partition": run.partition,
                }
                connection.execute(SQL["partition_end"], end)
                # Retries requested during this run are for the next one.
                reopen(connection, run.partition, since=run.retries)
                # Also at the first run after a start, for a daemon that often restarts.
                if self._finished[run.pipeline] % RUNS_APART == 0:
                    drop_old_snapshots(connection, run.partition)
                self._finished[run.pipeline] += 1
            connection.execute(SQL["run_forget_idle"], (run.partition, run.id))
        return summary

    def _end_snapshot(self, connection: sqlite3.Connection, run: RunState, seen: pl.Series, *, repeats: bool) -> None:
        """Store the row hashes of a whole reading."""
        if run.remapped and run.whole:
            connection.execute(SQL["partition_mapped"], (run.partition,))
        store_snapshot(connection, run.partition, seen)
        changes = connection.execute(SQL["pipeline_get"], (run.pipeline,)).fetchone()[1]
        connection.execute(SQL["partition_snapshot"], (changes, int(run.repeats or repeats), run.partition))

    def _apply_staged(self, run: RunState) -> None:
        """Write the staged entries at the end of a run: the last value of each repeated key."""
        after, staged = "", 0
        while True:
            with self._state.writing() as connection:
                rows = connection.execute(SQL["staging_read"], (run.id, after, _PAGE)).fetchall()
                if not rows:
                    break
                page = pl.DataFrame(rows, schema=_STAGED, orient="row", infer_schema_length=None)
                written = self._writer.write(connection, run, page)
                self._writer.count(connection, run, written)
            self._writer.note_written(run, written)
            after, staged = rows[-1][0], staged + len(rows)
        run.repeats = staged < run.mapped

    def _remove_unnamed(self, run: RunState, hashes: pl.Series, deletes: Deletes) -> None:
        """Remove or release the entries that a whole reading with these row hashes does not name."""
        if run.remapped and run.whole:
            self._remove_left_over(run, deletes)
        elif deletes == "remove":
            self._remove_vanished(run, hashes)

    def _delete_rejections(self, run: RunState, seen: pl.Series | None, *, partial: bool) -> None:
        """Delete, in pages, rejections of earlier runs that this run did not repeat; a read connection lists them.

        A crash before the end of the run loses no record. The partition is then read again from its start, and vanished
        records that came back are mapped again.
        """
        vanished: list[int] = []
        with closing(self._state.reader()) as reader:
            if seen is not None:
                vanished = find_vanished(reader, run.partition, run.id, seen.reinterpret(signed=True))
                whole = run.whole
            else:
                # A partial partition replaces its own rejections, unless a whole one had its name before.
                whole = partial and not load_snapshot(reader, run.partition).len()
                if run.snapshot and not whole:
                    return
            corrected = find_corrected(reader, run.partition, run.id, run.retries, whole=whole)
        if run.snapshot and (vanished or corrected):
            with self._state.writing() as connection:
                connection.execute(SQL["partition_reopen"], (run.partition,))
                if seen is not None:
                    before = load_snapshot(connection, run.partition)
                    store_snapshot(connection, run.partition, before.filter(before.is_in(seen.implode())))
        for page in pages(vanished, _PAGE):
            with self._state.writing() as connection:
                connection.execute(SQL["rejected_drop"], (json.dumps(page),))
        for page in pages(corrected, _PAGE):
            with self._state.writing() as connection:
                connection.execute(SQL["rejected_drop_corrected"], {"ids": json.dumps(page), "retries": run.retries})

    def _remove_vanished(self, run: RunState, hashes: pl.Series) -> None:
        """Remove the partition's entries without a record, in pages.

        A read connection lists them, because a sink may be large. After a crash the next reading continues with the rest.
        """
        with closing(self._state.reader()) as reader:
            rows = reader.execute(SQL["entries_of_partition"], (run.sink, run.partition)).fetchall()
        known = pl.DataFrame(rows, schema={"key": pl.String, "row_hash": pl.Int64}, orient="row")
        self._remove(run, known.filter(~pl.col("row_hash").is_in(hashes.implode()))["key"].to_list())

    def _remove_left_over(self, run: RunState, deletes: Deletes) -> None:
        """Remove or release keys of the former mapping. Row hashes do not show them: the record still exists."""
        with closing(self._state.reader()) as reader:
            entries = left_over(reader, sink=run.sink, partition=run.partition, run=run.id)
        if deletes == "remove":
            self._remove(run, entries["key"].to_list())
            return
        keys = entries.filter(~pl.col("pending"))["key"].to_list()
        for page in pages(keys, _PAGE):
            with self._state.writing() as connection:
                disown(connection, run.sink, page)

    def _remove(self, run: RunState, keys: list[str]) -> None:
        """Queue removals in pages, so that other writers can run between two."""
        for page in pages(keys, _PAGE):
            with self._state.writing() as connection:
                removed = remove_entries(
                    connection, page, sink=run.sink, partition=run.partition, run=run.id, claimed_segments=self._claimed
                )
                self._writer.count(connection, run, None, removed=removed)
            if removed:
                self._announce(run.sink)


def _has_replaced_record(run: RunState, hashes: pl.Series) -> bool:
    """Return True if another record has replaced the entry of a record in this reading."""
    return bool(run.replaced) and bool(pl.concat(run.replaced).is_in(hashes.implode()).any())
