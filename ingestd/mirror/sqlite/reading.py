"""The intake's side: partitions, runs, batches. What a batch brings and its cursor become durable in one transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import polars as pl

from ingestd.core.address import SinkAddress
from ingestd.core.record import Cursor, Deletes, Reject, Settlement
from ingestd.mirror.port import PartitionState, RunSummary
from ingestd.mirror.sqlite.connection import StateFile
from ingestd.mirror.sqlite.parking import (
    Place,
    forget_mended,
    forget_vanished,
    park_conflicts,
    park_partition,
    park_records,
)
from ingestd.mirror.sqlite.remembering import content_before
from ingestd.mirror.sqlite.retrying import reopen
from ingestd.mirror.sqlite.settling import resolve, settlement_of
from ingestd.mirror.sqlite.snapshots import drop_old_snapshots, load_snapshot, store_snapshot
from ingestd.mirror.sqlite.sql import SQL
from ingestd.mirror.sqlite.writing import Written, remove_entries, write_entries

_STAGING_PAGE = 50_000
_Row: TypeAlias = tuple[Any, ...]


@dataclass(slots=True, kw_only=True)
class _Run:
    """What a run must remember until it ends. A crash forgets it, and the partition is read again from its cursor."""

    id: int
    partition: int
    pipeline: str
    sink: int
    snapshot: bool
    whole: bool
    staged: bool
    retries: int
    mapped: int = 0
    repeats: bool = False
    strangers: bool = False
    replaced: list[pl.Series] = field(default_factory=list)


class IntakeSide:
    """Implements `ingestd.mirror.port.Intake` over a state file; its methods may be called from several threads."""

    def __init__(
        self, state: StateFile, *, now: Callable[[], float], out: Collection[int], announce: Callable[[], None]
    ) -> None:
        self._state = state
        self._now = now
        self._out = out
        self._announce = announce
        self._runs: dict[int, _Run] = {}
        self._retries: dict[int, int] = {}

    def activate(self, pipelines: Collection[str]) -> None:
        """Tell, at start, which pipelines the configuration names; the entries of the others may be taken over."""
        with self._state.writing() as connection:
            connection.executemany(SQL["pipeline_ensure"], [(name,) for name in pipelines])
            names = json.dumps(sorted(pipelines))
            if connection.execute(SQL["pipeline_activate"], (names, names)).rowcount:
                # Entries that were held back because a retired pipeline owned them get another chance.
                connection.execute(SQL["partition_free_conflicts"])
            # No run is open at start: what one left behind was never read to its end.
            connection.execute(SQL["staging_clear_all"])
            connection.execute(SQL["refusals_forget"])
            if connection.execute(SQL["runs_total"]).fetchone()[0] > _RUNS_KEPT:
                connection.execute(SQL["runs_forget"])

    def open_partition(self, pipeline: str, partition: str, sink: SinkAddress, digest: str) -> PartitionState:
        """See `Intake.open_partition`."""
        address = (sink.workspace, sink.by, sink.name)
        with self._state.writing() as connection:
            (sink_id,) = _ensured(connection, "sink_id", address, "sink_ensure", address)
            pipeline_id, changes = _ensured(connection, "pipeline_get", (pipeline,), "pipeline_ensure", (pipeline,))
            row = _ensured(
                connection,
                "partition_get",
                (pipeline_id, partition),
                "partition_ensure",
                (pipeline_id, sink_id, partition),
            )
            identity, at_sink, known_digest, cursor, valid_through, repeats, awaiting, retries = row
            # What was asked to be mapped again until now is what this cursor takes into account.
            self._retries[identity] = retries
            if (at_sink, known_digest) != (sink_id, digest):
                connection.execute(SQL["partition_restart"], (sink_id, digest, identity))
                connection.execute(SQL["snapshot_clear"], (identity,))
                cursor, valid_through, repeats = None, -1, 0
            current = valid_through == changes
        token = json.loads(cursor) if cursor is not None else None
        return PartitionState(
            id=identity,
            name=partition,
            cursor=token,
            current=current,
            snapshot=partial(self._snapshot, identity) if current and not repeats else None,
            repeats=bool(repeats),
            awaiting=token if awaiting else None,
        )

    def begin_run(self, partition: int, *, snapshot: bool, whole: bool) -> int:
        """See `Intake.begin_run`."""
        with self._state.writing() as connection:
            run: int = connection.execute(SQL["run_begin"], (partition, self._now())).fetchone()[0]
            connection.execute(SQL["staging_clear_partition"], (partition,))
            pipeline, sink, repeats = connection.execute(SQL["partition_place"], (partition,)).fetchone()
        # A run that neither finished nor failed, because the state file could take no more, is superseded by this one.
        self._runs = {known: other for known, other in self._runs.items() if other.partition != partition}
        self._runs[run] = _Run(
            id=run,
            partition=partition,
            pipeline=pipeline,
            sink=sink,
            snapshot=snapshot,
            whole=whole,
            staged=snapshot and bool(repeats),
            retries=self._retries.get(partition, 0),
        )
        return run

    def commit(
        self,
        run: int,
        *,
        entries: pl.DataFrame,
        records: int,
        rejects: Sequence[tuple[Reject, int | None]],
        cursor: Cursor,
        facts: Mapping[str, str],
        resolved: Sequence[str] = (),
    ) -> int:
        """See `Intake.commit`."""
        current = self._runs[run]
        ordered = entries.sort("key", maintain_order=True)  # so that of equal keys the last record's stands last
        unique = ordered.filter(pl.col("key").ne_missing(pl.col("key").shift(-1)))
        unique = unique.with_columns(pl.col("row_hash").reinterpret(signed=True))
        current.mapped += entries.height
        current.repeats = current.repeats or unique.height < entries.height
        written = None
        with self._state.writing() as connection:
            if current.staged and unique.height:
                connection.execute(SQL["staging_write"], (run, unique.write_json()))
            elif unique.height:
                written = self._write(connection, current, unique)
            if resolved:
                resolve(connection, current.pipeline, resolved)
            park_records(connection, self._place(current), rejects)
            self._count(connection, current, written, records=records, rejected=len(rejects), facts=facts)
            if not current.snapshot:
                connection.execute(SQL["partition_advance"], (json.dumps(cursor), current.partition))
        return self._note(current, written)

    def finish_run(
        self, run: int, *, cursor: Cursor, seen: pl.Series | None, deletes: Deletes, partial: bool = False
    ) -> RunSummary:
        """See `Intake.finish_run`."""
        current = self._runs[run]
        if current.staged:
            self._apply_staged(current)
        hashes = seen.reinterpret(signed=True) if seen is not None else None
        standing = hashes is not None and any(old.is_in(hashes.implode()).any() for old in current.replaced)
        collided = not current.whole and (current.strangers or standing)
        removed = 0
        with self._state.writing() as connection:
            if collided:
                # Who owns a key can't be told from the differences: forget them, and have the partition read whole.
                connection.execute(SQL["partition_doubted"], (current.partition,))
            else:
                if hashes is not None and seen is not None:
                    if deletes == "remove":
                        removed = self._remove_vanished(connection, current, hashes)
                    forget_vanished(connection, current.partition, run, hashes)
                    forget_mended(connection, current.partition, run, current.retries, whole=current.whole)
                    store_snapshot(connection, current.partition, seen)
                    changes = connection.execute(SQL["pipeline_get"], (current.pipeline,)).fetchone()[1]
                    repeats = current.repeats or standing
                    connection.execute(SQL["partition_snapshot"], (changes, int(repeats), current.partition))
                elif partial and not load_snapshot(connection, current.partition).len():
                    # What amends others is the whole truth about its own bad rows, unless it has taken a whole one's name.
                    forget_mended(connection, current.partition, run, current.retries, whole=True)
                elif not current.snapshot:
                    forget_mended(connection, current.partition, run, current.retries, whole=False)
                connection.execute(SQL["rejected_partition"], (current.partition,)).fetchall()
            row = connection.execute(SQL["run_end"], (self._now(), "", run)).fetchone()
            summary = RunSummary(**dict(zip(_SUMMARY, row, strict=True)), collided=collided)
            if not collided:
                end = {
                    "changed": summary.changed,
                    "cursor": json.dumps(cursor),
                    "run": run,
                    "partition": current.partition,
                }
                connection.execute(SQL["partition_end"], end)
                # What was asked for while this run went on is for the next one.
                reopen(connection, current.partition, since=current.retries)
                drop_old_snapshots(connection, current.partition)
            connection.execute(SQL["run_forget_idle"], (current.partition, run))
        del self._runs[run]
        if removed:
            self._announce()
        return summary

    def fail_run(self, run: int, reason: str, *, broken: bool) -> None:
        """See `Intake.fail_run`."""
        current = self._runs.pop(run)
        with self._state.writing() as connection:
            connection.execute(SQL["run_end"], (self._now(), reason, run))
            connection.execute(SQL["partition_failed"], (run, current.partition))
            if broken:
                park_partition(connection, self._place(current), reason)
            else:
                connection.execute(SQL["rejected_partition"], (current.partition,)).fetchall()

    def known_content(self, run: int, sha256: str) -> tuple[str, float] | None:
        """See `Intake.known_content`."""
        with self._state.writing() as connection:
            return content_before(connection, run, sha256)

    def settled_partitions(self, pipeline: str) -> list[tuple[int, str, Cursor]]:
        """See `Intake.settled_partitions`."""
        with self._state.writing() as connection:
            rows = connection.execute(SQL["partitions_settled"], (pipeline,)).fetchall()
        return [(identity, name, json.loads(cursor)) for identity, name, cursor in rows]

    def settlement(self, partition: int) -> Settlement:
        """See `Intake.settlement`."""
        with self._state.writing() as connection:
            return settlement_of(connection, partition, self._state.reader)

    def acknowledge(self, partition: int, cursor: Cursor) -> None:
        """See `Intake.acknowledge`."""
        with self._state.writing() as connection:
            connection.execute(SQL["partition_acknowledge"], (partition, json.dumps(cursor)))
            connection.execute(SQL["wait_clear"], (partition,))

    # ------------------------------------------------------------------------------------------------ inside a run

    def _snapshot(self, partition: int) -> pl.Series:
        with self._state.writing() as connection:
            # What was asked to be mapped again until now is what these hashes take into account.
            self._retries[partition] = connection.execute(SQL["partition_retries"], (partition,)).fetchone()[0]
            return load_snapshot(connection, partition)

    def _place(self, run: _Run) -> Place:
        return Place(partition=run.partition, run=run.id, sink=run.sink, at=self._now())

    def _write(self, connection: sqlite3.Connection, run: _Run, entries: pl.DataFrame) -> Written:
        written = write_entries(
            connection,
            entries,
            sink=run.sink,
            partition=run.partition,
            run=run.id,
            pipeline=run.pipeline,
            out=self._out,
        )
        park_conflicts(connection, self._place(run), run.pipeline, written.foreign, entries)
        return written

    def _count(
        self,
        connection: sqlite3.Connection,
        run: _Run,
        written: Written | None,
        *,
        records: int = 0,
        rejected: int = 0,
        removed: int = 0,
        facts: Mapping[str, str] | None = None,
    ) -> None:
        numbers = {
            "run": run.id,
            "records": records,
            "created": written.created if written else 0,
            "updated": written.updated if written else 0,
            "unchanged": written.unchanged if written else 0,
            "removed": removed,
            "rejected": rejected + (len(written.foreign) if written else 0),
            "facts": json.dumps(dict(facts)) if facts else None,
        }
        connection.execute(SQL["run_count"], numbers)
        if removed or (written and written.changed):
            connection.execute(SQL["pipeline_changed"], (run.partition,))

    def _note(self, run: _Run, written: Written | None) -> int:
        """Remember what only the end of the run can judge, and tell delivery; after the commit, so that a crash forgets both."""
        if written is None:
            return 0
        run.strangers = run.strangers or written.strangers
        if written.replaced.len():
            run.replaced.append(written.replaced)
        if written.changed:
            self._announce()
        return written.changed

    def _apply_staged(self, run: _Run) -> None:
        """Of each repeated key only the last value was kept; now that all records are read, they are compared and queued."""
        after, staged = "", 0
        while True:
            with self._state.writing() as connection:
                rows = connection.execute(SQL["staging_read"], (run.id, after, _STAGING_PAGE)).fetchall()
                if not rows:
                    connection.execute(SQL["staging_clear"], (run.id,))
                    break
                page = pl.DataFrame(rows, schema=_STAGED, orient="row", infer_schema_length=None)
                written = self._write(connection, run, page)
                self._count(connection, run, written)
            self._note(run, written)
            after, staged = rows[-1][0], staged + len(rows)
        run.repeats = staged < run.mapped

    def _remove_vanished(self, connection: sqlite3.Connection, run: _Run, hashes: pl.Series) -> int:
        rows = connection.execute(SQL["entries_of_partition"], (run.sink, run.partition)).fetchall()
        known = pl.DataFrame(rows, schema={"key": pl.String, "row_hash": pl.Int64}, orient="row")
        keys = known.filter(~pl.col("row_hash").is_in(hashes.implode()))["key"].to_list()
        if not keys:
            return 0
        removed = remove_entries(connection, keys, sink=run.sink, partition=run.partition, run=run.id, out=self._out)
        self._count(connection, run, None, removed=removed)
        return removed


def _ensured(connection: sqlite3.Connection, asked: str, key: _Row, made: str, row: _Row) -> _Row:
    """The row that is asked for, made where it is not there: nearly always it is, and a look changes nothing."""
    found: _Row | None = connection.execute(SQL[asked], key).fetchone()
    if found is None:
        connection.execute(SQL[made], row)
        found = connection.execute(SQL[asked], key).fetchone()
        if found is None:
            raise LookupError(f"{made} did not make what {asked} asks for")
    return found


_RUNS_KEPT = 20_000
"""Runs are kept until there are so many; then, at start, those are forgotten on which nothing stands any more."""

_SUMMARY = ("id", "records", "created", "updated", "unchanged", "removed", "rejected")
_STAGED = {"key": pl.String, "value": pl.String, "data_type": pl.String, "row_hash": pl.Int64, "position": None}
