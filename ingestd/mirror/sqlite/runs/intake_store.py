"""The intake's store: partitions, runs and batches. A batch and its cursor are committed in one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

import msgspec
import polars as pl

from ingestd.core.guard import Guard
from ingestd.core.record import Acknowledgement, Cursor, Reject
from ingestd.mirror.port import Amendment, HeldRun, Removal, RetriedRecord, RunSummary, Snapshot, WriteBatch
from ingestd.mirror.sqlite.entries.claimed_segments import ClaimedSegments
from ingestd.mirror.sqlite.entries.ordered_entries import last_row, order_entries, sort_by_key
from ingestd.mirror.sqlite.rejections.rejected_rows import (
    drop_read_again,
    store_rejected_partition,
    store_rejected_records,
)
from ingestd.mirror.sqlite.runs.acknowledgement import AcknowledgedPartitions, acknowledgement_of, resolve
from ingestd.mirror.sqlite.runs.activation import configure_pipelines
from ingestd.mirror.sqlite.runs.first_readings import FirstReadings
from ingestd.mirror.sqlite.runs.held_runs import EndOfRun
from ingestd.mirror.sqlite.runs.history import content_before
from ingestd.mirror.sqlite.runs.partition_opener import PartitionOpener
from ingestd.mirror.sqlite.runs.pruner import Pruner
from ingestd.mirror.sqlite.runs.retried_records import RetriedRecords
from ingestd.mirror.sqlite.runs.rollback import RollbackWriter
from ingestd.mirror.sqlite.runs.run_effect import PAGE
from ingestd.mirror.sqlite.runs.run_finisher import RunFinisher
from ingestd.mirror.sqlite.runs.run_writer import RunState, RunWriter
from ingestd.mirror.sqlite.sql import SQL
from ingestd.mirror.sqlite.state_file.connection import StateFile


class IntakeStore:
    """The intake's interface to the mirror. Methods block, and several threads may call them.

    ``opened``: the replayable partitions that the sources have named since the start.
    """

    def __init__(
        self,
        state: StateFile,
        *,
        now: Callable[[], float],
        claimed_segments: ClaimedSegments,
        opened: set[int],
        announce: Callable[[int], None],
    ) -> None:
        self._state = state
        self._opened = opened
        self._now = now
        self._claimed = claimed_segments
        self._announce = announce
        self._to_announce: set[int] = set()
        self._writer = RunWriter(now=now, claimed_segments=claimed_segments, announce=self._announce_durable)
        self._finisher = RunFinisher(state, self._writer, now=now, announce=self._announce_durable)
        self._retry = RetriedRecords(self._writer, now=now)
        self.first_readings = FirstReadings(self._finisher, now=now, open_runs=lambda: [*self._runs.values()])
        self._runs: dict[int, RunState] = {}
        self._rollback = RollbackWriter(
            state, self._finisher, now=now, claimed_segments=claimed_segments,
            open_runs=lambda: [*self._runs.values()], announce=self._announce_durable,
        )  # fmt: skip
        self.roll_back = self._rollback.roll_back
        self._opener = PartitionOpener(
            state, opened, now=now, claimed_segments=claimed_segments, announce=self._announce_durable
        )
        self.known_cursor, self.open_partition = self._opener.known_cursor, self._opener.open
        self._changes_at_pass: dict[tuple[str, bool], int] = {}
        """By pipeline and ``whole``, the value of `StateFile.changes` at the last pass that `note_pass` recorded."""
        self._acknowledged = AcknowledgedPartitions(state)
        self.acknowledged_partitions = self._acknowledged.of_pipeline
        self.pruner = Pruner(state, now=now)

    def activate(
        self, pipelines: Collection[str], *, sources: Mapping[str, str] | None = None
    ) -> list[tuple[str, str]]:
        """Activate the configured pipelines at start; they may take over entries of all other pipelines.

        ``sources``: by name, a digest of each pipeline's source and sink. A pipeline that has another name but the same digest
        keeps its state. Return the renamed pipelines as pairs of former and present name.
        """
        with self._state.writing() as connection:
            renamed, sinks = configure_pipelines(
                connection, pipelines, sources or {}, claimed=self._claimed, at=self._now()
            )
            # Runs that are open at start were interrupted.
            connection.execute(SQL["runs_interrupted"])
            connection.execute(SQL["staging_clear_all"])
            connection.execute(SQL["refusals_forget"])
        self._rollback.complete()
        for sink in sinks:
            self._announce(sink)
        return renamed

    def reconfigure(
        self, pipelines: Collection[str], *, sources: Mapping[str, str], ended: Collection[str]
    ) -> list[tuple[str, str]]:
        """Activate the pipelines of a new configuration like `activate`, while other pipelines are running.

        ``ended``: the pipelines that are stopped.
        """
        with self._state.writing() as connection:
            renamed, sinks = configure_pipelines(connection, pipelines, sources, claimed=self._claimed, at=self._now())
            names = json.dumps([*ended, *(name for _, name in renamed)])
            self._opened.difference_update(one for (one,) in connection.execute(SQL["partitions_of"], (names,)))
        for sink in sinks:
            self._announce(sink)
        return renamed

    @contextmanager
    def batch(self, pipeline: str) -> Iterator[WriteBatch]:
        """Make all writes of this thread in the context durable together, at the end of the context.

        Use it for small partitions of one pipeline. If a call in the context raises an exception, only this call is undone. If
        the state file fails, everything in the context is undone. Other writers wait until the context ends, so it must be
        short and must not wait, for example for a source.
        """
        sinks: set[int] = set()
        try:
            with self._finisher.ending(pipeline), self._claimed_until_commit() as written:
                self._to_announce = sinks
                yield written
        finally:
            for sink in sinks:
                self._announce(sink)

    @contextmanager
    def _claimed_until_commit(self) -> Iterator[WriteBatch]:
        with ExitStack() as undo, self._state.batch() as written:
            undo.enter_context(self._claimed.batch())
            yield written

    def _announce_durable(self, sink: int) -> None:
        """Announce pending entries. In a batch, announce them at its end, because the delivery can't see them earlier."""
        if self._state.in_batch:
            self._to_announce.add(sink)
        else:
            self._announce(sink)

    def begin_run(
        self, partition: int, *, snapshot: bool, whole: bool, guard: Guard | None = None, can_hold: bool = False
    ) -> int:
        """Begin a run of a partition and return its id. ``whole``: every record is mapped, differences are not used.

        ``guard``: decides, when a run of a snapshot partition ends, whether the run is held. The first run of a partition is
        compared with entries that the service had before; see `FirstReadings`. ``can_hold``: the caller may pass reasons
        to `finish_run`.
        """
        with self._state.writing() as connection:
            run: int = connection.execute(SQL["run_begin"], (partition, self._now())).fetchone()[0]
            connection.execute(SQL["staging_clear_partition"], (partition,))
            pipeline, sink, repeats, remapped, was_read, exact, found, is_unknown, after_rollback = connection.execute(
                SQL["partition_context"], (partition,)
            ).fetchone()
            can_hold = can_hold or bool(after_rollback)
            if is_unknown and snapshot:
                stored = msgspec.json.encode(guard).decode() if guard is not None else None
                connection.execute(SQL["first_reading_guard"], {"guard": stored, "partition": partition})
            if not was_read and not found:  # the service has no entries to compare with
                guard = None
            has_rejected = bool(connection.execute(SQL["rejected_any"], (partition,)).fetchone()[0])
            # The run is added within the transaction, because the end of an adoption looks for open runs. If an earlier run of
            # the partition is still open, it could neither finish nor fail, because the disk was full. It is removed here.
            self._runs = {known: other for known, other in self._runs.items() if other.partition != partition}
            self._runs[run] = RunState(
                id=run,
                partition=partition,
                pipeline=pipeline,
                sink=sink,
                snapshot=snapshot,
                whole=whole,
                staged=snapshot and bool(repeats or remapped or guard or can_hold),
                remapped=bool(remapped),
                has_rejected=has_rejected,
                retries=self._opener.retries.get(partition, 0),
                guard=guard or (Guard() if can_hold else None) if snapshot else None,
                only_guarded=snapshot and not (repeats or remapped),
                after_rollback=bool(after_rollback),
                # The differences refer to a reading that was rolled back after they were loaded.
                outdated=snapshot and bool(after_rollback) and not whole,
                repeated_keys=self._finisher.repeated_keys(partition),
                positions_exact=bool(exact),
                fresh=not was_read,
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
        valueless: int = 0,
    ) -> int:
        """Commit one batch and return the number of changed entries.

        ``entries``: ``key`` (in the Unicode form NFC, as the service stores it), ``value``, ``data_type`` (String),
        ``row_hash`` (UInt64), ``position`` (Int64 or String), in the order of the records. If keys are equal, the last entry
        is written. An entry without a value belongs to a rejected record: the mirror keeps its value, and creates no entry. A
        column ``deadband`` (String, null: none) may state how far the value may differ from the mirror's value without being
        sent; see `is_within_band`. ``rejects``: rejected records with their row hashes (None: the record could not be parsed).
        ``records``: number of records read, mapped or not. ``resolved``: references of rejections of the pipeline that are
        resolved now; a reference that matches no current rejection is ignored. ``valueless``: the number of mapped records that
        gave no entry and were not rejected.
        """
        current = self._runs[run]
        ordered, unique = order_entries(entries)
        current.mapped += entries.height
        if unique.height < entries.height:
            current.repeats = True
            if current.snapshot:
                current.repeated_keys.note_commit(ordered)
        changed = 0
        # The cursor of a snapshot moves at the end of its run, so only the last page must share a transaction with the rejects.
        while current.snapshot and unique.height > PAGE:
            with self._state.writing() as connection:
                written = self._writer.write_or_stage(connection, current, unique[:PAGE])
                self._writer.count(connection, current, written)
            changed += self._writer.note_written(current, written)
            unique = unique[PAGE:]
        with self._state.writing() as connection:
            written = self._writer.write_or_stage(connection, current, unique)
            if resolved:
                resolve(connection, current.pipeline, resolved)
            location = self._writer.location(current)
            if current.has_rejected and not current.snapshot:
                drop_read_again(connection, location, current.retries, unique["row_hash"].unique().to_list())
            store_rejected_records(connection, location, rejects)
            self._writer.count(
                connection, current, written, records=records, rejected=len(rejects), valueless=valueless, facts=facts
            )
            if not current.snapshot:
                current.last_row = max(current.last_row, last_row(entries, [one for one, _ in rejects]))
                current.has_rejected = current.has_rejected or bool(rejects)
                moved = {"cursor": json.dumps(cursor), "last_row": current.last_row, "partition": current.partition}
                connection.execute(SQL["partition_advance"], moved)
        return changed + self._writer.note_written(current, written)

    def finish_run(
        self,
        run: int,
        *,
        cursor: Cursor,
        seen: Snapshot | None,
        deletes: Removal,
        partial: bool = False,
        reasons: Sequence[str] = (),
        amendment: Amendment | None = None,
    ) -> RunSummary:
        """End a complete run.

        ``seen``: all records of a snapshot reading; None if the reading was no snapshot, was ``partial`` (see `Batch.partial`),
        or found its source unchanged. ``deletes``: with "remove", entries of missing records are removed. With "defer", a
        rejected record may name any entry, so no entry is removed, and the next reading of the partition maps all records.
        If a run ``collided``, its reading is not recorded, and the partition must be read again.

        ``reasons``: one sentence for each reason of the caller to hold the run. A run that would change no entry is not held.

        ``amendment``: the records of a ``partial`` run, if they have keys. Earlier rejections at their positions are deleted.
        With ``deletes`` "remove", entries at these positions that no record produces any more are deleted, too. A run with a
        complete amendment collides if positions do not show which record produces each entry. It also collides if the guard
        would hold the removal.

        A run that the guard holds changes no entry and moves no cursor, and replaces the held run of the partition. A run that
        is not held deletes the held run. A reading with the content of an approved run is not held. A reading with the content
        of the held run or of a discarded run is ignored.
        """
        end = EndOfRun(
            cursor=cursor,
            seen=seen.hashes if seen is not None else None,
            sections=seen.sections if seen is not None else None,
            deletes=deletes,
            partial=partial,
            reasons=tuple(reasons),
            amendment=amendment,
        )
        summary = self._finisher.finish(self._runs[run], end)
        del self._runs[run]
        return summary

    def approve(self, run: int) -> RunSummary:
        """Write the entries of a held run, as at the end of an ordinary run. A second call completes an interrupted call.

        Raises:
            RunNotHeld: there is no such held run, or a later run replaced it.
        """
        self._rollback.complete()
        return self._finisher.approve(run, lambda name: [one for one in [*self._runs.values()] if one.pipeline == name])

    def discard(self, run: int) -> HeldRun:
        """Delete the entries of a held run. A later reading with the same content is not held again.

        Raises:
            RunNotHeld: there is no such held run, a later run replaced it, or it was approved.
        """
        self._rollback.complete()
        return self._finisher.discard(run)

    def fail_run(self, run: int, reason: str, *, broken: bool, reasons: Sequence[str] = ()) -> None:
        """End a failed run; committed batches remain. ``broken``: reject the partition with the reason.

        ``reasons``: the caller's reasons to hold the run; if there are any, the staged entries of the run are discarded.
        """
        current = self._runs[run]
        if current.staged and not reasons:
            self._finisher.end_early(current)
        del self._runs[run]
        with self._state.writing() as connection:
            connection.execute(SQL["staging_clear"], (run,))
            current.repeated_keys.store_notice(connection, run)
            connection.execute(SQL["run_end"], (self._now(), reason, run))
            connection.execute(SQL["partition_failed"], (run, current.partition))
            if broken:
                store_rejected_partition(connection, self._writer.location(current), reason)
            else:
                connection.execute(SQL["rejected_partition"], (current.partition,)).fetchall()

    def note_pass(self, pipeline: str, *, began: float, whole: bool) -> None:
        """Record a pass that began at ``began``: every partition of the pipeline was read completely, or is unchanged.

        ``whole``: each partition is a snapshot with ``deletes: remove``, so the sources name all entries of the pipeline. No
        transaction is needed if the state file has not changed since the last pass.
        """
        if self._changes_at_pass.get((pipeline, whole)) == self._state.changes:
            return
        with self._state.writing() as connection:
            row = connection.execute(SQL["pipeline_adopted_at"], (pipeline,)).fetchone()
            is_valid = row is None or row[0] is None or began >= row[0]
            if is_valid:
                connection.execute(SQL["pipeline_read"], {"name": pipeline, "began": began, "whole": int(whole)})
            changes = connection.total_changes
        if is_valid:  # and committed
            self._changes_at_pass[pipeline, whole] = changes

    def known_content(self, run: int, sha256: str) -> tuple[str, float] | None:
        """Return the last partition of the pipeline that had this content before the run, and its reading time, or None."""
        with self._state.writing() as connection:
            return content_before(connection, run, sha256)

    def retried_records(self, partition: int, *, limit: int) -> list[RetriedRecord]:
        """Return at most ``limit`` retried rejections of records that an incremental partition does not read again.

        The oldest are first. All returned rejections belong to one run, and have positions of one type.
        """
        with self._state.writing() as connection:
            retries = self._opener.retries.get(partition, 0)
            return self._retry.records(connection, partition, retries=retries, limit=limit)

    def map_retried(
        self,
        partition: int,
        records: Sequence[RetriedRecord],
        *,
        entries: pl.DataFrame,
        rejects: Sequence[tuple[Reject, int | None]],
    ) -> int:
        """Replace rejections by the entries or rejections that their stored ``records`` produce, in one transaction.

        Return the number of changed entries.

        ``records`` are from `retried_records`; ``entries`` and ``rejects``: see `commit`. If a later record has written a key,
        the key keeps its value. If it is not known which record is later, the rejection stays, and its reason says so.
        """
        with self._state.writing() as connection:
            ordered = sort_by_key(entries)
            run, written = self._retry.map(connection, partition, records, entries=ordered, rejects=rejects)
        return self._writer.note_written(run, written)

    def hold_notifications(self, may_notify: Callable[[int, str], bool]) -> None:
        """Omit partitions from `acknowledged_partitions` if ``may_notify`` returns False for their id and cursor (JSON)."""
        self._acknowledged.may_notify = may_notify

    def acknowledgement(self, partition: int) -> Acknowledgement:
        """Return the result of the last reading of a partition of `acknowledged_partitions`."""
        with self._state.writing() as connection:
            return acknowledgement_of(connection, partition, self._state.reader)

    def acknowledge(self, partition: int, cursor: Cursor, *, gone: bool = False) -> None:
        """Record that the connector was notified of ``cursor``. ``gone``: the connector has removed the partition."""
        with self._state.writing() as connection:
            of_partition = {"at": self._now(), "partition": partition, "cursor": json.dumps(cursor)}
            connection.execute(SQL["partition_acknowledge"], of_partition)
            connection.execute(SQL["wait_clear"], (partition,))
            if gone:
                connection.execute(SQL["partition_gone"], (0, partition))
