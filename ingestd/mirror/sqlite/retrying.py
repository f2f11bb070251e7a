"""Working with what is parked: put back, dropped, or forgotten because the configuration bounds it.

Whatever its number, what was chosen goes through a temporary table of ids and not through Python.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import polars as pl

from ingestd.mirror.port import Kind
from ingestd.mirror.rejections import Retried, Selection
from ingestd.mirror.sqlite.connection import StateFile
from ingestd.mirror.sqlite.observing import said
from ingestd.mirror.sqlite.segments import queue
from ingestd.mirror.sqlite.snapshots import load_snapshot, store_snapshot
from ingestd.mirror.sqlite.sql import SQL
from ingestd.mirror.sqlite.writing import write_rows

_PAGE = 5_000

_ENTRY = {
    "key": pl.String, "value": pl.String, "data_type": pl.String, "removed": pl.Int64, "partition": pl.Int64,
    "run": pl.Int64, "row_hash": pl.Int64,
}  # fmt: skip


class RejectedSide:
    """Implements `ingestd.mirror.rejections.RejectionKeeper` over a state file. ``announce``: something became pending."""

    def __init__(self, state: StateFile, *, now: Callable[[], float], announce: Callable[[], None]) -> None:
        self._state = state
        self._now = now
        self._announce = announce
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="mirror-rejected")

    async def retry(self, selection: Selection) -> Retried:
        """See `RejectionKeeper.retry`."""
        return await asyncio.shield(asyncio.wrap_future(self._thread.submit(self._retry, selection)))

    async def drop(self, selection: Selection) -> int:
        """See `RejectionKeeper.drop`."""
        return await asyncio.shield(asyncio.wrap_future(self._thread.submit(self._drop, selection)))

    async def bound(self, *, keep_seconds: float | None, keep_rows: int | None) -> int:
        """See `RejectionKeeper.bound`."""
        return await asyncio.shield(asyncio.wrap_future(self._thread.submit(self._bound, keep_seconds, keep_rows)))

    def close(self) -> None:
        """Wait for what is under way."""
        self._thread.shutdown()

    def _retry(self, selection: Selection) -> Retried:
        with self._state.writing() as connection, _chosen(connection, selection):
            partitions = connection.execute(SQL["chosen_partitions"]).fetchall()
            records = 0
            for partition, _ in partitions:
                retries = connection.execute(SQL["partition_asked"], (partition,)).fetchone()[0]
                asked = {"partition": partition, "retries": retries}
                records += connection.execute(SQL["chosen_ask"], asked).rowcount
                reopen(connection, partition, since=retries - 1)
            entries = _requeue_chosen(connection)
        if entries:
            self._announce()
        return Retried(records=records, entries=entries, pipelines=tuple(sorted({name for _, name in partitions})))

    def _drop(self, selection: Selection) -> int:
        with self._state.writing() as connection, _chosen(connection, selection):
            return _drop_chosen(connection)

    def _bound(self, keep_seconds: float | None, keep_rows: int | None) -> int:
        with self._state.writing() as connection, _chosen(connection, None):
            if keep_seconds is not None:
                connection.execute(SQL["chosen_old"], (self._now() - keep_seconds,))
            if keep_rows is not None:
                connection.execute(SQL["chosen_beyond"], (keep_rows,))
            count = _drop_chosen(connection)
            if count:
                connection.execute(SQL["bounded_add"], (count, self._now()))
        return count


def reopen(connection: sqlite3.Connection, partition: int, *, since: int) -> None:
    """Let the next reading take the partition from its start and map what was asked for after ``since`` retries.

    Of a snapshot partition only that: its hashes are taken out of those of the last reading.
    """
    if connection.execute(SQL["partition_retries"], (partition,)).fetchone()[0] <= since:
        return
    connection.execute(SQL["partition_reopen"], (partition,))
    snapshot = load_snapshot(connection, partition)
    cursor = connection.execute(SQL["retried_hashes"], (partition, since))
    before = snapshot.len()
    while rows := cursor.fetchmany(_PAGE * 10):
        asked = pl.Series([row[0] for row in rows], dtype=pl.Int64).reinterpret(signed=False)
        snapshot = snapshot.filter(~snapshot.is_in(asked.implode()))
    if snapshot.len() < before:
        store_snapshot(connection, partition, snapshot)


@contextmanager
def _chosen(connection: sqlite3.Connection, selection: Selection | None) -> Iterator[None]:
    """While the context is open, ``temp.chosen`` holds the ids that are meant; None: none yet."""
    connection.execute(SQL["chosen_begin"])
    if selection is not None:
        connection.executemany(
            SQL["chosen_add"], connection.cursor().execute(SQL["rejected_selected"], said(selection))
        )
    yield
    connection.execute(SQL["chosen_end"])


def _drop_chosen(connection: sqlite3.Connection) -> int:
    connection.execute(SQL["chosen_remember_dropped"])
    connection.execute(SQL["chosen_drop_refusals"])
    return connection.execute(SQL["chosen_drop"]).rowcount


def _requeue_chosen(connection: sqlite3.Connection) -> int:
    """Make the chosen entries pending again; one that waits already, being something else by now, just is no longer parked."""
    after, count = 0, 0
    while rows := connection.execute(SQL["chosen_entries"], (after, _PAGE)).fetchall():
        after = rows[-1][0]
        connection.execute(SQL["rejected_drop"], (json.dumps([row[0] for row in rows]),))
        by_sink: dict[int, list[tuple[object, ...]]] = {}
        for _, sink, key, value, data_type, removed, partition, run, row_hash, known, waits in rows:
            # A removal stands for a row that went; if there is one again, it is another's.
            if not waits and bool(known) != bool(removed):
                by_sink.setdefault(sink, []).append((key, value, data_type, removed, partition, run, row_hash))
        for sink, found in by_sink.items():
            _requeue(connection, sink, pl.DataFrame(found, schema=_ENTRY, orient="row"))
            count += len(found)
    return count


def _requeue(connection: sqlite3.Connection, sink: int, entries: pl.DataFrame) -> None:
    """Nothing of these keys is pending or out: a refusal has settled them, so no older value is waited for."""
    ordered = entries.sort("key")
    for (partition, removed, run), group in ordered.group_by("partition", "removed", "run", maintain_order=True):
        # Whether the service has heard of a refused entry is not known; an update of a key it lacks becomes a create.
        kind: Kind = "delete" if removed else "update"
        place = int(str(partition))
        for segment, piece in queue(connection, sink=sink, partition=place, kind=kind, entries=group, over={}):
            if removed:
                # The row of an entry that was to be removed went when its refusal was settled.
                rows = piece.with_columns(pl.lit(None, dtype=pl.Int64).alias("position"))
                write_rows(
                    connection, rows, sink=sink, segment=segment, removed=True, partition=place, run=int(str(run))
                )
            else:
                connection.execute(SQL["entries_point"], (segment, sink, json.dumps(piece["key"].to_list())))
