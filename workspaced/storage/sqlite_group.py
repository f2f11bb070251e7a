"""How SQLite makes a group of work durable: in one transaction, of which each piece can fail alone.

Savepoints would cost every piece two statements for the sake of the few that fail. A piece that fails before it changed
anything (404, 409) leaves nothing to undo. If one fails later, the whole group is undone and done once more, with them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Sequence

from workspaced.storage.batchable import Outcome, Work, run_batches
from workspaced.storage.sqlite import SqliteTransaction, as_problem, transaction


class _HalfDone(Exception):
    """A piece of a group failed after it had changed something."""


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
        if len(works) == 1:
            return self._shared(lambda shared: [(works[0](shared), None)])
        try:
            return self._shared(lambda shared: run_batches(works, lambda work: self._attempt(work, shared)))
        except _HalfDone:
            return self._shared(lambda shared: [self._guarded(work, shared) for work in works])

    def _shared(self, make: Callable[[SqliteTransaction], list[Outcome]]) -> list[Outcome]:
        with transaction(self._connection, write=True) as shared:
            outcomes = make(shared)
        if shared.notified:
            self._announce(shared.notified)
        return outcomes

    def _attempt(self, work: Work, shared: SqliteTransaction) -> Outcome:
        """Without a savepoint.

        Raises:
            _HalfDone: the work failed after it had changed something.
        """
        changes, deferred = self._connection.total_changes, shared.deferred
        try:
            return work(shared), None
        except Exception as error:
            if not self._connection.in_transaction:
                raise  # SQLite gave up the whole transaction: nobody's work is kept
            if self._connection.total_changes != changes:
                raise _HalfDone from error
            shared.forget(deferred)
            return None, _told(error)

    def _guarded(self, work: Work, shared: SqliteTransaction) -> Outcome:
        try:
            with shared.nested():
                return work(shared), None
        except Exception as error:
            if not self._connection.in_transaction:
                raise
            return None, _told(error)


def _told(error: Exception) -> Exception:
    return as_problem(error) if isinstance(error, sqlite3.OperationalError) else error
