"""Rows by a time that is below a moment at which all running transactions have ended since.

A row's time is that of its statement or of its transaction, so a transaction that begins later writes later times. As soon as
every transaction of a moment has ended, no earlier time can appear any more. The moment, less the slack, becomes the bound. It
comes from the server's clock, so no value of a row can move it: NULL, infinite and future values stay where they are.

The slack covers the instant between a transaction's begin and its entry in the list, times without fractions of a second, and
clients that write times of their own clock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from connectors.database.changes.instant import ColumnClock
from connectors.database.changes.method import (
    ChangeMethod,
    ChangeSource,
    Guarantee,
    Observation,
    ReadPlan,
    Restriction,
    State,
)
from connectors.database.changes.transactions import remaining
from connectors.database.port import ReadSession, SqlDialect

_MOST_RUNNING = 2_000
"""With more running transactions the moment is not stored, so that the cursor stays small; a later one is used."""


class EndedTransactions(ChangeMethod):
    """Reads the rows from the bound on; ``observe`` lists the running transactions."""

    observes: ClassVar[bool] = True

    def __init__(
        self,
        source: ChangeSource,
        dialect: SqlDialect,
        guarantee: Guarantee,
        *,
        clock: ColumnClock,
        observe: Callable[[ReadSession], Observation],
    ) -> None:
        super().__init__(source, dialect, guarantee)
        self._clock = clock
        self._observe = observe

    def observe(self, session: ReadSession) -> Observation:
        """See `ChangeMethod.observe`. Transactions that have ended here are visible in every later transaction."""
        return self._observe(session)

    def server(self, session: ReadSession) -> str:
        """See `ChangeMethod.server`."""
        return self._clock.server(session)

    def follow(self, session: ReadSession, state: State | None, observation: Observation) -> ReadPlan:  # noqa: ARG002
        """See `ChangeMethod.follow`."""
        bound: int | None = state["bound"] if state is not None else None
        candidate: State | None = state["candidate"] if state is not None else None
        restriction = None if bound is None else self._clock.between(bound, self._latest(observation))
        following = bound
        if candidate is not None:
            running = remaining(candidate["running"], observation)
            candidate = {"at": candidate["at"], "running": running}
            if not running:
                following, candidate = self._bound(candidate["at"]), None
        if not observation["current"]:
            return ReadPlan(restriction, {"bound": following, "candidate": candidate})
        if not observation["running"]:
            following, candidate = self._bound(observation["at"]), None
        elif candidate is None and len(observation["running"]) <= _MOST_RUNNING:
            candidate = {"at": observation["at"], "running": sorted(observation["running"])}
        return ReadPlan(restriction, {"bound": following, "candidate": candidate})

    def unfollowed(self, session: ReadSession, observation: Observation) -> Restriction | None:  # noqa: ARG002
        """See `ChangeMethod.unfollowed`: rows without a time, or with one in the future."""
        return self._clock.outside(self._latest(observation))

    def _bound(self, at: int) -> int:
        return at - round(self.source.slack_seconds * 1_000_000)

    def _latest(self, observation: Observation) -> int:
        at: Any = observation["at"]
        return int(at) + round(self.source.slack_seconds * 1_000_000)
