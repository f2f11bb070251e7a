"""Pruning: rows of partitions that are gone, and of runs that nothing refers to, are deleted in small steps.

What stays, whatever its age: the partition and the run of every entry that a sink should hold, of every rejected row and of
every drift finding, so that these can be explained; each partition's last run, and its last one with content; a pipeline's
newest partitions, so that content that is dropped again is recognised; and the newest runs.

A reference to an old run or partition is never made anew, it is only passed on from an entry to a rejected row and back. So
what nothing refers to at one moment can be deleted at any later one, and the search for it needs one moment of the
mirror and no lock.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from ingestd.mirror.sqlite.connection import StateFile
from ingestd.mirror.sqlite.snapshots import KEPT
from ingestd.mirror.sqlite.sql import SQL

RUNS_KEPT = 20_000
"""The newest runs of all pipelines are kept."""

RUNS_APART = 5_000
"""New runs between two prunings, at the least: each looks through all entries."""

ABSENT_SECONDS = 86_400
"""A partition that was taken away, not by its source's own doing, may come back for so long: a share that was not mounted."""

_LOOKED_AT = 50
_PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """How many rows of each kind were deleted."""

    partitions: int = 0
    runs: int = 0


class Pruner:
    """Prunes a state file when enough runs were made since the last time. For several threads."""

    def __init__(self, state: StateFile, *, now: Callable[[], float]) -> None:
        self._state = state
        self._now = now
        self._busy = threading.Lock()
        self._looked_until: dict[str, int] = {}

    def old_partitions(self, pipeline: str) -> list[tuple[int, str]]:
        """(id, name) of the next few partitions of a pipeline beyond the newest; each call goes on after the one before."""
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
        """The source no longer has a partition."""
        with self._state.writing() as connection:
            connection.execute(SQL["partition_gone"], (self._now(), partition))

    def prune(self) -> Pruned:
        """Delete what nothing refers to, if it is due and no other thread is doing it."""
        if not self._busy.acquire(blocking=False):
            return Pruned()
        try:
            with closing(self._state.reader()) as reader:
                due, newest = reader.execute(SQL["pruning_due"]).fetchone()
                return self._prune(reader, newest) if newest >= due else Pruned()
        finally:
            self._busy.release()

    def _prune(self, reader: sqlite3.Connection, newest: int) -> Pruned:
        partitions, runs = self._unreferenced(reader, newest)
        pruned_runs = 0
        for start in range(0, len(runs), _PAGE):
            with self._state.writing() as connection:
                page = json.dumps(runs[start : start + _PAGE])
                pruned_runs += connection.execute(SQL["runs_prune"], (page,)).rowcount
        pruned = 0
        for partition in partitions:
            of_partition = self._prune_partition(partition, newest)
            if of_partition is not None:
                pruned, pruned_runs = pruned + 1, pruned_runs + of_partition
        with self._state.writing() as connection:
            left = connection.execute(SQL["runs_left"]).fetchone()[0]
            # So the entries that a pruning looks through are spread over as many runs as there are.
            connection.execute(SQL["pruning_done"], (newest + max(RUNS_APART, left // 2),))
        return Pruned(partitions=pruned, runs=pruned_runs)

    def _unreferenced(self, reader: sqlite3.Connection, newest: int) -> tuple[list[int], list[int]]:
        """Partitions and runs to which nothing refers now. Memory: their ids; the others lie in SQLite's temporary file."""
        reader.execute("PRAGMA temp_store = FILE")
        for name in ("kept_run_create", "kept_partition_create"):
            reader.execute(SQL[name])
        reader.execute("BEGIN")
        for name in ("entries", "rejected"):
            reader.execute(SQL[f"kept_by_{name}"])
        for name in ("entries", "rejected", "segments", "drift"):
            reader.execute(SQL[f"kept_partitions_of_{name}"])
        reader.execute(SQL["kept_newest_partitions"], (KEPT,))
        gone = reader.execute(SQL["partitions_to_prune"], (self._now() - ABSENT_SECONDS,)).fetchall()
        runs = reader.execute(SQL["runs_to_prune"], (newest - RUNS_KEPT,)).fetchall()
        reader.execute("COMMIT")
        return [identity for (identity,) in gone], [identity for (identity,) in runs]

    def _prune_partition(self, partition: int, newest: int) -> int | None:
        """Delete a partition and what belongs to it; how many runs. None: it is not gone any more."""
        runs = 0
        while True:
            with self._state.writing() as connection:
                asked = {"partition": partition, "newest": newest}
                if connection.execute(SQL["partition_still_prunable"], asked).fetchone() is None:
                    return None
                deleted = connection.execute(SQL["partition_runs_prune"], (partition, _PAGE)).rowcount
                runs += deleted
                if deleted < _PAGE:
                    connection.execute(SQL["snapshot_clear"], (partition,))
                    connection.execute(SQL["wait_clear"], (partition,))
                    connection.execute(SQL["partition_prune"], (partition,))
                    return runs
