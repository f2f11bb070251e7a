"""How SQLite makes a group of work durable: one transaction, in which each piece has a savepoint of its own."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Sequence

from workspaced.storage.group_commit import Outcome, Work
from workspaced.storage.sqlite import SqliteTransaction, as_problem, transaction


class SqliteGroup:
    """`perform` is what `workspaced.storage.group_commit.GroupCommit` is given."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        *,
        announce: Callable[[Collection[str]], None] = lambda _channels: None,
    ) -> None:
        """``announce`` is handed the channels that a commit notified."""
        self._connection = connection
        self._announce = announce

    def perform(self, works: Sequence[Work]) -> list[Outcome]:
        """Every outcome, after the commit.

        Raises:
            Unavailable: SQLite could not; nobody's work is kept.
        """
        with transaction(self._connection, write=True) as shared:
            outcomes = [self._attempt(work, shared) for work in works] if len(works) > 1 else [(works[0](shared), None)]
        if shared.notified:
            self._announce(shared.notified)
        return outcomes

    def _attempt(self, work: Work, shared: SqliteTransaction) -> Outcome:
        try:
            with shared.nested():
                return work(shared), None
        except sqlite3.OperationalError as error:
            if not self._connection.in_transaction:
                raise  # SQLite gave up the whole transaction: nobody's work is kept
            return None, as_problem(error)
        except Exception as error:  # noqa: BLE001  raised again at the caller
            return None, error
