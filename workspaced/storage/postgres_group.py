"""How PostgreSQL makes a group of work durable: one transaction with savepoints, and, for who is in another's way, one alone.

Each statement is a way to the server and back, so a group begins without savepoints: a piece that fails before it touched
anything (404, 409) leaves nothing to undo. If one fails later, all is undone and done once more, with a savepoint each.

The pieces of a group hold rows until its commit, in whatever order they came. So that two processes never wait for each
other, a piece that joins a group waits only briefly for a row that somebody else holds: else its part is undone, and it
gets a transaction to itself, after the group's. Alone it takes what it needs in the order that all slices keep.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from itertools import count

import psycopg

from workspaced.core.problems import UnavailableProblem
from workspaced.storage.batchable import Outcome, Work, run_batches
from workspaced.storage.postgres import REPEATABLE, Connection, PostgresTransaction, Undone, as_problem, transaction

_RETRIES = 3
_PAUSE_SECONDS = 0.02
# So many groups have savepoints after one that had to be done twice: what was in the way is likely to be there still.
_CAREFUL_GROUPS = 20
# Less than the second after which PostgreSQL looks for deadlocks.
_SHARED_WAIT = "SET LOCAL lock_timeout = '20ms'"


class _HalfDone(Exception):
    """A piece of a group failed, and what it did can't be told from what the others did."""


class PostgresGroup:
    """`perform` is what `workspaced.storage.group_commit.GroupCommit` is given. One connection, opened when it is needed."""

    def __init__(self, connect: Callable[[], Connection], *, jitter: Callable[[], float] = random.random) -> None:
        """``connect`` raises Unavailable where it can't."""
        self._connect = connect
        self._jitter = jitter
        self._open: Connection | None = None
        self._careful = 0

    def close(self) -> None:
        """Give the connection up."""
        if self._open:
            self._open.close()

    def perform(self, works: Sequence[Work]) -> list[Outcome]:
        """Every outcome, after the commits.

        Raises:
            UnavailableProblem: the database can't be reached, is full, or was lost; nobody's work is known to be kept.
        """
        outcomes: list[Outcome | None] = [None] * len(works)
        if len(works) > 1:
            try:
                outcomes = self._grouped(works)
            except Undone:
                outcomes = [None] * len(works)
        away: UnavailableProblem | None = None
        for place, work in enumerate(works):
            if outcomes[place] is None:
                try:
                    outcomes[place] = (None, away) if away else self._alone(work)
                except UnavailableProblem as problem:  # no use in trying it once more for each of the others
                    away = problem
                    outcomes[place] = (None, problem)
        return [outcome or (None, None) for outcome in outcomes]

    def _grouped(self, works: Sequence[Work]) -> list[Outcome | None]:
        """None for a piece that is to be done alone."""
        if self._careful == 0:
            try:
                return self._together(works, _hopeful)
            except _HalfDone:
                self._careful = _CAREFUL_GROUPS
        self._careful -= 1
        return self._together(works, _guarded)

    def _together(
        self, works: Sequence[Work], attempt: Callable[[Work, PostgresTransaction, Connection], Outcome | None]
    ) -> list[Outcome | None]:
        connection = self._connection()
        with transaction(connection, write=True) as shared:
            begun = count()

            def made(work: Work) -> Outcome | None:
                if next(begun) == 1:
                    connection.execute(_SHARED_WAIT)
                return attempt(work, shared, connection)

            return run_batches(works, made)

    def _alone(self, work: Work) -> Outcome:
        """As often as may be, as long as others come between."""
        last: Exception = RuntimeError("there was no attempt")
        for attempt in range(1 + _RETRIES):
            connection = self._connection()
            try:
                with transaction(connection, write=True) as tx:
                    return work(tx), None
            except Undone as undone:
                last = undone.reason
            except Exception as error:  # noqa: BLE001  raised again at the caller
                return None, error
            if not connection.closed:
                time.sleep(self._jitter() * _PAUSE_SECONDS * 2**attempt)
        return None, as_problem(last)

    def _connection(self) -> Connection:
        if self._open is None or self._open.closed:
            self._open = self._connect()
        return self._open


def _hopeful(work: Work, shared: PostgresTransaction, connection: Connection) -> Outcome | None:
    """Without a savepoint.

    Raises:
        _HalfDone: the work failed after it may have changed something, or in a way that ended the transaction.
    """
    touched, mark = shared.touched, shared.mark()
    try:
        return work(shared), None
    except psycopg.Error as error:
        if connection.closed:
            raise
        raise _HalfDone from error
    except Exception as error:
        if shared.touched != touched:
            raise _HalfDone from error
        shared.forget(mark)
        return None, error


def _guarded(work: Work, shared: PostgresTransaction, connection: Connection) -> Outcome | None:
    try:
        with shared.nested():
            return work(shared), None
    except psycopg.Error as error:
        if connection.closed:
            raise
        if isinstance(error, (*REPEATABLE, psycopg.errors.LockNotAvailable)):
            return None
        return None, as_problem(error)
    except Exception as error:  # noqa: BLE001  raised again at the caller
        return None, error
