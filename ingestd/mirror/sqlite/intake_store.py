"""The intake's store: partitions, runs and batches. A batch and its cursor are committed in one transaction."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import polars as pl

from ingestd.core.address import SinkAddress
from ingestd.core.record import Cursor, Deletes, Reject, Settlement
from ingestd.mirror.port import PartitionState, RunSummary
from ingestd.mirror.sqlite.connection import StateFile
from ingestd.mirror.sqlite.entry_writer import Written, remove_entries, write_entries
from ingestd.mirror.sqlite.history import content_before
from ingestd.mirror.sqlite.ownership import disown, left_over, note_sources, rename_pipelines
from ingestd.mirror.sqlite.pruner import Pruner
from ingestd.mirror.sqlite.rejected_rows import (
    RejectionLocation,
    find_corrected,
    find_vanished,
    store_conflicts,
    store_rejected_partition,
    store_rejected_records,
)
from ingestd.mirror.sqlite.rejected_store import reopen
from ingestd.mirror.sqlite.settlement import resolve, settlement_of
from ingestd.mirror.sqlite.snapshots import RUNS_APART, drop_old_snapshots, load_snapshot, store_snapshot
from ingestd.mirror.sqlite.sql import SQL

_PAGE = 10_000
"""Entries in one transaction, which takes some tenths of a second; larger batches use several transactions."""

_PARTITIONS = 1_000
"""Partitions read in one transaction."""

_Row: TypeAlias = tuple[Any, ...]


@dataclass(slots=True, kw_only=True)
class _Run:
    """The state of a run in memory. After a crash the partition is read again from its cursor."""

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
    mapped: int = 0
    repeats: bool = False
    took_over: bool = False
    replaced: list[pl.Series] = field(default_factory=list)


class IntakeStore:
    """Implements `ingestd.mirror.port.Intake` over a state file; its methods may be called from several threads.

    ``opened``: the partitions that the sources have named since the start.
    """

    def __init__(
        self,
        state: StateFile,
        *,
        now: Callable[[], float],
        claimed_segments: Collection[int],
        opened: set[int],
        announce: Callable[[int], None],
    ) -> None:
        self._state = state
        self._opened = opened
        self._now = now
        self._claimed = claimed_segments
        self._announce = announce
        self._runs: dict[int, _Run] = {}
        self._retries: dict[int, int] = {}
        self._pruner = Pruner(state, now=now)
        self._finished: Counter[str] = Counter()
        with state.writing() as connection:
            for statement in ("touched_create", "touched_by_segment", "touched_by_run", "touched_at_start"):
                connection.execute(SQL[statement])

    def activate(
        self, pipelines: Collection[str], *, sources: Mapping[str, str] | None = None
    ) -> list[tuple[str, str]]:
        """Activate the configured pipelines at start; entries of all other pipelines may be taken over.

        ``sources``: by name, a digest of each pipeline's source and sink. A pipeline that is configured under another name keeps
        its state. Return the renamed ones as pairs of former and present name.
        """
        with self._state.writing() as connection:
            renamed = rename_pipelines(connection, sources or {})
            connection.executemany(SQL["pipeline_ensure"], [(name,) for name in pipelines])
            names = json.dumps(sorted(pipelines))
            if connection.execute(SQL["pipeline_activate"], (names, names)).rowcount:
                # Entries rejected because of a retired pipeline are mapped again.
                connection.execute(SQL["partition_free_conflicts"])
            note_sources(connection, sources or {})
            # Runs that are open at start were interrupted.
            connection.execute(SQL["runs_interrupted"])
            connection.execute(SQL["staging_clear_all"])
            connection.execute(SQL["refusals_forget"])
        return renamed

    def open_partition(self, pipeline: str, partition: str, sink: SinkAddress, digest: str) -> PartitionState:
        """See `Intake.open_partition`."""
        address = (sink.workspace, sink.by, sink.name)
        with self._state.writing() as connection:
            (sink_id,) = _get_or_create(connection, "sink_id", address, "sink_ensure", address)
            pipeline_id, changes = _get_or_create(
                connection, "pipeline_get", (pipeline,), "pipeline_ensure", (pipeline,)
            )
            row = _get_or_create(
                connection,
                "partition_get",
                (pipeline_id, partition),
                "partition_ensure",
                (pipeline_id, sink_id, partition),
            )
            identity, at_sink, known_digest, cursor, valid_through, repeats, awaiting, retries, gone, retired = row
            if gone is not None:
                connection.execute(SQL["partition_is_back"], (identity,))
            # The cursor covers the retries requested until now.
            self._retries[identity] = retries
            if (at_sink, known_digest) != (sink_id, digest):
                restarted = {"sink": sink_id, "digest": digest, "partition": identity}
                connection.execute(SQL["partition_restart"], restarted)
                connection.execute(SQL["snapshot_clear"], (identity,))
                cursor, valid_through, repeats = None, -1, 0
            if retired:
                connection.execute(SQL["partition_in_use"], (identity,))
            current = valid_through == changes
        self._opened.add(identity)
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
            pipeline, sink, repeats, remapped = connection.execute(SQL["partition_place"], (partition,)).fetchone()
            has_rejected = bool(connection.execute(SQL["rejected_any"], (partition,)).fetchone()[0])
        # This run supersedes one that could neither finish nor fail because the disk was full.
        self._runs = {known: other for known, other in self._runs.items() if other.partition != partition}
        self._runs[run] = _Run(
            id=run,
            partition=partition,
            pipeline=pipeline,
            sink=sink,
            snapshot=snapshot,
            whole=whole,
            staged=snapshot and bool(repeats or remapped),
            remapped=bool(remapped),
            has_rejected=has_rejected,
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
        ordered = entries.sort("key", maintain_order=True)  # stable: the last record of equal keys is last
        unique = ordered.filter(pl.col("key").ne_missing(pl.col("key").shift(-1)))
        unique = unique.with_columns(pl.col("row_hash").reinterpret(signed=True))
        current.mapped += entries.height
        current.repeats = current.repeats or unique.height < entries.height
        changed = 0
        # The cursor of a snapshot moves at its end, so only the last page needs the same transaction.
        while current.snapshot and unique.height > _PAGE:
            with self._state.writing() as connection:
                written = self._write_or_stage(connection, current, unique[:_PAGE])
                self._count(connection, current, written)
            changed += self._note(current, written)
            unique = unique[_PAGE:]
        with self._state.writing() as connection:
            written = self._write_or_stage(connection, current, unique)
            if resolved:
                resolve(connection, current.pipeline, resolved)
            store_rejected_records(connection, self._place(current), rejects)
            self._count(connection, current, written, records=records, rejected=len(rejects), facts=facts)
            if not current.snapshot:
                connection.execute(SQL["partition_advance"], (json.dumps(cursor), current.partition))
        return changed + self._note(current, written)

    def finish_run(
        self, run: int, *, cursor: Cursor, seen: pl.Series | None, deletes: Deletes, partial: bool = False
    ) -> RunSummary:
        """See `Intake.finish_run`."""
        current = self._runs[run]
        if current.staged:
            self._apply_staged(current)
        hashes = seen.reinterpret(signed=True) if seen is not None else None
        standing = hashes is not None and _stands(current, hashes)
        collided = not current.whole and (current.took_over or standing)
        if hashes is not None and not collided:
            self._remove_unnamed(current, hashes, deletes)
        if current.has_rejected and not collided:
            self._delete_rejections(current, seen, partial=partial)
        with self._state.writing() as connection:
            if collided:
                # The differences do not show which record owns a key: discard them and read the whole partition.
                connection.execute(SQL["partition_doubted"], (current.partition,))
            else:
                if seen is not None:
                    self._end_snapshot(connection, current, seen, repeats=standing)
                connection.execute(SQL["rejected_partition"], (current.partition,)).fetchall()
            if current.staged:
                connection.execute(SQL["staging_clear"], (run,))
            row = connection.execute(SQL["run_end"], (self._now(), "", run)).fetchone()
            summary = RunSummary(**dict(zip(_SUMMARY, row, strict=True)), collided=collided)
            if partial and summary.changed:
                connection.execute(SQL["partition_amended"], (current.partition,))
            if not collided:
                end = {
                    "changed": summary.changed,
                    "cursor": json.dumps(cursor),
                    "run": run,
                    "partition": current.partition,
                }
                connection.execute(SQL["partition_end"], end)
                # Retries requested during this run are for the next one.
                reopen(connection, current.partition, since=current.retries)
                # Also at the first run after a start, for a daemon that often restarts.
                if self._finished[current.pipeline] % RUNS_APART == 0:
                    drop_old_snapshots(connection, current.partition)
                self._finished[current.pipeline] += 1
            connection.execute(SQL["run_forget_idle"], (current.partition, run))
        del self._runs[run]
        return summary

    def _end_snapshot(self, connection: sqlite3.Connection, run: _Run, seen: pl.Series, *, repeats: bool) -> None:
        """Store the row hashes of a whole reading."""
        if run.remapped and run.whole:
            connection.execute(SQL["partition_mapped"], (run.partition,))
        store_snapshot(connection, run.partition, seen)
        changes = connection.execute(SQL["pipeline_get"], (run.pipeline,)).fetchone()[1]
        connection.execute(SQL["partition_snapshot"], (changes, int(run.repeats or repeats), run.partition))

    def fail_run(self, run: int, reason: str, *, broken: bool) -> None:
        """See `Intake.fail_run`."""
        current = self._runs.pop(run)
        with self._state.writing() as connection:
            connection.execute(SQL["run_end"], (self._now(), reason, run))
            connection.execute(SQL["partition_failed"], (run, current.partition))
            if broken:
                store_rejected_partition(connection, self._place(current), reason)
            else:
                connection.execute(SQL["rejected_partition"], (current.partition,)).fetchall()

    def note_pass(self, pipeline: str, *, began: float, whole: bool) -> None:
        """See `Intake.note_pass`."""
        with self._state.writing() as connection:
            row = connection.execute(SQL["pipeline_adopted_at"], (pipeline,)).fetchone()
            if row is None or row[0] is None or began >= row[0]:
                connection.execute(SQL["pipeline_read"], {"name": pipeline, "began": began, "whole": int(whole)})

    def known_content(self, run: int, sha256: str) -> tuple[str, float] | None:
        """See `Intake.known_content`."""
        with self._state.writing() as connection:
            return content_before(connection, run, sha256)

    def settled_partitions(self, pipeline: str) -> list[tuple[int, str, Cursor]]:
        """See `Intake.settled_partitions`."""
        rows: list[tuple[float, int, str, str]] = []
        after: int | None = 0
        while after is not None:
            with self._state.writing() as connection:
                known = connection.execute(SQL["pipeline_get"], (pipeline,)).fetchone()
                if known is None:
                    return []
                page = connection.execute(SQL["partitions_touched"], (known[0], after, _PARTITIONS)).fetchall()
                rows += [(run, identity, name, cursor) for identity, name, cursor, run, settled in page if settled]
                unsettled = [(known[0], identity) for identity, *_, settled in page if not settled]
                connection.executemany(SQL["touched_drop"], unsettled)
            after = page[-1][0] if len(page) == _PARTITIONS else None
        rows.sort()
        return [(identity, name, json.loads(cursor)) for _, identity, name, cursor in rows]

    def settlement(self, partition: int) -> Settlement:
        """See `Intake.settlement`."""
        with self._state.writing() as connection:
            return settlement_of(connection, partition, self._state.reader)

    def acknowledge(self, partition: int, cursor: Cursor, *, gone: bool = False) -> None:
        """See `Intake.acknowledge`."""
        with self._state.writing() as connection:
            connection.execute(SQL["partition_acknowledge"], (partition, json.dumps(cursor)))
            connection.execute(SQL["wait_clear"], (partition,))
            if gone:
                connection.execute(SQL["partition_gone"], (0, partition))

    def old_partitions(self, pipeline: str) -> list[tuple[int, str]]:
        """See `Intake.old_partitions`."""
        return self._pruner.old_partitions(pipeline)

    def note_gone(self, partition: int) -> None:
        """See `Intake.note_gone`."""
        self._pruner.note_gone(partition)

    def prune(self) -> None:
        """See `Intake.prune`."""
        self._pruner.prune()

    # ------------------------------------------------------------------------------------------------ inside a run

    def _snapshot(self, partition: int) -> pl.Series:
        with self._state.writing() as connection:
            # These hashes cover the retries requested until now.
            self._retries[partition] = connection.execute(SQL["partition_retries"], (partition,)).fetchone()[0]
            return load_snapshot(connection, partition)

    def _place(self, run: _Run) -> RejectionLocation:
        return RejectionLocation(partition=run.partition, run=run.id, sink=run.sink, at=self._now())

    def _write_or_stage(self, connection: sqlite3.Connection, run: _Run, entries: pl.DataFrame) -> Written | None:
        """Write entries, or stage them until the end of a run with repeated keys."""
        if entries.height and run.staged:
            connection.execute(SQL["staging_write"], (run.id, entries.write_json()))
            return None
        return self._write(connection, run, entries) if entries.height else None

    def _write(self, connection: sqlite3.Connection, run: _Run, entries: pl.DataFrame) -> Written:
        written = write_entries(
            connection,
            entries,
            sink=run.sink,
            partition=run.partition,
            run=run.id,
            pipeline=run.pipeline,
            claimed_segments=self._claimed,
        )
        store_conflicts(connection, self._place(run), run.pipeline, written.foreign, entries)
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
        if written and written.replaced.len():
            # Entries have hashes that the last whole reading did not see, so its hashes decide nothing until the next one.
            connection.execute(SQL["partition_amended"], (run.partition,))

    def _note(self, run: _Run, written: Written | None) -> int:
        """Record facts for the end of the run, and wake the delivery. Call it after the commit."""
        if written is None:
            return 0
        run.took_over = run.took_over or written.took_over
        if written.replaced.len():
            run.replaced.append(written.replaced)
        if written.changed:
            self._announce(run.sink)
        return written.changed

    def _apply_staged(self, run: _Run) -> None:
        """Write the staged entries at the end of a run: the last value of each repeated key."""
        after, staged = "", 0
        while True:
            with self._state.writing() as connection:
                rows = connection.execute(SQL["staging_read"], (run.id, after, _PAGE)).fetchall()
                if not rows:
                    break
                page = pl.DataFrame(rows, schema=_STAGED, orient="row", infer_schema_length=None)
                written = self._write(connection, run, page)
                self._count(connection, run, written)
            self._note(run, written)
            after, staged = rows[-1][0], staged + len(rows)
        run.repeats = staged < run.mapped

    def _remove_unnamed(self, run: _Run, hashes: pl.Series, deletes: Deletes) -> None:
        """Remove or release the entries that a whole reading with these row hashes does not name."""
        if run.remapped and run.whole:
            self._remove_left_over(run, deletes)
        elif deletes == "remove":
            self._remove_vanished(run, hashes)

    def _delete_rejections(self, run: _Run, seen: pl.Series | None, *, partial: bool) -> None:
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
        for start in range(0, len(vanished), _PAGE):
            with self._state.writing() as connection:
                connection.execute(SQL["rejected_drop"], (json.dumps(vanished[start : start + _PAGE]),))
        for start in range(0, len(corrected), _PAGE):
            with self._state.writing() as connection:
                page = json.dumps(corrected[start : start + _PAGE])
                connection.execute(SQL["rejected_drop_mended"], {"ids": page, "retries": run.retries})

    def _remove_vanished(self, run: _Run, hashes: pl.Series) -> None:
        """Remove the partition's entries without a record, in pages.

        A read connection lists them, because a sink may be large. After a crash the next reading continues with the rest.
        """
        with closing(self._state.reader()) as reader:
            rows = reader.execute(SQL["entries_of_partition"], (run.sink, run.partition)).fetchall()
        known = pl.DataFrame(rows, schema={"key": pl.String, "row_hash": pl.Int64}, orient="row")
        self._remove(run, known.filter(~pl.col("row_hash").is_in(hashes.implode()))["key"].to_list())

    def _remove_left_over(self, run: _Run, deletes: Deletes) -> None:
        """Remove or release keys of the former mapping. Row hashes do not show them: the record still exists."""
        with closing(self._state.reader()) as reader:
            entries = left_over(reader, sink=run.sink, partition=run.partition, run=run.id)
        if deletes == "remove":
            self._remove(run, entries["key"].to_list())
            return
        keys = entries.filter(~pl.col("pending"))["key"].to_list()
        for start in range(0, len(keys), _PAGE):
            with self._state.writing() as connection:
                disown(connection, run.sink, keys[start : start + _PAGE])

    def _remove(self, run: _Run, keys: list[str]) -> None:
        """Queue removals in pages, so that other writers can run between two."""
        for start in range(0, len(keys), _PAGE):
            page = keys[start : start + _PAGE]
            with self._state.writing() as connection:
                removed = remove_entries(
                    connection, page, sink=run.sink, partition=run.partition, run=run.id, claimed_segments=self._claimed
                )
                self._count(connection, run, None, removed=removed)
            if removed:
                self._announce(run.sink)


def _stands(run: _Run, hashes: pl.Series) -> bool:
    """Return True if the reading contains a record whose entry another record has replaced."""
    return bool(run.replaced) and bool(pl.concat(run.replaced).is_in(hashes.implode()).any())


def _get_or_create(connection: sqlite3.Connection, select: str, key: _Row, insert: str, row: _Row) -> _Row:
    """Return the selected row; insert it if it is missing. The usual case needs no write."""
    found: _Row | None = connection.execute(SQL[select], key).fetchone()
    if found is None:
        connection.execute(SQL[insert], row)
        found = connection.execute(SQL[select], key).fetchone()
        if found is None:
            raise LookupError(f"{insert} did not insert the row of {select}")
    return found


_SUMMARY = ("id", "records", "created", "updated", "unchanged", "removed", "rejected")
_STAGED = {"key": pl.String, "value": pl.String, "data_type": pl.String, "row_hash": pl.Int64, "position": None}
