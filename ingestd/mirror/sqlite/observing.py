"""Looking at a mirror: numbers for status, and where a value came from."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ingestd.core.address import SinkAddress
from ingestd.mirror.port import Attempt, Origin, PipelineStatus, Rejection, RunSummary, SinkStatus
from ingestd.mirror.sqlite.sql import SQL


class Observer:
    """Implements `ingestd.mirror.port.Observable` over a reading connection; may be used from several threads."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._guard = threading.Lock()

    def sinks(self) -> list[SinkStatus]:
        """See `Observable.sinks`."""
        with self._view() as connection:
            rows = connection.execute(SQL["status_sinks"]).fetchall()
        return [
            SinkStatus(
                address=SinkAddress(workspace=workspace, by=by, name=name),
                sink_id=sink_id,
                entries=entries,
                pending=pending,
                rejected=rejected,
                last_attempt=_attempt(last),
            )
            for workspace, by, name, sink_id, entries, pending, rejected, *last in rows
        ]

    def pipelines(self) -> list[PipelineStatus]:
        """See `Observable.pipelines`."""
        with self._view() as connection:
            rows = connection.execute(SQL["status_pipelines"]).fetchall()
            runs = {
                run: connection.execute(SQL["status_run"], (run,)).fetchone() for *_, run in rows if run is not None
            }
        return [_pipeline(name, partitions, rejected, runs.get(run)) for name, partitions, rejected, run in rows]

    def pending(self) -> int:
        """See `Observable.pending`."""
        with self._view() as connection:
            count: int = connection.execute(SQL["pending_total"]).fetchone()[0]
        return count

    def rejected(self) -> int:
        """See `Observable.rejected`."""
        with self._view() as connection:
            count: int = connection.execute(SQL["rejected_total"]).fetchone()[0]
        return count

    def rejections(self, *, limit: int) -> list[Rejection]:
        """See `Observable.rejections`."""
        with self._view() as connection:
            rows = connection.execute(SQL["rejections"], (limit,)).fetchall()
        return [
            Rejection(
                id=row[0], subject=row[1], pipeline=row[2] or "", partition=row[3] or "", position=row[4], field=row[5],
                key=row[6] or "", reason=row[7], status=row[8], record=json.loads(row[9]), at=row[10],
            )
            for row in rows
        ]  # fmt: skip

    def origins(self, key: str) -> list[Origin]:
        """See `Observable.origins`."""
        with self._view() as connection:
            rows = connection.execute(SQL["origins"], (key,)).fetchall()
        return [
            Origin(
                workspace=row[0], sink=row[1], key=row[2], value=row[3], data_type=row[4], removed=bool(row[5]),
                pending=bool(row[6]), position=row[7], pipeline=row[8] or "", partition=row[9] or "", read_at=row[10],
                facts=json.loads(row[11] or "{}"),
            )
            for row in rows
        ]  # fmt: skip

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()

    @contextmanager
    def _view(self) -> Iterator[sqlite3.Connection]:
        """One moment of the mirror."""
        with self._guard:
            self._connection.execute("BEGIN")
            try:
                yield self._connection
            finally:
                self._connection.execute("ROLLBACK")


def _attempt(row: list[object]) -> Attempt | None:
    if row[0] is None:
        return None
    operation, items, status, milliseconds, outcome, sentence = row
    return Attempt(
        operation=str(operation), items=int(str(items)), status=None if status is None else int(str(status)),
        milliseconds=float(str(milliseconds)), outcome=str(outcome), sentence=str(sentence),
    )  # fmt: skip


def _pipeline(name: str, partitions: int, rejected: int, run: tuple[object, ...] | None) -> PipelineStatus:
    if run is None:
        return PipelineStatus(
            name=name, partitions=partitions, last_run_at=None, last_run=None, rejected=rejected, failure=""
        )
    identity, started, _, *numbers, failure = run
    records, created, updated, unchanged, removed, parked = (int(str(number)) for number in numbers)
    summary = RunSummary(
        id=int(str(identity)), records=records, created=created, updated=updated, unchanged=unchanged, removed=removed,
        rejected=parked, collided=False,
    )  # fmt: skip
    return PipelineStatus(
        name=name, partitions=partitions, last_run_at=float(str(started)), last_run=summary, rejected=rejected,
        failure=str(failure),
    )  # fmt: skip
