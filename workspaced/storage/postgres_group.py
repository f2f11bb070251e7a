"""How PostgreSQL makes a group of work durable: one transaction with savepoints, and, for who is in another's way, one alone.

The pieces of a group hold rows until its commit, in whatever order they came. So that two processes never wait for each
other, a piece that joins a group waits only briefly for a row that somebody else holds: else its part is undone, and it
gets a transaction to itself, after the group's. Alone it takes what it needs in the order that all slices keep.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

import psycopg

from workspaced.problems import Unavailable
from workspaced.storage.group_commit import Outcome, Work
from workspaced.storage.postgres import REPEATABLE, Connection, PostgresTransaction, Undone, as_problem, transaction

_RETRIES = 3
_PAUSE_SECONDS = 0.02
# Less than the second after which PostgreSQL looks for deadlocks.
_SHARED_WAIT = "SET LOCAL lock_timeout = '20ms'"


class PostgresGroup:
    """`perform` is what `workspaced.storage.group_commit.GroupCommit` is given. One connection, opened when it is needed."""

    def __init__(self, connect: Callable[[], Connection], *, chance: Callable[[], float] = random.random) -> None:
        """``connect`` raises Unavailable where it can't."""
        self._connect = connect
        self._chance = chance
        self._open: Connection | None = None

    def close(self) -> None:
        """Give the connection up."""
        if self._open:
            self._open.close()

    def perform(self, works: Sequence[Work]) -> list[Outcome]:
        """Every outcome, after the commits.

        Raises:
            Unavailable: the database can't be reached, is full, or was lost; nobody's work is known to be kept.
        """
        outcomes: list[Outcome | None] = [None] * len(works)
        if len(works) > 1:
            try:
                outcomes = self._together(works)
            except Undone:
                outcomes = [None] * len(works)
        away: Unavailable | None = None
        for place, work in enumerate(works):
            if outcomes[place] is None:
                try:
                    outcomes[place] = (None, away) if away else self._alone(work)
                except Unavailable as problem:  # no use in trying it once more for each of the others
                    away = problem
                    outcomes[place] = (None, problem)
        return [outcome or (None, None) for outcome in outcomes]

    def _together(self, works: Sequence[Work]) -> list[Outcome | None]:
        """None for a piece that is to be done alone."""
        connection = self._connection()
        outcomes: list[Outcome | None] = []
        with transaction(connection, write=True) as shared:
            for place, work in enumerate(works):
                if place == 1:
                    connection.execute(_SHARED_WAIT)
                outcomes.append(_attempt(work, shared, connection))
        return outcomes

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
                time.sleep(self._chance() * _PAUSE_SECONDS * 2**attempt)
        return None, as_problem(last)

    def _connection(self) -> Connection:
        if self._open is None or self._open.closed:
            self._open = self._connect()
        return self._open


def _attempt(work: Work, shared: PostgresTransaction, connection: Connection) -> Outcome | None:
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
