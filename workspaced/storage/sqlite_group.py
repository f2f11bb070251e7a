"""Make a group of work durable on SQLite, in one transaction, in which each piece can fail alone.

A savepoint costs each piece two statements, although few pieces fail. A piece that fails before it changed anything (404, 409)
leaves nothing to undo. If a piece fails after a change, the whole group is undone and repeated, with savepoints.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Sequence

from workspaced.storage.batchable import Outcome, PartialChange, Work, run_batches
from workspaced.storage.sqlite import SqliteTransaction, as_problem, transaction


class SqliteGroup:
    """Performs the work that `workspaced.storage.group_commit.GroupCommit` collects."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        *,
        announce: Callable[[Collection[str]], None] = lambda _channels: None,
    ) -> None:
        """``announce`` is called with the channels that a commit notified."""
        self._connection = connection
        self._announce = announce

    def perform(self, works: Sequence[Work]) -> list[Outcome]:
        """Return all outcomes, after the commit. Raises UnavailableProblem: SQLite failed; no work is committed."""
        if len(works) == 1:
            return self._run_in_transaction(lambda tx: [(works[0](tx), None)])
        try:
            return self._run_in_transaction(
                lambda tx: run_batches(works, lambda work: self._without_savepoint(work, tx))
            )
        except PartialChange:
            return self._run_in_transaction(lambda tx: [self._with_savepoint(work, tx) for work in works])

    def _run_in_transaction(self, perform: Callable[[SqliteTransaction], list[Outcome]]) -> list[Outcome]:
        with transaction(self._connection, write=True) as tx:
            outcomes = perform(tx)
        if tx.notified:
            self._announce(tx.notified)
        return outcomes

    def _without_savepoint(self, work: Work, tx: SqliteTransaction) -> Outcome:
        """Do one piece; raise PartialChange if the work failed after it had changed something."""
        changes, deferred = self._connection.total_changes, tx.deferred()
        try:
            return work(tx), None
        except Exception as error:
            if not self._connection.in_transaction:
                raise  # SQLite rolled the whole transaction back: no work is committed
            if self._connection.total_changes != changes:
                raise PartialChange from error
            tx.discard(deferred)
            return None, _as_outcome(error)

    def _with_savepoint(self, work: Work, tx: SqliteTransaction) -> Outcome:
        try:
            with tx.nested():
                return work(tx), None
        except Exception as error:
            if not self._connection.in_transaction:
                raise
            return None, _as_outcome(error)


def _as_outcome(error: Exception) -> Exception:
    return as_problem(error) if isinstance(error, sqlite3.OperationalError) else error
