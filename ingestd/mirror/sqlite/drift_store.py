"""The store of drift checks: comparison of sinks with the mirror, findings, repair and adoption."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import ParamSpec, TypeVar

import polars as pl

from ingestd.mirror.drift import Answer, DriftStatus, RemoveUnexplained
from ingestd.mirror.sqlite.adoption import keep_as_delivered, queue_again
from ingestd.mirror.sqlite.comparison import Comparison
from ingestd.mirror.sqlite.connection import StateFile
from ingestd.mirror.sqlite.entry_writer import ADOPTED, remove_entries, write_rows
from ingestd.mirror.sqlite.ownership import unexplained_count, unexplained_of
from ingestd.mirror.sqlite.segments import queue
from ingestd.mirror.sqlite.snapshots import load_snapshot
from ingestd.mirror.sqlite.sql import SQL
from ingestd.mirror.sqlite.status_store import checked
from ingestd.mirror.sqlite.threads import in_thread

P = ParamSpec("P")
T = TypeVar("T")

_PAGE = 5_000

_OURS = {
    "key": pl.String, "what": pl.String, "value": pl.String, "data_type": pl.String, "partition": pl.Int64,
    "row_hash": pl.Int64,
    "found": pl.String, "found_type": pl.String,
}  # fmt: skip
_THEIRS = {"key": pl.String, "value": pl.String, "data_type": pl.String}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Check:
    sink: int
    comparison: Comparison


class DriftStore:
    """Implements `ingestd.mirror.drift.DriftKeeper` over a state file.

    ``opened``: the partitions that the sources have named since the start. ``watched``: the sinks of running checks, shared with
    the delivery, which removes a sink that the service has lost.
    """

    def __init__(
        self,
        state: StateFile,
        *,
        now: Callable[[], float],
        claimed_segments: Collection[int],
        opened: Collection[int],
        watched: set[int],
        announce: Callable[[int], None],
    ) -> None:
        self._state = state
        self._now = now
        self._claimed = claimed_segments
        self._opened = opened
        self._watched = watched
        self._announce = announce
        self._ids = count(1)
        self._checks: dict[int, _Check] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="mirror-drift")

    async def begin_check(self, sink: int) -> int:
        """See `DriftKeeper.begin_check`."""
        return await self._in(self._begin, sink)

    async def show(self, check: int, entries: pl.DataFrame) -> None:
        """See `DriftKeeper.show`."""
        await self._in(self._checks[check].comparison.show, entries)

    async def end_check(
        self, check: int, *, unexplained: RemoveUnexplained = "keep", doubt: bool = False
    ) -> DriftStatus:
        """See `DriftKeeper.end_check`."""
        return await self._in(self._end, check, unexplained, doubt)

    async def abandon_check(self, check: int, failure: str) -> None:
        """See `DriftKeeper.abandon_check`."""
        await self._in(self._abandon, check, failure)

    async def repair(self, sink: int, pipelines: Collection[str], *, remove_added: bool) -> int:
        """See `DriftKeeper.repair`."""
        return await self._in(self._repair, sink, pipelines, remove_added)

    async def adopt_drift(self, sink: int, pipelines: Collection[str]) -> int:
        """See `DriftKeeper.adopt_drift`."""
        return await self._in(self._adopt, sink, pipelines)

    def close(self) -> None:
        """Finish the running work and close unfinished checks."""
        self._thread.shutdown()
        for check in self._checks.values():
            check.comparison.close()

    # ------------------------------------------------------------------------------------------------ in the thread

    async def _in(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await in_thread(self._thread, call, *args, **kwargs)

    def _begin(self, sink: int) -> int:
        with self._state.writing() as connection:
            connection.execute(SQL["gone_clear"], (sink,))
            newest = connection.execute(SQL["newest_segment"]).fetchone()[0]
            held = [segment for (segment,) in connection.execute(SQL["pending_segments"], (sink,))]
            # Within the transaction, so that no acknowledged removal is missed.
            self._watched.add(sink)
        check = next(self._ids)
        comparison = Comparison(self._state.reader(), sink=sink, newest=newest, held=held)
        self._checks[check] = _Check(sink=sink, comparison=comparison)
        return check

    def _end(self, check: int, unexplained: RemoveUnexplained, doubt: bool) -> DriftStatus:
        ended = self._checks.pop(check)
        sink, comparison, swept, repaired = ended.sink, ended.comparison, 0, 0
        try:
            counts = comparison.compare()
            with self._state.writing() as connection:
                if sink not in self._watched:
                    connection.execute(SQL["drift_failed"], (sink, self._now(), _LOST))
                else:
                    at = self._now()
                    found = ((sink, *row, at, at) for row in comparison.findings())
                    connection.executemany(SQL["drift_keep"], found)
                    connection.execute(SQL["drift_over"], (sink, at))
                    changed = ((value, kind, sink, key) for value, kind, key in comparison.changed_unnamed())
                    connection.executemany(SQL["stranger_says"], changed)
                    vanished = ((sink, key) for (key,) in comparison.vanished_unnamed())
                    connection.executemany(SQL["stranger_vanished"], vanished)
                    connection.execute(SQL["dropped_forget"], {"sink": sink})
                    if doubt and connection.execute(SQL["doubt_of_sink"], (sink,)).fetchone():
                        repaired = self._end_doubt(connection, sink)
                    swept = self._sweep(connection, sink, comparison.unexplained(unexplained))
                    numbers = {
                        "added": counts.added,
                        "changed": counts.changed,
                        "removed": counts.removed,
                        "unexplained": unexplained_count(connection, sink),
                    }
                    connection.execute(
                        SQL["drift_checked"], {"sink": sink, "at": at, "entries": counts.entries, **numbers}
                    )
                self._watched.discard(sink)
                connection.execute(SQL["gone_clear"], (sink,))
                status = checked(connection.execute(SQL["drift_check_get"], (sink,)).fetchone())
        finally:
            self._watched.discard(sink)
            comparison.close()
        if swept or repaired:
            self._announce(sink)
        return replace(status, swept=swept, repaired=repaired)

    def _end_doubt(self, connection: sqlite3.Connection, sink: int) -> int:
        """End the check of a sink whose state file may be outdated: send again the entries that its sources confirm.

        If the partition of a value is gone from the source (an archived file), the value may be older than the service's; it
        remains a finding. Keys unknown to this state file may come from the newer one.
        """
        names = json.dumps([name for (name,) in connection.execute(SQL["pipeline_names"])])
        repaired = self._send_again(connection, sink, names, confirmed=True)
        after = ""
        while rows := connection.execute(SQL["drift_theirs"], (sink, after, _PAGE)).fetchall():
            page = pl.DataFrame(rows, schema=_THEIRS, orient="row").with_columns(pl.col("data_type").fill_null(""))
            keep_as_delivered(connection, sink, page)
            after = rows[-1][0]
        connection.execute(SQL["drift_forget_added"], (sink,))
        connection.execute(SQL["sink_adopted"], {"sink": sink, "at": self._now(), "earlier": 1})
        connection.execute(SQL["pipelines_unread_of_sink"], (sink,))
        connection.execute(SQL["doubt_over"], (sink,))
        return repaired

    def _sweep(self, connection: sqlite3.Connection, sink: int, keys: Iterable[str]) -> int:
        """Make the removal of unexplained entries pending, except entries that a source has named since the comparison."""
        swept = 0
        chosen = iter(keys)
        while page := list(islice(chosen, _PAGE)):
            if still := unexplained_of(connection, sink, page):
                swept += remove_entries(
                    connection,
                    still,
                    sink=sink,
                    partition=ADOPTED,
                    run=0,
                    claimed_segments=self._claimed,
                    any_partition=True,
                )
        return swept

    def _abandon(self, check: int, failure: str) -> None:
        ended = self._checks.pop(check)
        ended.comparison.close()
        with self._state.writing() as connection:
            self._watched.discard(ended.sink)
            connection.execute(SQL["gone_clear"], (ended.sink,))
            connection.execute(SQL["drift_failed"], (ended.sink, self._now(), failure))

    def _repair(self, sink: int, pipelines: Collection[str], remove_added: bool) -> int:
        with self._state.writing() as connection:
            repaired = self._send_again(connection, sink, json.dumps(list(pipelines)), confirmed=False)
            after = ""
            while remove_added and (rows := connection.execute(SQL["drift_theirs"], (sink, after, _PAGE)).fetchall()):
                page = pl.DataFrame(rows, schema=_THEIRS, orient="row").with_columns(pl.col("data_type").fill_null(""))
                gone = page.with_columns(
                    pl.lit(None, dtype=pl.String).alias("value"),
                    pl.lit(0).alias("row_hash"),
                    pl.lit(None, dtype=pl.Int64).alias("position"),
                )
                for segment, piece in queue(
                    connection, sink=sink, partition=ADOPTED, kind="delete", entries=gone, over={}
                ):
                    write_rows(connection, piece, sink=sink, segment=segment, removed=True, partition=ADOPTED, run=0)
                _answer(connection, sink, "removed again", page)
                repaired, after = repaired + page.height, rows[-1][0]
        if repaired:
            self._announce(sink)
        return repaired

    def _send_again(self, connection: sqlite3.Connection, sink: int, names: str, *, confirmed: bool) -> int:
        """Queue the differing entries of some pipelines; ``confirmed``: only those with a record in their source."""
        repaired, after = 0, ""
        standing: dict[int, pl.Series | None] = {}
        while rows := connection.execute(SQL["drift_ours"], (sink, names, after, _PAGE)).fetchall():
            page = pl.DataFrame(rows, schema=_OURS, orient="row")
            after = rows[-1][0]
            if confirmed:
                page = self._confirmed(connection, page, standing)
            queue_again(connection, sink, "update", page.filter(pl.col("what") == "changed"))
            queue_again(connection, sink, "create", page.filter(pl.col("what") == "removed"))
            _answer(connection, sink, "sent again", page)
            repaired += page.height
        return repaired

    def _confirmed(
        self, connection: sqlite3.Connection, page: pl.DataFrame, standing: dict[int, pl.Series | None]
    ) -> pl.DataFrame:
        """Return the entries of partitions named since the start, with a record in the last whole reading.

        ``standing``: row hashes by partition, kept from page to page; None for a partition without a whole reading.
        """
        kept = []
        for (partition,), group in page.group_by("partition", maintain_order=True):
            identity = int(str(partition))
            if identity not in self._opened:
                continue
            if identity not in standing:
                read_whole = connection.execute(SQL["partition_read_whole"], (identity,)).fetchone()[0]
                standing[identity] = (
                    load_snapshot(connection, identity).reinterpret(signed=True) if read_whole else None
                )
            hashes = standing[identity]
            kept.append(group if hashes is None else group.filter(pl.col("row_hash").is_in(hashes.implode())))
        return pl.concat(kept) if kept else page.clear()

    def _adopt(self, sink: int, pipelines: Collection[str]) -> int:
        adopted, after, names = 0, "", json.dumps(list(pipelines))
        with self._state.writing() as connection:
            while rows := connection.execute(SQL["drift_ours"], (sink, names, after, _PAGE)).fetchall():
                page = pl.DataFrame(rows, schema=_OURS, orient="row")
                changed = page.filter(pl.col("what") == "changed").select("found", "found_type", pl.lit(sink), "key")
                connection.executemany(SQL["entries_adopt_value"], changed.iter_rows())
                removed = page.filter(pl.col("what") == "removed")["key"]
                connection.executemany(SQL["entries_adopt_removal"], ((sink, key) for key in removed))
                _answer(connection, sink, "adopted", page)
                adopted, after = adopted + page.height, rows[-1][0]
            after = ""
            while rows := connection.execute(SQL["drift_theirs"], (sink, after, _PAGE)).fetchall():
                page = pl.DataFrame(rows, schema=_THEIRS, orient="row").with_columns(pl.col("data_type").fill_null(""))
                keep_as_delivered(connection, sink, page)
                _answer(connection, sink, "adopted", page)
                adopted, after = adopted + page.height, rows[-1][0]
        return adopted


def _answer(connection: sqlite3.Connection, sink: int, answer: Answer, page: pl.DataFrame) -> None:
    connection.execute(SQL["drift_answer"], (answer, sink, json.dumps(page["key"].to_list())))


_LOST = "The service lost the sink during the check; all its entries are sent again."
