"""Make a group of work durable on PostgreSQL: in one transaction, or alone if a lock of another process is in the way.

Each statement is a round trip, so a group begins without savepoints. A piece that fails before it changed anything (404, 409)
leaves nothing to undo. If one fails later, the group is undone and repeated, with a savepoint for each piece.

The pieces of a group lock rows until its commit, in any order. To prevent that two processes wait for each other, a piece of a
group waits only briefly for a locked row. If the row stays locked, the piece is undone, and done after the group in its own
transaction. There it locks rows in the order of all resources: the workspace, then its block or sink, then the contents.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from itertools import count

import psycopg

from workspaced.core.problems import UnavailableProblem
from workspaced.storage.batchable import Outcome, PartialChange, Work, run_batches
from workspaced.storage.postgres import REPEATABLE, Connection, PostgresTransaction, RolledBack, as_problem, transaction

_RETRIES = 3
_PAUSE_SECONDS = 0.02
# How many groups use savepoints after a group that had to be repeated: the cause is likely to exist still.
_CAREFUL_GROUPS = 20
# Shorter than the `deadlock_timeout` of PostgreSQL, which is 1 s by default.
_SHARED_WAIT = "SET LOCAL lock_timeout = '20ms'"


class PostgresGroup:
    """Performs the work that `workspaced.storage.group_commit.GroupCommit` collects.

    It uses one connection, which is opened on demand.
    """

    def __init__(self, connect: Callable[[], Connection], *, jitter: Callable[[], float] = random.random) -> None:
        """``connect`` raises UnavailableProblem if it fails; ``jitter`` returns random numbers from 0 to 1."""
        self._connect = connect
        self._jitter = jitter
        self._open: Connection | None = None
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
        unavailable: UnavailableProblem | None = None
        for index, work in enumerate(works):
            if outcomes[index] is None:
                try:
                    outcomes[index] = (None, unavailable) if unavailable else self._alone(work)
                except UnavailableProblem as problem:  # it applies to the remaining work, too
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

    def _run_in_transaction(
        self, works: Sequence[Work], attempt: Callable[[Work, PostgresTransaction, Connection], Outcome | None]
    ) -> list[Outcome | None]:
        connection = self._connection()
        with transaction(connection, write=True) as tx:
            begun = count()

            def attempted(work: Work) -> Outcome | None:
                if next(begun) == 1:
                    connection.execute(_SHARED_WAIT)
                return attempt(work, tx, connection)

            return run_batches(works, attempted)

    def _alone(self, work: Work) -> Outcome:
        """Do one piece; repeat it a few times if concurrent changes interfere."""
        last: Exception = RuntimeError("there was no attempt")
        for attempt in range(1 + _RETRIES):
            connection = self._connection()
            try:
                with transaction(connection, write=True) as tx:
                    return work(tx), None
            except RolledBack as rolled_back:
                last = rolled_back.reason
            except Exception as error:  # noqa: BLE001  raised again at the caller
                return None, error
            if not connection.closed:
                time.sleep(self._jitter() * _PAUSE_SECONDS * 2**attempt)
        return None, as_problem(last)

    def _connection(self) -> Connection:
        if self._open is None or self._open.closed:
            self._open = self._connect()
        return self._open


def _without_savepoint(work: Work, tx: PostgresTransaction, connection: Connection) -> Outcome | None:
    """Do one piece; raise PartialChange if it failed after a change, or in a way that ended the transaction."""
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


def _with_savepoint(work: Work, tx: PostgresTransaction, connection: Connection) -> Outcome | None:
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
