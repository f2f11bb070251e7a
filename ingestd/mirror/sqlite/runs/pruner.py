"""Pruning: deletes rows of removed partitions and of unreferenced runs, in short transactions.

The following rows are kept at any age: the partitions and runs that explain a desired entry, former value, rejection or drift
finding; runs that gave a value which a later run named again, for a rollback; each partition's last run, and its last run with
content; a pipeline's newest partitions, to recognise repeated content; and the newest runs.

No new reference to an old run, partition or segment is created. An existing reference only moves between an entry, its
rejection and its former values. So a row without a reference in one snapshot of the mirror can be deleted at any later time,
without a lock.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing

import msgspec

from ingestd.mirror.sqlite.entries.snapshots import KEPT
from ingestd.mirror.sqlite.pages import pages
from ingestd.mirror.sqlite.sql import SQL
from ingestd.mirror.sqlite.state_file.connection import StateFile

RUNS_KEPT = 20_000
"""The number of newest runs of all pipelines that are kept."""

RUNS_APART = 5_000
"""Minimum number of new runs between two prunings, because each pruning reads all entries."""

ABSENT_SECONDS = 86_400
"""Time for which a missing partition is kept, because it may come back (such as an unmounted share)."""

_LOOKED_AT = 50
_PAGE = 500


class Pruned(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of deleted rows."""

    partitions: int = 0
    runs: int = 0


class Pruner:
    """Prunes a state file after enough new runs. Thread-safe."""

    def __init__(self, state: StateFile, *, now: Callable[[], float]) -> None:
        self._state = state
        self._now = now
        self._busy = threading.Lock()
        self._looked_until: dict[str, int] = {}

    def old_partitions(self, pipeline: str) -> list[tuple[int, str]]:
        """Return (id, name) of a few partitions that were read long ago, to check whether the source still has them.

        Each call returns the next partitions. After an empty list, the next call begins with the first partitions again.
        """
        with self._state.writing() as connection:
            before = self._looked_until.pop(pipeline, None)
            if before is None:
                row = connection.execute(SQL["partitions_beyond"], (pipeline, KEPT)).fetchone()
                if row is None or row[0] is None:
                    return []
                before = row[0] + 1
            rows = connection.execute(SQL["partitions_before"], (pipeline, before, _LOOKED_AT)).fetchall()
        if rows:
            self._looked_until[pipeline] = rows[-1][2]
        return [(identity, name) for identity, name, _ in rows]

    def note_gone(self, partition: int) -> None:
        """Record that the source no longer has a partition; opening it again reverts this."""
        with self._state.writing() as connection:
            connection.execute(SQL["partition_gone"], (self._now(), partition))

    def rejected_partitions(self, pipeline: str) -> list[tuple[int, str]]:
        """Return (id, name) of the partitions that are rejected as a whole."""
        with self._state.writing() as connection:
            return connection.execute(SQL["rejected_partitions"], (pipeline,)).fetchall()

    def drop_rejected(self, partition: int) -> None:
        """Delete the rejection of a whole partition that a person has removed from the source."""
        with self._state.writing() as connection:
            connection.execute(SQL["rejected_partition"], (partition,)).fetchall()

    def prune(self) -> Pruned:
        """Delete unreferenced rows, if a pruning is due and no other thread is pruning."""
        if not self._busy.acquire(blocking=False):
            return Pruned()
        try:
            # Opening a separate connection takes longer than everything else that a pass over a small file does in the mirror.
            with self._state.writing() as connection:
                due, newest = connection.execute(SQL["pruning_due"]).fetchone()
            if newest < max(due, RUNS_APART):
                return Pruned()
            with closing(self._state.reader()) as reader:
                return self._prune(reader, newest)
        finally:
            self._busy.release()

    def _prune(self, reader: sqlite3.Connection, newest: int) -> Pruned:
        partitions, runs, segments = self._unreferenced(reader, newest)
        for page in pages(segments, _PAGE):
            with self._state.writing() as connection:
                connection.execute(SQL["delivered_prune"], (json.dumps(page),))
        pruned_runs = 0
        for page in pages(runs, _PAGE):
            with self._state.writing() as connection:
                pruned_runs += connection.execute(SQL["runs_prune"], (json.dumps(page),)).rowcount
        pruned = 0
        for partition in partitions:
            of_partition = self._prune_partition(partition, newest)
            if of_partition is not None:
                pruned, pruned_runs = pruned + 1, pruned_runs + of_partition
        with self._state.writing() as connection:
            left = connection.execute(SQL["runs_left"]).fetchone()[0]
            # The interval grows with the number of runs, so the cost for each run is bounded.
            connection.execute(SQL["pruning_done"], (newest + max(RUNS_APART, left // 2),))
        return Pruned(partitions=pruned, runs=pruned_runs)

    def _unreferenced(self, reader: sqlite3.Connection, newest: int) -> tuple[list[int], list[int], list[int]]:
        """Return the ids of unreferenced partitions, runs and segments. The referenced ids are in SQLite's temporary file."""
        reader.execute("PRAGMA temp_store = FILE")
        for name in ("kept_run_create", "kept_partition_create", "kept_segment_create"):
            reader.execute(SQL[name])
        reader.execute("BEGIN")
        for name in ("kept_segments_of_entries", "kept_by_values", "kept_partitions_of_values"):
            reader.execute(SQL[name])
        for name in ("entries", "names", "former", "rejected", "held"):
            reader.execute(SQL[f"kept_by_{name}"])
        for name in ("entries", "former", "rejected", "held", "segments", "drift"):
            reader.execute(SQL[f"kept_partitions_of_{name}"])
        reader.execute(SQL["kept_newest_partitions"], (KEPT,))
        gone = reader.execute(SQL["partitions_to_prune"], (self._now() - ABSENT_SECONDS,)).fetchall()
        runs = reader.execute(SQL["runs_to_prune"], (newest - RUNS_KEPT,)).fetchall()
        segments = reader.execute(SQL["delivered_to_prune"]).fetchall()
        reader.execute("COMMIT")
        return _firsts(gone), _firsts(runs), _firsts(segments)

    def _prune_partition(self, partition: int, newest: int) -> int | None:
        """Delete a partition with its rows and return the number of deleted runs; None if the partition is in use again."""
        runs = 0
        while True:
            with self._state.writing() as connection:
                parameters = {"partition": partition, "newest": newest}
                if connection.execute(SQL["partition_still_prunable"], parameters).fetchone() is None:
                    return None
                deleted = connection.execute(SQL["partition_runs_prune"], (partition, _PAGE)).rowcount
                runs += deleted
                if deleted < _PAGE:
                    connection.execute(SQL["snapshot_clear"], (partition,))
                    connection.execute(SQL["wait_clear"], (partition,))
                    connection.execute(SQL["also_named_prune"], (partition,))
                    connection.execute(SQL["partition_prune"], (partition,))
                    return runs


def _firsts(rows: list[tuple[int]]) -> list[int]:
    return [identity for (identity,) in rows]
