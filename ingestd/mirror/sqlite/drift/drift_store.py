"""The store of drift checks: comparison of sinks with the mirror, findings, repair and adoption."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from typing import Literal, TypeAlias

import msgspec
import polars as pl
from msgspec.structs import replace

from ingestd.core.guard import Guard
from ingestd.mirror.drift import DriftReaction, DriftStatus, RemoveUnexplained
from ingestd.mirror.sqlite.drift.comparison import Comparison
from ingestd.mirror.sqlite.drift.confirmation import confirmed_entries
from ingestd.mirror.sqlite.entries.adoption import PendingFound, follow_service, keep_as_delivered, queue_again
from ingestd.mirror.sqlite.entries.claimed_segments import ClaimedSegments
from ingestd.mirror.sqlite.entries.entry_rows import write_rows
from ingestd.mirror.sqlite.entries.entry_writer import ADOPTED, Removed, remove_entries
from ingestd.mirror.sqlite.entries.former_values import keep_former, keep_found
from ingestd.mirror.sqlite.entries.ownership import doubt_other_addresses, unexplained_of
from ingestd.mirror.sqlite.entries.segments import queue
from ingestd.mirror.sqlite.entries.target import WriteTarget
from ingestd.mirror.sqlite.pages import pages
from ingestd.mirror.sqlite.rows import from_row
from ingestd.mirror.sqlite.sql import SQL
from ingestd.mirror.sqlite.state_file.connection import StateFile
from ingestd.mirror.sqlite.threads import threaded

_PAGE = 5_000

_NAMED = {
    "key": str, "what": str, "value": str, "data_type": str, "partition": int, "row_hash": int, "found": str, "found_type": str,
}  # fmt: skip
_ADDED = {"key": str, "value": str, "data_type": str}


class _Check(msgspec.Struct, frozen=True, kw_only=True):
    sink: int
    comparison: Comparison


class DriftStore:
    """Checks sinks. Async; one check at a time for each sink. If a crash interrupts a check, the check has no result.

    ``opened``: the replayable partitions that the sources have named since the start. ``watched``: the sinks of running checks;
    the delivery shares this set, and removes a sink from it when the service has lost the sink.
    """

    def __init__(
        self,
        state: StateFile,
        *,
        now: Callable[[], float],
        claimed_segments: ClaimedSegments,
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

    @threaded("_thread")
    def show(self, check: int, entries: pl.DataFrame) -> None:
        """Add a chunk of the service's content.

        Columns: ``key``, ``value`` (may be null), ``data_type`` (null: unknown). Optional columns: ``author``: the account that
        created the entry and made its last update; null if two accounts did this. ``changed_by``: the account of the last
        update, if ``author`` is null. ``changed_at``: the time of the last update, as text.
        """
        self._checks[check].comparison.show(entries)

    def close(self) -> None:
        """Finish the running work and close unfinished checks."""
        self._thread.shutdown()
        for check in self._checks.values():
            check.comparison.close()

    @threaded("_thread")
    def begin_check(self, sink: int) -> int:
        """Begin a check: from now on, record the acknowledged removals of the sink. Return the check's id."""
        self._in_windows(sink, "gone", "gone_clear")
        with self._state.writing() as connection:
            newest = connection.execute(SQL["newest_segment"]).fetchone()[0]
            held = [segment for (segment,) in connection.execute(SQL["pending_segments"], (sink,))]
            # The sink is added within the transaction, so that no acknowledged removal is missed.
            self._watched.add(sink)
        check = next(self._ids)
        comparison = Comparison(self._state.reader(), sink=sink, newest=newest, held=held)
        self._checks[check] = _Check(sink=sink, comparison=comparison)
        return check

    @threaded("_thread")
    def end_check(
        self,
        check: int,
        *,
        unexplained: RemoveUnexplained = "keep",
        guards: Collection[Guard] = (),
        doubt: bool = False,
    ) -> DriftStatus:
        """Compare the complete content with the mirror, and replace the findings of the earlier check.

        ``unexplained``: which unexplained entries to remove. ``own`` selects entries of a source that its pipeline no longer
        reads. If an earlier state file of this daemon wrote the sink and all explained entries have one author, ``own`` also
        selects this author's unexplained entries, unless one of ``guards`` would hold their removal. ``doubt``: the mirror may
        not know everything that was sent to the sink. Differing entries are then sent again if a source has named them since
        the start, and keys unknown to the mirror become unexplained.

        If the service lost the sink during the check, the status has a ``failure`` and the findings are discarded.

        Each page of findings is compared with the mirror and written in one transaction; the last transaction makes the check
        valid. After a crash, the next check replaces the findings and repeats the other steps.
        """
        ended = self._checks.pop(check)
        sink, comparison, swept, repaired = ended.sink, ended.comparison, 0, 0
        try:
            counts = comparison.compare()
            at = self._now()
            try:
                self._keep_findings(sink, comparison, at)
                self._in_windows(sink, "dropped", "dropped_forget")
                if doubt:
                    repaired = self._end_doubt(sink, comparison, is_read=unexplained != "keep")
                swept = self._sweep(sink, comparison.unexplained(unexplained, guards, counts.entries))
                numbers = {
                    "entries": counts.entries,
                    "added": counts.added,
                    "changed": counts.changed,
                    "removed": counts.removed,
                    "unexplained": comparison.unexplained_count(),
                }
                with self._watching(sink) as connection:
                    connection.execute(SQL["drift_checked"], {"sink": sink, "at": at, **numbers})
                    status = from_row(DriftStatus, connection.execute(SQL["drift_check_get"], (sink,)).fetchone())
                    self._watched.discard(sink)
            except _SinkLost:
                with self._state.writing() as connection:
                    connection.execute(SQL["drift_failed"], (sink, self._now(), _LOST))
                    status = from_row(DriftStatus, connection.execute(SQL["drift_check_get"], (sink,)).fetchone())
        finally:
            self._watched.discard(sink)
            comparison.close()
        self._in_windows(sink, "gone", "gone_clear")
        undecided = comparison.is_undecided and status.unexplained > 0
        return replace(status, swept=swept, repaired=repaired, undecided=undecided)

    def _target(self, connection: sqlite3.Connection, sink: int) -> WriteTarget:
        return WriteTarget(
            connection=connection, sink=sink, partition=ADOPTED, run=0, claimed=self._claimed, at=self._now()
        )

    @contextmanager
    def _watching(self, sink: int) -> Iterator[sqlite3.Connection]:
        """Open a write transaction for a sink that is being checked.

        Raises:
            _SinkLost: the service has lost the sink since the check began.
        """
        with self._state.writing() as connection:
            if sink not in self._watched:
                raise _SinkLost
            yield connection

    def _in_windows(
        self, sink: int, table: Literal["drift", "dropped", "gone"], statement: str, **parameters: object
    ) -> None:
        """Execute a statement for all keys of a sink in a table, one page of keys in each transaction."""
        after = ""
        while True:
            with self._state.writing() as connection:
                until = connection.execute(SQL[f"{table}_until"], (sink, after, _PAGE)).fetchone()[0]
                if until is None:
                    return
                connection.execute(SQL[statement], {"sink": sink, "after": after, "until": until, **parameters})
            after = until

    def _keep_findings(self, sink: int, comparison: Comparison, at: float) -> None:
        """Replace the findings of the earlier check. Update entries that no source has named to the service's values."""
        for page in pages(comparison.findings(), _PAGE):
            with self._watching(sink) as connection:
                connection.executemany(SQL["drift_keep"], ((sink, *row, at, at) for row in page))
        self._in_windows(sink, "drift", "drift_over", at=at)
        for changed in pages(comparison.changed_unnamed(), _PAGE):
            with self._watching(sink) as connection:
                connection.executemany(
                    SQL["unnamed_follow"], ((value, kind, sink, key) for value, kind, key in changed)
                )
        for vanished in pages(comparison.vanished_unnamed(), _PAGE):
            with self._watching(sink) as connection:
                connection.executemany(SQL["unnamed_vanished"], ((sink, key) for (key,) in vanished))

    def _end_doubt(self, sink: int, comparison: Comparison, *, is_read: bool) -> int:
        """If the sink is in doubt, send the entries again that the sources confirm. Return the number of these entries.

        A sink is in doubt after its state file was replaced by an older state file. If the source no longer has the partition
        of a value (an archived file), the value may be older than the service's value. The difference then remains a finding.
        Keys unknown to this state file may come from the newer state file. ``is_read``: every source was read completely, so no
        source explains an unknown key.
        """
        with self._watching(sink) as connection:
            if (doubt := connection.execute(SQL["doubt_of_sink"], (sink,)).fetchone()) is None:
                return 0
            # The adoption is recorded first, so that no key of the newer state file counts as unexplained before the sources
            # are read again.
            is_earlier = not doubt_other_addresses(connection, sink, at=self._now())
            connection.execute(SQL["sink_adopted"], {"sink": sink, "at": self._now(), "earlier": int(is_earlier)})
            if not is_read:
                connection.execute(SQL["pipelines_unread_of_sink"], (sink,))
            names = json.dumps([name for (name,) in connection.execute(SQL["pipeline_names"])])
        if doubt[0] is not None:
            self._follow_newer(sink, comparison, since=doubt[0], newest=doubt[1])
        repaired = self._send_again(sink, names, confirmed=True)
        self._for_added(sink, keep_as_delivered)
        self._in_windows(sink, "drift", "drift_forget_added")
        with self._watching(sink) as connection:
            connection.execute(SQL["doubt_over"], (sink,))
        return repaired

    def _follow_newer(self, sink: int, comparison: Comparison, *, since: float, newest: int) -> None:
        """Adopt values of pending entries that the service changed after ``since``, unless a source confirms the entries.

        A newer state file has sent the adopted values. A source that can't be read again, or has a held run, names no newer
        value. Entries in segments after ``newest`` stay: sources named them after the restoration, for example by a push.
        """
        snapshots: dict[int, pl.Series | None] = {}
        newer = (row for row in comparison.pending() if row.segment <= newest and row.changed_at > since)
        for page in pages(newer, _PAGE):
            with self._watching(sink) as connection:
                found = pl.DataFrame(page, schema=PendingFound._fields, orient="row", infer_schema_length=None)
                confirmed = set(confirmed_entries(connection, found, self._opened, snapshots)["key"])
                follow_service(self._target(connection, sink), [row for row in page if row.key not in confirmed])

    def _sweep(self, sink: int, keys: Iterable[str]) -> int:
        """Make the removal of unexplained entries pending, except entries that a source has named meanwhile."""
        swept = 0
        for page in pages(keys, _PAGE):
            with self._watching(sink) as connection:
                still = unexplained_of(connection, sink, page)
                removed = (
                    remove_entries(self._target(connection, sink), still, any_partition=True)
                    if still
                    else Removed(removed=0, updated=0)
                )
            if removed.removed or removed.updated:
                self._announce(sink)
            swept += removed.removed
        return swept

    @threaded("_thread")
    def abandon_check(self, check: int, failure: str) -> None:
        """End an incomplete check. The findings of the earlier check remain."""
        ended = self._checks.pop(check)
        ended.comparison.close()
        with self._state.writing() as connection:
            self._watched.discard(ended.sink)
            connection.execute(SQL["drift_failed"], (ended.sink, self._now(), failure))
        self._in_windows(ended.sink, "gone", "gone_clear")

    @threaded("_thread")
    def repair(self, sink: int, pipelines: Collection[str], *, remove_added: bool) -> int:
        """Make the changed and removed entries of ``pipelines`` pending again. Return the number of pending changes.

        ``remove_added``: also remove keys that other programs added.
        """
        repaired = self._send_again(sink, json.dumps(list(pipelines)), confirmed=False)
        return repaired + self._for_added(sink, self._remove_again) if remove_added else repaired

    def _remove_again(self, connection: sqlite3.Connection, sink: int, page: pl.DataFrame) -> None:
        keep_found(connection, page.select("key", "value", "data_type"), sink=sink, at=self._now(), ending="removed")
        gone = page.with_columns(
            pl.lit(None, dtype=pl.String).alias("value"),
            pl.lit(0).alias("row_hash"),
            pl.lit(None, dtype=pl.Int64).alias("position"),
        )
        location = {"sink": sink, "partition": ADOPTED, "run": 0}
        for segment, piece in queue(connection, **location, kind="delete", entries=gone, over={}):
            write_rows(connection, piece, **location, segment=segment, removed=True, is_new=False)
        _set_reaction(connection, sink, "removed again", page)

    def _send_again(self, sink: int, names: str, *, confirmed: bool) -> int:
        """Queue the differing entries of the pipelines ``names``. Return the number of queued entries.

        ``confirmed``: queue only entries that a source confirms; see `confirmed_entries`.
        """
        repaired = 0
        snapshots: dict[int, pl.Series | None] = {}

        def send(connection: sqlite3.Connection, sink: int, found: pl.DataFrame) -> None:
            nonlocal repaired
            page = confirmed_entries(connection, found, self._opened, snapshots) if confirmed else found
            changed = page.filter(pl.col("what") == "changed")
            foreign = changed.select("key", pl.col("found").alias("value"), pl.col("found_type").alias("data_type"))
            keep_found(connection, foreign, sink=sink, at=self._now())
            sent = page.select("key", "value", "data_type", "what")
            queue_again(connection, sink, "update", sent.filter(pl.col("what") == "changed"))
            queue_again(connection, sink, "create", sent.filter(pl.col("what") == "removed"))
            _set_reaction(connection, sink, "sent again", page)
            repaired += page.height

        self._for_named(sink, names, send)
        return repaired

    def _for_named(self, sink: int, names: str, do: _Do) -> int:
        """Call ``do`` for the findings about entries of the pipelines ``names``. Return the number of findings."""
        return self._for_pages(sink, lambda after: ("drift_named", (sink, names, after, _PAGE)), _NAMED, do)

    def _for_added(self, sink: int, do: _Do) -> int:
        """Call ``do`` for added keys that no source has named since the check. Return the number of keys."""

        def typed(connection: sqlite3.Connection, sink: int, page: pl.DataFrame) -> None:
            do(connection, sink, page.with_columns(pl.col("data_type").fill_null("")))

        return self._for_pages(sink, lambda after: ("drift_added", (sink, after, _PAGE)), _ADDED, typed)

    def _for_pages(
        self, sink: int, ask: Callable[[str], tuple[str, tuple[object, ...]]], schema: Mapping[str, type], do: _Do
    ) -> int:
        """Call ``do`` for all findings without a reaction, sorted by key, one page in each transaction.

        Other writers can run between two pages; obsolete findings are skipped. After a crash, the remaining findings still have
        no reaction.
        """
        count, after = 0, ""
        while True:
            with self._state.writing() as connection:
                statement, parameters = ask(after)
                rows = connection.execute(SQL[statement], parameters).fetchall()
                if not rows:
                    return count
                do(connection, sink, pl.DataFrame(rows, schema=schema, orient="row"))
            self._announce(sink)
            count, after = count + len(rows), rows[-1][0]

    @threaded("_thread")
    def adopt_drift(self, sink: int, pipelines: Collection[str]) -> int:
        """Accept the service's values for entries of ``pipelines`` and for added keys. Return the number of accepted values.

        An accepted value remains until the entry's record is mapped again.
        """
        adopted = self._for_named(sink, json.dumps(list(pipelines)), self._adopt_named)
        return adopted + self._for_added(sink, _adopt_added)

    def _adopt_named(self, connection: sqlite3.Connection, sink: int, page: pl.DataFrame) -> None:
        keep_former(self._target(connection, sink), page["key"].to_list(), "adopted")
        changed = page.filter(pl.col("what") == "changed").select("found", "found_type", pl.lit(sink), "key")
        connection.executemany(SQL["entries_adopt_value"], changed.iter_rows())
        removed = page.filter(pl.col("what") == "removed")["key"]
        connection.executemany(SQL["entries_adopt_removal"], ((sink, key) for key in removed))
        _set_reaction(connection, sink, "adopted", page)


_Do: TypeAlias = "Callable[[sqlite3.Connection, int, pl.DataFrame], None]"
"""Changes the mirror for a page of findings of a sink, inside a write transaction."""


def _adopt_added(connection: sqlite3.Connection, sink: int, page: pl.DataFrame) -> None:
    keep_as_delivered(connection, sink, page)
    _set_reaction(connection, sink, "adopted", page)


class _SinkLost(Exception):
    """The service has lost the sink that is being checked."""


def _set_reaction(connection: sqlite3.Connection, sink: int, reaction: DriftReaction, page: pl.DataFrame) -> None:
    connection.execute(SQL["drift_set_reaction"], (reaction, sink, json.dumps(page["key"].to_list())))


_LOST = "The service lost the sink during the check; all its entries are sent again."
