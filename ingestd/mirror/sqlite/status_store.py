"""Read-only view of a mirror: counts for `ingestd status`, rejections, drift, and the origin of values."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from ingestd.core.address import SinkAddress
from ingestd.mirror.drift import START, DriftFinding, DriftPage, DriftStatus, SinkOwnership, UnexplainedPage
from ingestd.mirror.port import DeliveryAttempt, HeldRun, LaneBlocker, RunSummary
from ingestd.mirror.rejections import Forgotten, RecordPage, Refusal, Rejection, Selection
from ingestd.mirror.reports import (
    EntryOrigin,
    FailedPart,
    FormerValue,
    HeldDifference,
    History,
    LastRun,
    PartitionNotice,
    PastRun,
    PipelinePause,
    PipelineStatus,
    SinkBacklog,
    SinkStatus,
    StoredCursor,
)
from ingestd.mirror.rollback import Rollback, RunSelection
from ingestd.mirror.sqlite.entries.former_values import read_former
from ingestd.mirror.sqlite.entries.ownership import unexplained_count, unexplained_counts, unexplained_page
from ingestd.mirror.sqlite.rejections.rejected_rows import select_rejected
from ingestd.mirror.sqlite.rows import from_row
from ingestd.mirror.sqlite.runs.cursor_store import read_cursors
from ingestd.mirror.sqlite.runs.held_runs import held_run
from ingestd.mirror.sqlite.runs.history import history, past_runs
from ingestd.mirror.sqlite.runs.undo_plan import plan_rollback, select
from ingestd.mirror.sqlite.sql import SQL

_NOTICES = 5
"""Maximum number of notices of one pipeline in the status, the newest first."""


class Observer:
    """All read interfaces of the mirror over a read connection. Thread-safe.

    Each call reads one consistent state. Pages of rejections are ordered by id, the oldest first.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._guard = threading.Lock()

    def sinks(self) -> list[SinkStatus]:
        """Return all sinks, by address. Reads all entries."""
        with self._view() as connection:
            rows = connection.execute(SQL["status_sinks"]).fetchall()
            blockers = _blockers(connection)
            unexplained = unexplained_counts(connection)
            doubts = _doubts(connection)
        return [
            SinkStatus(
                address=address,
                sink_id=sink_id,
                entries=entries,
                pending=pending,
                rejected=rejected,
                drift=from_row(DriftStatus, row[7:15]) if row[7] is not None else None,
                last_attempt=_attempt(row[15:]),
                blocker=blockers.get(address),
                unexplained=unexplained.get(address, (0, True))[0],
                read=unexplained.get(address, (0, True))[1],
                doubt=doubts.get(address, ""),
            )
            for row in rows
            for workspace, by, name, sink_id, entries, pending, rejected in [row[:7]]
            for address in [SinkAddress(workspace=workspace, by=by, name=name)]
        ]

    def blockers(self) -> dict[SinkAddress, LaneBlocker]:
        """Return the reasons why deliveries wait, by sink. The cost is independent of the number of entries."""
        with self._view() as connection:
            return _blockers(connection)

    def entries_of(self, sink: SinkAddress, *, limit: int) -> int:
        """Return the number of entries of a sink, at most ``limit``; 0 if the sink is unknown. Reads the counted entries."""
        with self._view() as connection:
            row = connection.execute(SQL["entries_of_sink"], (sink.workspace, sink.by, sink.name, limit)).fetchone()
        count: int = row[0]
        return count

    def pipelines(self) -> list[PipelineStatus]:
        """Return all pipelines that ever ran, by name."""
        with self._view() as connection:
            rows = connection.execute(SQL["status_pipelines"]).fetchall()
            runs = {run: _last_run(connection, run) for *_, run in rows if run is not None}
            noticed: defaultdict[str, list[tuple[str, float, str, int]]] = defaultdict(list)
            for name, *notice in connection.execute(SQL["status_notices"], {"limit": _NOTICES}):
                noticed[name].append(tuple(notice))
        return [
            PipelineStatus(
                name=name,
                partitions=partitions,
                rejected=rejected,
                within_deadband=within,
                notices=tuple(
                    PartitionNotice(partition=partition, at=at, sentence=sentence)
                    for partition, at, sentence, _ in noticed[name]
                ),
                noticed=noticed[name][0][-1] if noticed[name] else 0,
                **runs.get(run, {}),
            )
            for name, partitions, rejected, within, run in rows
        ]

    def pipeline_last_runs(self) -> dict[str, LastRun]:
        """Return the last run of each pipeline that ever ran. Many entries or partitions do not increase the cost."""
        with self._view() as connection:
            rows = connection.execute(SQL["pipeline_last_runs"]).fetchall()
        return {name: from_row(LastRun, run, failure_rejected=bool(run[2])) for name, *run in rows}

    def failed_parts(self) -> list[FailedPart]:
        """Return all failed parts that have not recovered, by name."""
        with self._view() as connection:
            return [from_row(FailedPart, row) for row in connection.execute(SQL["failed_parts"])]

    def pauses(self) -> list[PipelinePause]:
        """Return the paused pipelines, by name."""
        with self._view() as connection:
            return [from_row(PipelinePause, row) for row in connection.execute(SQL["pauses"])]

    def held_runs(self) -> list[HeldRun]:
        """Return the held runs, and the approved runs that are being written, by number."""
        with self._view() as connection:
            return [held_run(row) for row in connection.execute(SQL["held_list"])]

    def pending(self) -> int:
        """Return the number of pending entries of all sinks."""
        with self._view() as connection:
            count: int = connection.execute(SQL["pending_total"]).fetchone()[0]
        return count

    def rejected(self) -> int:
        """Return the number of rejections."""
        with self._view() as connection:
            count: int = connection.execute(SQL["rejected_total"]).fetchone()[0]
        return count

    def backlog(self) -> list[SinkBacklog]:
        """Return the pending entries, by sink. The cost is independent of the number of entries."""
        with self._view() as connection:
            rows = connection.execute(SQL["backlog"]).fetchall()
        return [
            SinkBacklog(address=SinkAddress(workspace=workspace, by=by, name=name), pending=pending, oldest_at=oldest)
            for workspace, by, name, pending, oldest in rows
        ]

    def rejected_by_pipeline(self) -> dict[str, int]:
        """Return the number of rejections of each pipeline with rejections."""
        with self._view() as connection:
            return dict(connection.execute(SQL["rejected_by_pipeline"]).fetchall())

    def rejections(self, *, limit: int) -> list[Rejection]:
        """Return the newest rejections, newest first."""
        with self._view() as connection:
            ids = connection.execute(SQL["rejections_newest"], (limit,)).fetchall()
            return _read_rejections(connection, [identity for (identity,) in ids])[::-1]

    def selected(self, selection: Selection, *, after: int = 0, limit: int) -> list[Rejection]:
        """Return the next page of the selected rejections, with ids greater than ``after``."""
        with self._view() as connection:
            chosen = connection.execute(*select_rejected(selection, after=after, limit=limit)).fetchall()
            return _read_rejections(connection, [identity for (identity,) in chosen])

    def count(self, selection: Selection) -> int:
        """Return the number of selected rejections."""
        with self._view() as connection:
            statement, parameters = select_rejected(selection)
            count: int = connection.execute(f"SELECT count(*) FROM ({statement}\n)", parameters).fetchone()[0]
        return count

    def newest(self) -> int:
        """Return the id of the newest rejection; 0 if there is none."""
        with self._view() as connection:
            identity: int = connection.execute(SQL["rejected_newest"]).fetchone()[0]
        return identity

    def records(self, selection: Selection, *, after: int = 0, until: int, limit: int) -> RecordPage | None:
        """Return the records of the next page of selected rejections with ids up to ``until``; None after the last page.

        This method is faster than `selected`.
        """
        statement, parameters = select_rejected(selection, after=after, limit=limit)
        with self._view() as connection:
            page = f"SELECT max(id), json_group_array(id) FROM ({statement}\n) WHERE id <= :until"
            last, ids = connection.execute(page, parameters | {"until": until}).fetchone()
            if last is None:
                return None
            records, pipelines = connection.execute(SQL["rejected_records"], (ids,)).fetchone()
        return RecordPage(records=msgspec.json.decode(records), pipelines=msgspec.json.decode(pipelines), last=last)

    def refusals(self, rejection: int) -> list[Refusal]:
        """Return the refusals of a rejected entry, oldest first; empty if the rejection is of another kind."""
        with self._view() as connection:
            return [from_row(Refusal, row) for row in connection.execute(SQL["refusals"], (rejection,))]

    def forgotten(self) -> Forgotten | None:
        """Return the number of rejections deleted because of the limits; None if there were no such deletions."""
        with self._view() as connection:
            row = connection.execute(SQL["bounded"]).fetchone()
        return from_row(Forgotten, row) if row else None

    def drift(self, pipelines: Collection[str], *, after: tuple[int, str] = START, limit: int) -> DriftPage:
        """Return findings of the last checks: about entries of ``pipelines``, and about added keys in their sinks."""
        parameters = {"names": json.dumps(list(pipelines)), "sink": after[0], "key": after[1], "limit": limit}
        with self._view() as connection:
            rows = connection.execute(SQL["drift_page"], parameters).fetchall()
        findings = tuple(from_row(DriftFinding, row[1:]) for row in rows)
        return DriftPage(findings=findings, next=(rows[-1][0], findings[-1].key) if len(rows) == limit else None)

    def drift_of(self, key: str) -> list[DriftFinding]:
        """Return the findings without a reaction about a key, one for each sink that differs."""
        with self._view() as connection:
            return [from_row(DriftFinding, row) for row in connection.execute(SQL["drift_of_key"], (key,))]

    def drift_checks(self, pipelines: Collection[str]) -> list[tuple[str, DriftStatus]]:
        """Return address and last check of each sink of ``pipelines``, except sinks without any check."""
        with self._view() as connection:
            rows = connection.execute(SQL["drift_checks"], (json.dumps(list(pipelines)),)).fetchall()
        return [
            (str(SinkAddress(workspace=row[0], by=row[1], name=row[2])), from_row(DriftStatus, row[3:])) for row in rows
        ]

    def open_drift(self) -> dict[SinkAddress, int]:
        """Return, by sink, the number of keys that differed at the last check, if findings without a reaction remain."""
        with self._view() as connection:
            rows = connection.execute(SQL["drift_open"]).fetchall()
        return {SinkAddress(workspace=workspace, by=by, name=name): keys for workspace, by, name, keys in rows}

    def unexplained(self, pipelines: Collection[str], *, after: tuple[int, str] = START, limit: int) -> UnexplainedPage:
        """Return the unexplained entries of the sinks of ``pipelines``."""
        with self._view() as connection:
            return unexplained_page(connection, pipelines, after=after, limit=limit)

    def ownership(self, sink: SinkAddress) -> SinkOwnership | None:
        """Return the ownership of a sink; None if it is not adopted. The cost is independent of the sink's size."""
        with self._view() as connection:
            row = connection.execute(SQL["sink_ownership"], (sink.workspace, sink.by, sink.name)).fetchone()
        return None if row is None else from_row(SinkOwnership, row)

    def unexplained_of(self, sink: SinkAddress) -> int:
        """Return the number of unexplained entries of a sink. Reads all its entries."""
        with self._view() as connection:
            row = connection.execute(SQL["sink_id"], (sink.workspace, sink.by, sink.name)).fetchone()
            return 0 if row is None else unexplained_count(connection, row[0])

    def doubts(self) -> list[str]:
        """Return the addresses of sinks that may have content unknown to the state file."""
        with self._view() as connection:
            return [str(address) for address in _doubts(connection)]

    def origins(self, key: str) -> list[EntryOrigin]:
        """Return the origins of this key's entries, at most one for each sink."""
        with self._view() as connection:
            rows = connection.execute(SQL["origins"], (key,)).fetchall()
        return [
            from_row(
                EntryOrigin,
                row,
                removed=bool(row[5]),
                pending=bool(row[6]),
                facts=json.loads(row[11] or "{}"),
                rejected=bool(row[13]),
            )
            for row in rows
        ]

    def former_values(self, key: str) -> list[FormerValue]:
        """Return the former values of this key in all sinks, the newest first."""
        with self._view() as connection:
            return read_former(connection, key)

    def history(self, pipeline: str, partition: str) -> History | None:
        """Return the history of a partition; None if the pipeline never had it."""
        with self._view() as connection:
            return history(connection, pipeline, partition)

    def past_runs(self, pipeline: str, *, limit: int) -> list[PastRun]:
        """Return runs of the partitions that were read last, the newest first."""
        with self._view() as connection:
            return past_runs(connection, pipeline, limit)

    def held_differences(self, run: int, *, after: str = "", limit: int) -> list[HeldDifference]:
        """Return the entries that a held run would create or change, with keys greater than ``after``, ordered by key."""
        with self._view() as connection:
            rows = connection.execute(SQL["held_differences"], {"run": run, "after": after, "limit": limit})
            return [from_row(HeldDifference, row) for row in rows]

    def rollback_pipelines(self, selection: RunSelection) -> set[str]:
        """Return the pipelines of the runs that a rollback would undo.

        Raises:
            NotRolledBack: see `rollback_plan`.
        """
        with self._view() as connection:
            return {run.pipeline for run in select(connection, selection).runs}

    def rollback_plan(self, selection: RunSelection) -> Rollback:
        """Return the changes that a rollback would make now. Reads all entries.

        Raises:
            NotRolledBack: there is no such run or sink, or the run has delivered nothing.
        """
        with self._view() as connection:
            return plan_rollback(connection, selection)

    def cursors(self, pipeline: str, partitions: Sequence[str] = ()) -> list[StoredCursor]:
        """Return the cursors of the named ``partitions`` (empty: of all that the source still has), ordered by name."""
        with self._view() as connection:
            return read_cursors(connection, pipeline, partitions)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    @contextmanager
    def _view(self) -> Iterator[sqlite3.Connection]:
        """Open a read transaction: one snapshot of the mirror."""
        with self._guard:
            self._connection.execute("BEGIN")
            try:
                yield self._connection
            finally:
                self._connection.execute("ROLLBACK")


def _blockers(connection: sqlite3.Connection) -> dict[SinkAddress, LaneBlocker]:
    return {
        SinkAddress(workspace=workspace, by=by, name=name): from_row(LaneBlocker, blocker)
        for workspace, by, name, *blocker in connection.execute(SQL["blockers"])
    }


def _doubts(connection: sqlite3.Connection) -> dict[SinkAddress, str]:
    return {
        SinkAddress(workspace=workspace, by=by, name=name): reason
        for _, workspace, by, name, _, reason in connection.execute(SQL["doubts"])
    }


def _read_rejections(connection: sqlite3.Connection, ids: Sequence[int]) -> list[Rejection]:
    rows = connection.execute(SQL["rejections_read"], (json.dumps(ids),))
    return [
        from_row(Rejection, row, removal=bool(row[11]), record=msgspec.json.decode(row[14]), retried=bool(row[18]))
        for row in rows
    ]


def _attempt(row: Sequence[Any]) -> DeliveryAttempt | None:
    return None if row[0] is None else from_row(DeliveryAttempt, row)


def _last_run(connection: sqlite3.Connection, run: int) -> dict[str, Any]:
    """Return the members of a pipeline's status that describe its last run."""
    identity, started, *counts, failure, rejected, unchanged = connection.execute(SQL["status_run"], (run,)).fetchone()
    found: dict[str, Any] = {
        "last_run_at": started,
        "last_run": from_row(RunSummary, (identity, *counts), collided=False),
        "failure": failure,
        "failure_rejected": bool(failure and rejected),
        "unchanged": bool(unchanged),
    }
    reading = connection.execute(SQL["status_reading"], (run,)).fetchone() if unchanged else None
    if reading is not None:
        identity, started, *counts = reading
        found |= {"reading": from_row(RunSummary, (identity, *counts), collided=False), "read_at": started}
    return found
