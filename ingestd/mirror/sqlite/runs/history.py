"""The history of a partition; see `ingestd.mirror.reports`."""

from __future__ import annotations

import json
import sqlite3

from ingestd.mirror.port import RunSummary
from ingestd.mirror.reports import History, PastRun
from ingestd.mirror.sqlite.rows import from_row
from ingestd.mirror.sqlite.sql import SQL


def history(connection: sqlite3.Connection, pipeline: str, partition: str) -> History | None:
    """Return the history of a partition; see `Observer.history`."""
    known = connection.execute(SQL["history_partition"], (pipeline, partition)).fetchone()
    if known is None:
        return None
    identity, cursor, last_run, seen_at, acknowledged_at, pending, rejected = known
    last: tuple[int, float, float | None, str] | None = None
    if last_run is not None:
        last = connection.execute(SQL["history_run"], (last_run,)).fetchone()
    found = connection.execute(SQL["history_reading"], (identity,)).fetchone()
    facts = json.loads(found[9]) if found else {}
    before = content_before(connection, found[0], facts.get("file.sha256", "")) if found else None
    unchanged = found and last is not None and last[0] > found[0] and last[2] is not None and not last[3]
    return History(
        pipeline=pipeline,
        name=partition,
        cursor=json.loads(cursor) if cursor else None,
        reading=from_row(RunSummary, found[:8], collided=False) if found else None,
        seen_at=seen_at,
        read_at=found[8] if found else 0,
        ended_at=found[10] if found else 0,
        acknowledged_at=acknowledged_at,
        facts=facts,
        same_as=before[0] if before else "",
        again_at=last[1] if unchanged and last is not None else 0,
        failure=last[3] if last is not None else "",
        failed_at=last[1] if last is not None and last[3] else 0,
        pending=pending,
        rejected=rejected,
    )


def content_before(connection: sqlite3.Connection, run: int, sha256: str) -> tuple[str, float] | None:
    """Return the last partition of the run's pipeline that had this content before the run, and its reading time; else None."""
    if not sha256:
        return None
    found = connection.execute(SQL["content_before"], {"run": run, "sha256": sha256}).fetchone()
    return (found[0], found[1]) if found else None


_PARTITIONS = 50
_RUNS_OF_PARTITION = 20


def past_runs(connection: sqlite3.Connection, pipeline: str, limit: int) -> list[PastRun]:
    """Return the newest runs of a pipeline; see `Observer.past_runs`."""
    found: list[PastRun] = []
    for partition, name in connection.execute(SQL["partitions_newest"], (pipeline, _PARTITIONS)).fetchall():
        for row in connection.execute(SQL["runs_newest"], (partition, _RUNS_OF_PARTITION)):
            identity, started, ended, *counts, failure, unchanged = row
            summary = from_row(RunSummary, (identity, *counts), collided=False)
            found.append(
                PastRun(
                    partition=name,
                    started=started,
                    ended=ended,
                    summary=summary,
                    failure=failure,
                    unchanged=bool(unchanged),
                )
            )
    return sorted(found, key=lambda run: run.summary.id, reverse=True)[:limit]
