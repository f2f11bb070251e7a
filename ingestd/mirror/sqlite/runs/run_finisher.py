"""Ends complete runs: writes staged entries and row hashes, and removes vanished entries and resolved rejections.

Large work is split into pages, one transaction each. After a crash, the next reading of the partition completes the work.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

import polars as pl

from ingestd.core.errors import RunNotHeld
from ingestd.core.guard import RunEffect, hold_reasons
from ingestd.mirror.port import Amendment, HeldRun, RunSummary
from ingestd.mirror.row_hashes import RowHashes
from ingestd.mirror.sqlite.entries.repeated_keys import RepeatedKeys
from ingestd.mirror.sqlite.entries.snapshots import (
    RUNS_APART,
    drop_old_snapshots,
    keep_in_snapshot,
    load_held_snapshot,
    load_snapshot,
    store_snapshot,
)
from ingestd.mirror.sqlite.pages import pages
from ingestd.mirror.sqlite.rejections.rejected_rows import find_corrected, find_vanished
from ingestd.mirror.sqlite.rejections.rejected_store import reopen
from ingestd.mirror.sqlite.rows import from_row
from ingestd.mirror.sqlite.runs.absent_entries import AbsentEntries
from ingestd.mirror.sqlite.runs.amendment import find_unnamed, is_undecided
from ingestd.mirror.sqlite.runs.held_runs import (
    EndOfRun,
    decision_about,
    drop_content,
    drop_hold,
    hold,
    hold_of,
    read_hold,
    rollback_reasons,
)
from ingestd.mirror.sqlite.runs.run_effect import PAGE, STAGED, measure_effect
from ingestd.mirror.sqlite.runs.run_writer import RunState, RunWriter
from ingestd.mirror.sqlite.sql import SQL
from ingestd.mirror.sqlite.state_file.connection import StateFile


class RunFinisher:
    """Ends complete runs. Thread-safe; the runs of one pipeline end one after the other."""

    def __init__(
        self,
        state: StateFile,
        writer: RunWriter,
        *,
        now: Callable[[], float],
        announce: Callable[[int], None],
    ) -> None:
        self._state = state
        self._writer = writer
        self._now = now
        self._absent = AbsentEntries(state, writer, announce=announce)
        self._announce = announce
        self._finished: Counter[str] = Counter()
        self._repeated: dict[int, RepeatedKeys] = {}
        self._ending: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)

    def ending(self, pipeline: str) -> AbstractContextManager[object]:
        """Return the lock that is held while a run of the pipeline ends.

        A batch takes this lock before its other locks, so that it never waits for this lock while it holds them.
        """
        return self._ending[pipeline]

    @contextmanager
    def none_ending(self) -> Iterator[None]:
        """Prevent the end of every run while the context is open."""
        with self._state.reading() as reader:
            # Sorted, so that two callers cannot deadlock.
            names = sorted(name for (name,) in reader.execute(SQL["pipeline_names"]))
        with ExitStack() as locks:
            for name in names:
                locks.enter_context(self._ending[name])
            yield

    def repeated_keys(self, partition: int) -> RepeatedKeys:
        """Return the repeated keys at the start of a run: those of the partition's last run if that run collided, else none."""
        return self._repeated.pop(partition, None) or RepeatedKeys(partition)

    def finish(self, run: RunState, end: EndOfRun) -> RunSummary:
        """End a complete run; see `IntakeStore.finish_run`."""
        with self._ending[run.pipeline]:
            collides = run.outdated and not run.whole
            if run.guard is not None and (end.seen is not None or end.partial) and not collides:
                with self._state.reading() as reader:
                    unnamed = find_unnamed(reader, run, end)
                    measured = measure_effect(
                        reader, run, run.guard, seen=end.seen, deletes=end.deletes, unnamed=unnamed
                    )
                    known = hold_of(reader, run.partition)
                effect = measured.effect
                others = (*end.reasons, *rollback_reasons(known)) if effect.changed else ()
                reasons = (*hold_reasons(run.guard, effect), *others)
                # The removals of a partial reading can't be held, so a whole reading must follow.
                collides = measured.collides or bool(reasons and unnamed)
                reasons = () if collides else reasons
                was_rolled_back = known is not None and known.rolled_back
                decision = decision_about(known, end.seen) if reasons or was_rolled_back else None
                if decision in {"held", "discarded"}:
                    return self._ignore(run, end)
                if reasons and decision != "approved":
                    return self._hold(run, end, effect, reasons)
            return self._write(run, end, collides=collides)

    def end_early(self, run: RunState) -> None:
        """Write the entries that a failed run has staged only for the guard.

        The entries are not written if the guard would hold them, or if a run of the partition was rolled back.
        """
        if run.guard is None or not run.only_guarded or run.outdated or run.after_rollback:
            return
        with self._ending[run.pipeline]:
            with self._state.reading() as reader:
                measured = measure_effect(reader, run, run.guard, seen=None, deletes="keep")
            if not measured.collides and not hold_reasons(run.guard, measured.effect):
                self._apply_staged(run)

    def approve(self, number: int, open_runs: Callable[[str], Iterable[RunState]]) -> RunSummary:
        """Write a held run; see `IntakeStore.approve`. ``open_runs`` returns the open runs of a pipeline."""
        with self._state.writing() as connection:
            held = read_hold(connection, number)
        with self._ending[held.pipeline]:
            with self._state.writing() as connection:
                run, end = self._approved(connection, number)
            summary = self._write(run, end, collides=False)
            for other in open_runs(run.pipeline):
                other.outdated = True
        return summary

    def discard(self, number: int) -> HeldRun:
        """Delete the entries of a held run; see `IntakeStore.discard`."""
        with self._state.writing() as connection:
            held = read_hold(connection, number)
        with self._ending[held.pipeline], self._state.writing() as connection:
            held = read_hold(connection, number)
            if held.state != "held":
                raise RunNotHeld(
                    f"Run {number} was {held.state} already. "
                    + (f"'ingestd approve {number}' writes the rest of it." if held.state == "approved" else "")
                )
            connection.execute(SQL["held_set_state"], ("discarded", number))
            drop_content(connection, number)
        return held

    def _approved(self, connection: sqlite3.Connection, number: int) -> tuple[RunState, EndOfRun]:
        """Mark a held run as approved, and return the values that its end needs."""
        held = read_hold(connection, number)
        if held.state == "discarded":
            raise RunNotHeld(
                f"Run {number} was discarded; its entries are deleted. Save the source again with a change to have it read."
            )
        row = connection.execute(SQL["held_context"], (number,)).fetchone()
        partition, pipeline, sink, cursor, deletes, whole, partial, remapped, mapped, retries, current, same = row
        if not same:
            raise RunNotHeld(
                f"Run {number} was read with another mapping or for another sink. Wait for the next reading of "
                f"{held.partition}, which replaces it."
            )
        connection.execute(SQL["held_recount"], (number,))
        connection.execute(SQL["held_set_state"], ("approved", number))
        run = RunState(
            id=number,
            partition=partition,
            pipeline=pipeline,
            sink=sink,
            snapshot=True,
            whole=bool(whole),
            staged=True,
            remapped=bool(remapped),
            has_rejected=bool(connection.execute(SQL["rejected_any"], (partition,)).fetchone()[0]),
            retries=retries,
            mapped=mapped,
            repeated_keys=RepeatedKeys(partition),
            stale=not current and not whole,
            approved=True,
        )
        seen = None if partial else RowHashes.of(load_held_snapshot(connection, number))
        return run, EndOfRun(cursor=json.loads(cursor), seen=seen, deletes=deletes, partial=bool(partial))

    def _hold(self, run: RunState, end: EndOfRun, effect: RunEffect, reasons: tuple[str, ...]) -> RunSummary:
        """Hold a staged run: do not write its entries, and keep the cursor of its partition."""
        with self._state.writing() as connection:
            held = hold(connection, run, end, effect=effect, reasons=reasons, now=self._now())
            return self._end_unwritten(connection, run, held)

    def _ignore(self, run: RunState, end: EndOfRun) -> RunSummary:
        """End a reading that has the same content as the held or discarded run, and write no entries."""
        with self._state.writing() as connection:
            known = hold_of(connection, run.partition)
            if known is None:
                raise LookupError(f"the held run of partition {run.partition} disappeared")
            moved = {"cursor": json.dumps(end.cursor), "retries": run.retries, "run": known.run}
            connection.execute(SQL["held_move"], moved)
            connection.execute(SQL["staging_clear"], (run.id,))
            return self._end_unwritten(connection, run, read_hold(connection, known.run))

    def _end_unwritten(self, connection: sqlite3.Connection, run: RunState, withheld: HeldRun) -> RunSummary:
        run.repeated_keys.store_notice(connection, run.id)
        connection.execute(SQL["rejected_partition"], (run.partition,)).fetchall()
        connection.execute(SQL["partition_read_again"], {"run": run.id, "partition": run.partition})
        *counts, notice = connection.execute(SQL["run_end"], (self._now(), "", run.id)).fetchone()
        return from_row(RunSummary, counts, collided=False, withheld=withheld, notice=notice)

    def _write(self, run: RunState, end: EndOfRun, *, collides: bool) -> RunSummary:
        """Write the staged entries, and end the run. ``collides``: the run does not show which record owns a key."""
        seen = end.seen
        if run.staged and not collides:
            self._apply_staged(run)
        repeats = _is_any_in(run.replaced, seen)
        collided = (
            collides
            or _lacks_location(run, seen)
            or (not run.whole and (run.took_over or repeats))
            or is_undecided(run, end)
        )
        if seen is not None and not collided:
            self._absent.remove_unnamed(run, seen, end.deletes)
        if run.has_rejected and not collided:
            self._delete_rejections(run, seen, partial=end.partial)
        if end.amendment is not None and not collided:
            self._absent.remove_amended(run, end)
            self._delete_rejections_at(run, end.amendment)
        replaces = None
        with self._state.writing() as connection:
            if collided:
                # It is not known which record owns a key, so the next run reads the whole partition.
                connection.execute(SQL["partition_doubted"], (run.partition,))
                self._repeated[run.partition] = run.repeated_keys
            else:
                if seen is not None:
                    self._end_snapshot(connection, run, seen, end, repeats=repeats)
                connection.execute(SQL["rejected_partition"], (run.partition,)).fetchall()
            if run.staged:
                connection.execute(SQL["staging_clear"], (run.id,))
            run.repeated_keys.store_notice(connection, run.id)
            *counts, notice = connection.execute(SQL["run_end"], (self._now(), "", run.id)).fetchone()
            if not collided and (seen is not None or end.partial):
                replaces = drop_hold(connection, run.partition)
            summary = from_row(RunSummary, counts, collided=collided, replaces=replaces, notice=notice)
            if not collided:
                self._end_reading(connection, run, end, changed=summary.changed)
                # After a collision, the last complete run is still an older run, so older runs are not deleted.
                connection.execute(SQL["run_forget_idle"], (run.partition, run.id))
        return summary

    def _end_reading(self, connection: sqlite3.Connection, run: RunState, end: EndOfRun, *, changed: bool) -> None:
        """Store the cursor of a complete reading."""
        if end.partial and changed:
            connection.execute(SQL["partition_amended"], (-2, run.partition))
        if end.partial and (run.repeats or end.amendment is None or end.amendment.positions is None):
            connection.execute(SQL["partition_positions"], (0, run.partition, 0))
        ended = {
            "changed": changed,
            "cursor": json.dumps(end.cursor) if end.cursor is not None else None,
            "run": run.id,
            "partition": run.partition,
        }
        connection.execute(SQL["partition_end"], ended)
        # Retries requested during this run are for the next run.
        reopen(connection, run.partition, since=run.retries)
        # The count begins at 0, so that a daemon that often restarts also drops old snapshots.
        if self._finished[run.pipeline] % RUNS_APART == 0:
            drop_old_snapshots(connection, run.partition)
        self._finished[run.pipeline] += 1

    def _end_snapshot(
        self,
        connection: sqlite3.Connection,
        run: RunState,
        seen: RowHashes,
        end: EndOfRun,
        *,
        repeats: bool,
    ) -> None:
        """Store the row hashes of a whole reading."""
        if run.remapped and run.whole and end.deletes != "defer":
            connection.execute(SQL["partition_mapped"], (run.partition,))
        store_snapshot(connection, run.partition, seen, end.sections)
        # The snapshot is not valid if the run is stale, defers its removals, or read all records and mapped none of them.
        decides_nothing = run.stale or end.deletes == "defer" or (run.whole and not run.mapped and seen.count > 0)
        repeats = run.repeats or repeats
        row = {
            "valid": not decides_nothing,
            "repeats": repeats,
            "exact": run.whole and not (repeats or run.moved),
            "partition": run.partition,
        }
        connection.execute(SQL["partition_snapshot"], row)

    def _apply_staged(self, run: RunState) -> None:
        """Write the staged entries at the end of a run: the last value of each repeated key."""
        after, staged = "", 0
        while True:
            with self._state.writing() as connection:
                rows = connection.execute(SQL["staging_read"], (run.id, after, PAGE)).fetchall()
                if not rows:
                    break
                page = pl.DataFrame(rows, schema=STAGED, orient="row", infer_schema_length=None)
                written = self._writer.write(connection, run, page)
                self._writer.count(connection, run, written)
            self._writer.note_written(run, written)
            after, staged = rows[-1][0], staged + len(rows)
        run.repeats = staged < run.mapped

    def _delete_rejections_at(self, run: RunState, amendment: Amendment) -> None:
        """Delete earlier rejections of the records of a partial reading."""
        if run.has_rejected and amendment.positions is not None:
            for page in pages(amendment.positions.to_list(), PAGE):
                row = {"partition": run.partition, "run": run.id, "positions": json.dumps(page)}
                with self._state.writing() as connection:
                    connection.execute(SQL["rejected_at_positions"], row)

    def _delete_rejections(self, run: RunState, seen: RowHashes | None, *, partial: bool) -> None:
        """Delete, in pages, rejections of earlier runs that this run did not repeat.

        A crash before the end of the run loses no record: the partition is then read again from its start. If a vanished record
        has come back by then, it is mapped again.
        """
        if not run.snapshot:
            # A rejected record that was not read again stays rejected: the source may not have the record any more.
            again = {"partition": run.partition, "run": run.id, "retries": run.retries, "last_row": run.last_row}
            with self._state.writing() as connection:
                connection.execute(SQL["rejected_unreadable_read_again"], again)
            return
        vanished: list[int] = []
        with self._state.reading() as reader:
            if seen is not None:
                vanished = find_vanished(reader, run.partition, run.id, seen)
                whole = run.whole
            else:
                # A partial reading replaces rejections only if there is no snapshot of an earlier whole reading.
                whole = partial and not load_snapshot(reader, run.partition).len()
                if not whole:
                    return
            corrected = find_corrected(reader, run.partition, run.id, run.retries, whole=whole)
        if vanished or corrected:
            with self._state.writing() as connection:
                connection.execute(SQL["partition_reopen"], (run.partition,))
                if seen is not None:
                    keep_in_snapshot(connection, run.partition, seen)
        for page in pages(vanished, PAGE):
            with self._state.writing() as connection:
                connection.execute(SQL["rejected_drop"], (json.dumps(page),))
        for page in pages(corrected, PAGE):
            with self._state.writing() as connection:
                connection.execute(SQL["rejected_drop_corrected"], {"ids": json.dumps(page), "retries": run.retries})


def _is_any_in(replaced: list[pl.Series], seen: RowHashes | None) -> bool:
    """Return True if the entry of a record of this reading now comes from another record."""
    return seen is not None and bool(replaced) and seen.has_any_of(pl.concat(replaced))


def _lacks_location(run: RunState, seen: RowHashes | None) -> bool:
    """Return True if a key has different values in this reading, but the location of one of the values is not known.

    An equal entry keeps the location that an earlier run stored. The next reading will be staged, so it knows both locations.
    """
    return not run.staged and not run.repeated_keys and _is_any_in(run.replaced_before, seen)
