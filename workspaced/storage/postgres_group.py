"""Make a group of work durable on PostgreSQL, in one transaction. If another process locks a row, the work is done later.

Each statement is a round trip, so a group begins without savepoints. A piece that fails before it changed anything (404, 409)
leaves nothing to undo. If a piece fails after a change, the group is undone and repeated, with a savepoint for each piece.

The pieces of a group lock rows in any order, until the commit of the group. To prevent deadlocks between processes, a piece of
a group waits only briefly for a locked row. If the row stays locked, all pieces of the same kind are undone. They are repeated
after the group in a separate transaction, which locks rows in a fixed order: workspace, block or sink, contents.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Sequence
from itertools import count

import psycopg

from workspaced.core.problems import UnavailableProblem
from workspaced.storage.batchable import Outcome, PartialChange, Work, places_by_kind, run_batches
from workspaced.storage.postgres import REPEATABLE, PostgresTransaction, RolledBack, as_problem, transaction
from workspaced.storage.postgres_connection import PostgresConnection

_RETRIES = 3
_PAUSE_SECONDS = 0.02
# After a group was repeated, this many groups use savepoints. The cause of the repetition probably still exists.
_CAREFUL_GROUPS = 20
# This time is shorter than the `deadlock_timeout` of PostgreSQL, which is 1 s by default.
_SHARED_WAIT = "SET LOCAL lock_timeout = '20ms'"
# A frozen process keeps its locks while its machine still acknowledges TCP packets, so its session is ended. If the process was
# only slow, it repeats the work in a new session.
_END_STALLED = b"""
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE application_name = current_setting('application_name') AND datname = current_database() AND usename = current_user
  AND backend_xid IS NOT NULL AND wait_event = 'ClientRead'
  AND greatest(state_change, query_start) < clock_timestamp() - current_setting('lock_timeout')::interval / 2
"""


class PostgresGroup:
    """Performs the work that `workspaced.storage.group_commit.GroupCommit` collects.

    It uses one connection, which is opened on demand.
    """

    def __init__(
        self,
        connect: Callable[[], PostgresConnection],
        *,
        announce: Callable[[Collection[str]], None],
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """``connect`` raises UnavailableProblem if it fails; ``jitter`` returns random numbers from 0 to 1.

        ``announce`` is called with the channels that a commit notified.
        """
        self._connect = connect
        self._announce = announce
        self._jitter = jitter
        self._open: PostgresConnection | None = None
        self._careful = 0

    def close(self) -> None:
        """Close the connection."""
        if self._open:
            self._open.close()

    def perform(self, works: Sequence[Work]) -> list[Outcome]:
        """Return all outcomes, after the commits.

        Raises:
            UnavailableProblem: the database is unreachable, full, or was lost; whether work was committed is not known.
        """
        outcomes: list[Outcome | None] = [None] * len(works)
        if len(works) > 1:
            try:
                outcomes = self._grouped(works)
            except RolledBack:
                outcomes = [None] * len(works)
            self._regroup(works, outcomes)
        unavailable: UnavailableProblem | None = None
        for index, work in enumerate(works):
            if outcomes[index] is None:
                try:
                    outcomes[index] = (None, unavailable) if unavailable else self._alone(work)
                except UnavailableProblem as problem:  # the remaining work has the same problem
                    unavailable = problem
                    outcomes[index] = (None, problem)
        return [outcome or (None, None) for outcome in outcomes]

    def _grouped(self, works: Sequence[Work]) -> list[Outcome | None]:
        """Return the outcomes; None for a piece that must be done alone."""
        if self._careful == 0:
            try:
                return self._run_in_transaction(works, _without_savepoint)
            except PartialChange:
                self._careful = _CAREFUL_GROUPS
        self._careful -= 1
        return self._run_in_transaction(works, _with_savepoint)

    def _regroup(self, works: Sequence[Work], outcomes: list[Outcome | None]) -> None:
        """Do the work that has no outcome yet, with a separate transaction for each kind of work."""
        left = [place for place, outcome in enumerate(outcomes) if outcome is None]
        for kind in places_by_kind([works[place] for place in left]):
            places = [left[at] for at in kind]
            if len(places) == 1:
                continue
            try:
                done = self._run_in_transaction([works[place] for place in places], _with_savepoint)
            except RolledBack:  # then each piece is done alone
                continue
            except UnavailableProblem as problem:
                if self._ended_stalled(problem):
                    continue
                done = [(None, problem)] * len(places)
            for place, outcome in zip(places, done, strict=True):
                outcomes[place] = outcome

    def _run_in_transaction(
        self, works: Sequence[Work], attempt: Callable[[Work, PostgresTransaction, PostgresConnection], Outcome | None]
    ) -> list[Outcome | None]:
        connection = self.connection()
        with transaction(connection, write=True) as tx:
            begun = count()

            def attempted(work: Work) -> Outcome | None:
                if next(begun) == 1:
                    tx.later(_SHARED_WAIT)
                return attempt(work, tx, connection)

            outcomes = run_batches(works, attempted)
        self._announce(tx.notified)
        return outcomes

    def _alone(self, work: Work) -> Outcome:
        """Do one piece; repeat it a few times if concurrent changes interfere."""
        last: Exception = RuntimeError("there was no attempt")
        for attempt in range(1 + _RETRIES):
            connection = self.connection()
            try:
                with transaction(connection, write=True) as tx:
                    result = work(tx)
            except RolledBack as rolled_back:
                last = rolled_back.reason
            except Exception as error:  # noqa: BLE001  raised again at the caller
                if attempt == _RETRIES or not self._ended_stalled(error):
                    return None, error
            else:
                self._announce(tx.notified)
                return result, None
            if not connection.closed:
                time.sleep(self._jitter() * _PAUSE_SECONDS * 2**attempt)
        return None, as_problem(last)

    def _ended_stalled(self, error: Exception) -> bool:
        """If a row stayed locked, end the sessions of the service that have an open transaction and a stalled process.

        Return whether a session was ended.
        """
        if not isinstance(error.__cause__, psycopg.errors.LockNotAvailable):
            return False
        try:
            ended = self.connection().execute(_END_STALLED).fetchone()
        except (psycopg.Error, UnavailableProblem):
            return False  # the caller reports the original error
        return ended is not None and ended[0] > 0

    def connection(self) -> PostgresConnection:
        """Return the open connection; open one on demand. Raises UnavailableProblem: it can't be opened."""
        if self._open is None or self._open.closed:
            self._open = self._connect()
        return self._open


def _without_savepoint(work: Work, tx: PostgresTransaction, connection: PostgresConnection) -> Outcome | None:
    """Do one piece; raise PartialChange if it failed after a change, or with an error that ended the transaction."""
    touched, deferred = tx.touched, tx.deferred()
    try:
        return work(tx), None
    except psycopg.Error as error:
        if connection.closed:
            raise
        raise PartialChange from error
    except Exception as error:
        if tx.touched != touched:
            raise PartialChange from error
        tx.discard(deferred)
        return None, error


def _with_savepoint(work: Work, tx: PostgresTransaction, connection: PostgresConnection) -> Outcome | None:
    try:
        with tx.nested():
            return work(tx), None
    except psycopg.Error as error:
        if connection.closed:
            raise
        if isinstance(error, (*REPEATABLE, psycopg.errors.LockNotAvailable)):
            return None
        return None, as_problem(error)
    except Exception as error:  # noqa: BLE001  raised again at the caller
        return None, error
