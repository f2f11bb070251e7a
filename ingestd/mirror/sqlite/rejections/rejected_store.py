"""The store of rejections: retry, drop, and deletion by the configured limits.

Selected ids are in a temporary table and not in Python's memory.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager

import msgspec
import polars as pl

from ingestd.mirror.rejections import Retried, Selection
from ingestd.mirror.row_hashes import RowHashes
from ingestd.mirror.sqlite.entries.adoption import queue_again
from ingestd.mirror.sqlite.entries.entry_rows import write_rows
from ingestd.mirror.sqlite.entries.segments import queue
from ingestd.mirror.sqlite.entries.snapshots import load_snapshot, store_snapshot
from ingestd.mirror.sqlite.rejections.rejected_rows import select_rejected
from ingestd.mirror.sqlite.sql import SQL
from ingestd.mirror.sqlite.state_file.connection import StateFile
from ingestd.mirror.sqlite.threads import threaded

_PAGE = 5_000

_ENTRY = {
    "key": str, "value": str, "data_type": str, "removed": int, "partition": int,
    "run": int, "row_hash": int,
}  # fmt: skip


class RejectedStore:
    """Changes rejections. Async; a method returns when its effect is durable.

    ``announce`` is called with the id of a sink that has new pending entries.
    """

    def __init__(self, state: StateFile, *, now: Callable[[], float], announce: Callable[[int], None]) -> None:
        self._state = state
        self._now = now
        self._announce = announce
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="mirror-rejected")

    def close(self) -> None:
        """Finish the running work."""
        self._thread.shutdown()

    @threaded("_thread")
    def retry(self, selection: Selection) -> Retried:
        """Retry the selected rejections.

        Refused entries are pending again, unchanged. A record remains rejected until a reading that began after this call has
        mapped it again. This reading begins at the start of the partition, and maps only the retried records.
        """
        partitions: dict[int, str] = {}
        records = entries = 0
        for chosen in self._pages(selection):
            with chosen as connection:
                partitions |= dict(connection.execute(SQL["chosen_partitions"]).fetchall())
                records += connection.execute(SQL["chosen_mark_retried"]).rowcount
                requeued, sinks = _requeue_chosen(connection)
            entries += requeued
            for sink in sinks:
                self._announce(sink)
        for partition in partitions:
            self._request_partition(partition)
        return Retried(records=records, entries=entries, pipelines=tuple(sorted(set(partitions.values()))))

    def _request_partition(self, partition: int) -> None:
        """Make the next reading map the marked records of a partition. Call it after all selected records are marked.

        A reading that has already begun does not map the records. A read connection lists their hashes. No record is marked in
        the meantime, because only this thread marks records.
        """
        with closing(self._state.reader()) as reader:
            retries = reader.execute(SQL["partition_retries"], (partition,)).fetchone()[0]
            marked = _retried_hashes(reader, partition, since=retries)
        with self._state.writing() as connection:
            connection.execute(SQL["partition_add_retry"], (partition,))
            _reopen(connection, partition, marked)

    @threaded("_thread")
    def drop(self, selection: Selection) -> int:
        """Delete the selected rejections and return their number.

        Their values are not delivered until the source changes or the whole partition is read again. A dropped entry that is
        missing in the service is not drift.
        """
        count = 0
        for chosen in self._pages(selection):
            with chosen as connection:
                count += _drop_chosen(connection)
        return count

    @threaded("_thread")
    def bound(self, *, keep_seconds: float | None, keep_rows: int | None) -> int:
        """Delete rejections older than ``keep_seconds``, and the oldest beyond ``keep_rows``. Return the number deleted."""
        now, count = self._now(), 0
        while True:
            with self._state.writing() as connection:
                _reset_chosen(connection)
                if keep_seconds is not None:
                    connection.execute(SQL["chosen_old"], (now - keep_seconds, _PAGE))
                if keep_rows is not None:
                    beyond = connection.execute(SQL["rejected_total"]).fetchone()[0] - keep_rows
                    connection.execute(SQL["chosen_oldest"], (min(max(beyond, 0), _PAGE),))
                dropped = _drop_chosen(connection)
                if dropped:
                    connection.execute(SQL["bounded_add"], (dropped, now))
            if not dropped:
                return count
            count += dropped

    def _pages(self, selection: Selection) -> Iterator[AbstractContextManager[sqlite3.Connection]]:
        """Yield a transaction for each page of the selection, with the page's ids in ``temp.chosen``.

        Other writers can run between two pages. After a crash, the rejections of the other pages are unchanged.
        """
        after: int | None = 0
        newest: int | None = None
        while after is not None:
            page = _Page(self._state, selection, after=after, newest=newest)
            yield page.writing()
            after, newest = page.last, page.newest


class _Page(msgspec.Struct):
    """A page of a selection.

    ``newest``: the newest rejection when the first page was selected; later rejections are not selected. ``last``: the last id
    of the page; None if this is the last page.
    """

    state: StateFile
    selection: Selection
    after: int
    newest: int | None
    last: int | None = None

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        statement, parameters = select_rejected(self.selection, after=self.after, limit=_PAGE)
        with self.state.writing() as connection:
            _reset_chosen(connection)
            newest = self.newest
            if newest is None:
                newest = self.newest = connection.execute(SQL["rejected_newest"]).fetchone()[0]
            ids = [row for row in connection.execute(statement, parameters).fetchall() if row[0] <= newest]
            connection.executemany(SQL["chosen_add"], ids)
            self.last = ids[-1][0] if len(ids) == _PAGE else None
            yield connection


def reopen(connection: sqlite3.Connection, partition: int, *, since: int) -> None:
    """Make the next reading start at the partition's beginning and map the records retried after ``since`` retries.

    In a snapshot partition, only the retried records are mapped: their hashes are removed from the hashes of the last reading.
    """
    if connection.execute(SQL["partition_retries"], (partition,)).fetchone()[0] > since:
        _reopen(connection, partition, _retried_hashes(connection, partition, since=since))


def _reopen(connection: sqlite3.Connection, partition: int, marked: pl.Series) -> None:
    connection.execute(SQL["partition_reopen"], (partition,))
    before = load_snapshot(connection, partition)
    snapshot = before.filter(~before.is_in(marked.implode()))
    if snapshot.len() < before.len():
        store_snapshot(connection, partition, RowHashes.of(snapshot))


def _retried_hashes(connection: sqlite3.Connection, partition: int, *, since: int) -> pl.Series:
    """Return the row hashes of the partition's records that were marked for a retry later than the retry ``since``."""
    cursor = connection.execute(SQL["retried_hashes"], (partition, since))
    pages = [pl.Series([], dtype=pl.Int64)]
    while rows := cursor.fetchmany(_PAGE * 10):
        pages.append(pl.Series([row[0] for row in rows], dtype=pl.Int64))
    return pl.concat(pages).reinterpret(signed=False)


def _reset_chosen(connection: sqlite3.Connection) -> None:
    """Create or empty ``temp.chosen``."""
    connection.execute(SQL["chosen_begin"])
    connection.execute(SQL["chosen_clear"])


def _drop_chosen(connection: sqlite3.Connection) -> int:
    connection.execute(SQL["chosen_remember_dropped"])
    connection.execute(SQL["chosen_drop_refusals"])
    return connection.execute(SQL["chosen_drop"]).rowcount


def _requeue_chosen(connection: sqlite3.Connection) -> tuple[int, set[int]]:
    """Make the selected entries pending again and return their number and their sinks.

    If an entry is already pending with another value, only its rejection is deleted.
    """
    rows = connection.execute(SQL["chosen_entries"]).fetchall()
    connection.execute(SQL["rejected_drop"], (json.dumps([row[0] for row in rows]),))
    by_sink: dict[int, list[tuple[object, ...]]] = {}
    for _, sink, key, value, data_type, removed, partition, run, row_hash, known, waits in rows:
        # A rejected removal has no row. If the key has a row, another record has named the key since.
        if not waits and bool(known) != bool(removed):
            by_sink.setdefault(sink, []).append((key, value, data_type, removed, partition, run, row_hash))
    for sink, found in by_sink.items():
        _requeue(connection, sink, pl.DataFrame(found, schema=_ENTRY, orient="row"))
    return sum(map(len, by_sink.values())), set(by_sink)


def _requeue(connection: sqlite3.Connection, sink: int, entries: pl.DataFrame) -> None:
    """Queue entries of a sink. Their refusal was an acknowledgement, so none of their older values is pending or claimed."""
    ordered = entries.sort("key")
    # The service may not have the key; an update of a missing key becomes a create.
    queue_again(connection, sink, "update", ordered.filter(pl.col("removed") == 0).select("key", "value", "data_type"))
    gone = ordered.filter(pl.col("removed") == 1).with_columns(pl.lit(None, dtype=pl.Int64).alias("position"))
    for (partition, run), group in gone.group_by("partition", "run", maintain_order=True):
        # The row of a removal was deleted when its refusal was acknowledged.
        location = {"sink": sink, "partition": int(str(partition)), "run": int(str(run))}
        for segment, piece in queue(connection, **location, kind="delete", entries=group, over={}):
            write_rows(connection, piece, **location, segment=segment, removed=True, is_new=False)
