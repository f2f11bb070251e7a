"""Rolls runs back: restores the values that entries had before the runs, and holds the partitions of the runs.

The first transaction stores which runs are rolled back, and holds partitions. Each further transaction handles a page of keys.
A handled key has no value of the runs any more, so an interrupted rollback can be continued. After a crash, the next start
continues it. After a full disk, the next rollback or the next decision about a held run continues it. The restored values
become pending and are delivered like the values of a run.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import UTC
from itertools import groupby

import msgspec
import polars as pl
from msgspec.structs import replace

from ingestd.core.clock import moment
from ingestd.mirror.rollback import Rollback, RunSelection
from ingestd.mirror.row_hashes import RowHashes
from ingestd.mirror.sqlite.entries.claimed_segments import ClaimedSegments
from ingestd.mirror.sqlite.entries.entry_writer import ADOPTED, remove_entries, write_entries
from ingestd.mirror.sqlite.entries.shared_keys import keep_names
from ingestd.mirror.sqlite.entries.snapshots import digest_of, load_snapshot, store_held_snapshot
from ingestd.mirror.sqlite.entries.target import WriteTarget
from ingestd.mirror.sqlite.runs.held_runs import drop_content, drop_hold, hold_of
from ingestd.mirror.sqlite.runs.run_finisher import RunFinisher
from ingestd.mirror.sqlite.runs.run_writer import RunState
from ingestd.mirror.sqlite.runs.undo_plan import Former, KeyUndo, SelectedRun, UndoCounts, key_pages, select, undo_of
from ingestd.mirror.sqlite.sql import SQL
from ingestd.mirror.sqlite.state_file.connection import StateFile

_RESTORED = {"key": str, "value": str, "data_type": str, "row_hash": int, "position": None}


class _OpenRollback(msgspec.Struct, frozen=True, kw_only=True):
    """A rollback that is not completely written: its runs (a JSON list), its sinks (names by id), and `Undoable.complete`."""

    runs: str
    sinks: dict[int, str]
    complete: bool


class RollbackWriter:
    """Writes rollbacks. Thread-safe: no run of any pipeline ends during a rollback.

    ``open_runs`` returns the runs that have not ended. ``announce`` is called with the id of a sink with new pending entries.
    """

    def __init__(
        self,
        state: StateFile,
        finisher: RunFinisher,
        *,
        now: Callable[[], float],
        claimed_segments: ClaimedSegments,
        open_runs: Callable[[], Iterable[RunState]],
        announce: Callable[[int], None],
    ) -> None:
        self._state = state
        self._finisher = finisher
        self._now = now
        self._claimed = claimed_segments
        self._open_runs = open_runs
        self._announce = announce

    def roll_back(self, selection: RunSelection, *, by: str) -> Rollback:
        """Restore the values that entries had before the selected runs. Return the changes.

        Only entries that still have values of these runs change. Entries that the runs created are removed, and entries that
        the runs removed are created again. A snapshot partition is held: its last selected run becomes the held run. So the
        content of the run is not delivered again unless a person approves it. ``by``: the requesting account.

        Raises:
            NotRolledBack: there is no such run or sink, or the run has delivered nothing.
        """
        with self._finisher.none_ending():
            rest = self._open()
            if rest is not None:
                with self._state.writing() as connection:
                    repeated = select(connection, selection)
                tally = self._write(rest)
                if repeated.ids == rest.runs:
                    return tally.result(repeated.runs)
            with self._state.writing() as connection:
                undoable = select(connection, selection)
                connection.execute(SQL["rollback_names"], (undoable.ids,))
                for one in _last_of_each_partition(undoable.runs):
                    self._hold(connection, one, by)
                begun = _OpenRollback(runs=undoable.ids, sinks=undoable.sinks, complete=undoable.complete)
                row = (begun.runs, json.dumps([*begun.sinks.items()]), int(begun.complete))
                connection.execute(SQL["rollback_begin"], row)
            return self._write(begun).result(undoable.runs)

    def complete(self) -> None:
        """Continue a rollback that a crash or a full disk has interrupted, if there is one.

        Call it at a start before anything reads or delivers, and before a decision about a held run.

        Raises:
            MirrorFull: the disk is still full.
        """
        if self._open() is None:
            return
        with self._finisher.none_ending():
            rest = self._open()
            if rest is not None:
                self._write(rest)

    def _open(self) -> _OpenRollback | None:
        with self._state.writing() as connection:
            row = connection.execute(SQL["rollback_open"]).fetchone()
        if row is None:
            return None
        runs, sinks, is_complete = row
        return _OpenRollback(runs=runs, sinks=dict(json.loads(sinks)), complete=bool(is_complete))

    def _write(self, begun: _OpenRollback) -> UndoCounts:
        """Handle the remaining keys, and end the rollback."""
        tally = UndoCounts()
        try:
            for sink, name in begun.sinks.items():
                with self._state.reading() as reader:
                    for keys in key_pages(reader, sink, begun.runs):
                        with self._state.writing() as connection:
                            undos = undo_of(connection, sink, keys, begun.runs, complete=begun.complete)
                            self._undo(connection, sink, [one for one in undos if not one.left])
                        tally.add(name, undos)
                        self._announce(sink)
        finally:  # also if the disk is full before the last page
            for run in self._open_runs():
                # The differences of the run refer to values that the rollback has replaced.
                run.outdated = run.outdated or (run.snapshot and run.sink in begun.sinks)
        with self._state.writing() as connection:
            for (run_id,) in connection.execute(SQL["rollback_unhold"], (begun.runs,)).fetchall():
                drop_content(connection, run_id)
            connection.execute(SQL["rollback_end"])
        return tally

    def _hold(self, connection: sqlite3.Connection, last: SelectedRun, by: str) -> None:
        """Hold a partition with the last of its selected runs, unless another reading is already held or was discarded."""
        known = hold_of(connection, last.partition)
        if known is not None and known.state != "approved":
            connection.execute(SQL["rollback_discarded"], (last.partition,))
            return
        if known is not None and known.run != last.run:
            drop_hold(connection, last.partition)
        elif known is not None:  # keep the approved run's staged entries that are not written yet
            connection.execute(SQL["held_drop"], (last.partition,)).fetchall()
            connection.execute(SQL["held_snapshot_clear"], (last.run,))
        is_known = connection.execute(SQL["rollback_is_known"], (last.partition,)).fetchone()[0]
        seen = RowHashes.of(load_snapshot(connection, last.partition)) if is_known else None
        row = {
            "run": last.run,
            "partition": last.partition,
            # If the source no longer has the partition, there is nothing to approve. The same content is still recognised later.
            "state": "discarded" if last.is_gone else "held",
            "since": self._now(),
            "reasons": json.dumps([f"{by} rolled it back {moment(self._now(), UTC)}."]),
            "content": digest_of(seen) if seen is not None else "",
        }
        connection.execute(SQL["rollback_hold"], row)
        if seen is not None and not last.is_gone:
            store_held_snapshot(connection, last.run, seen)

    def _undo(self, connection: sqlite3.Connection, sink: int, undos: list[KeyUndo]) -> None:
        """Write the former values of a page of keys."""
        if not undos:
            return
        delivered = [one.key for one in undos if not one.is_passed]
        connection.execute(SQL["rollback_stage"], {"sink": sink, "keys": json.dumps(delivered)})
        keep_names(connection, sink, [one.key for one in undos if one.is_passed])
        target = WriteTarget(
            connection=connection, sink=sink, partition=ADOPTED, run=0, claimed=self._claimed, at=self._now()
        )
        for partition, keys in _created(undos).items():
            remove_entries(replace(target, partition=partition), keys, ending="rolled_back")
        for (partition, run), entries in _restored(undos):
            write_entries(
                replace(target, partition=partition, run=run), entries, pipeline="", ending="rolled_back", succeeds=True,
                ended_by=0,
            )  # fmt: skip
        marks = [(one.key, one.former.id if one.former is not None else 0) for one in undos]
        connection.execute(SQL["rollback_undo"], {"sink": sink, "keys": json.dumps(marks)})
        owners = {one.former.partition for one in undos if one.former is not None}
        partitions = json.dumps(sorted(owners | {one.partition for one in undos if one.partition is not None}))
        for statement in ("rollback_partitions", "rollback_pipelines"):
            connection.execute(SQL[statement], (partitions,))
        connection.executemany(SQL["rollback_count"], _counts(undos))


def _last_of_each_partition(runs: Collection[SelectedRun]) -> list[SelectedRun]:
    return [*{one.partition: one for one in runs if one.is_snapshot}.values()]


def _created(undos: Collection[KeyUndo]) -> dict[int, list[str]]:
    """Return the sorted keys of entries that the runs created, by partition."""
    found: defaultdict[int, list[str]] = defaultdict(list)
    for one in undos:
        if one.former is None and one.partition is not None:
            found[one.partition].append(one.key)
    return found


def _restored(undos: Collection[KeyUndo]) -> Iterator[tuple[tuple[int, int], pl.DataFrame]]:
    """Yield the former values of each partition and run, sorted by key, as entries.

    The entries get the row hash 0, which no record has. The next whole reading of the partition sets their row hashes.
    """

    def origin(pair: tuple[str, Former]) -> tuple[int, int]:
        return pair[1].partition, pair[1].run

    pairs = [(one.key, one.former) for one in undos if one.former is not None]
    for found, group in groupby(sorted(pairs, key=lambda pair: (*origin(pair), pair[0])), key=origin):
        rows = [(key, former.value, former.data_type, 0, former.position) for key, former in group]
        yield found, pl.DataFrame(rows, schema=_RESTORED, orient="row", infer_schema_length=None)


def _counts(undos: Collection[KeyUndo]) -> list[dict[str, int]]:
    """Return, for each partition, the number of changes that an approval of its held run would make: the rollback reversed."""
    counts: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for one in undos:
        if one.former is None:
            counts[one.held_partition]["created"] += 1
        elif one.partition is None or one.is_passed:
            counts[one.held_partition]["removed"] += 1
        else:
            counts[one.held_partition]["updated"] += 1
    return [
        {"partition": partition, **{name: count[name] for name in ("created", "updated", "removed")}}
        for partition, count in counts.items()
    ]
