"""Rows by a time or number that is older than a configured lag.

Nothing shows here whether a transaction still runs. The lag is the longest time that its writer is expected to take. This is
also the only way to follow a number: a sequence assigns numbers long before they are committed, some of them from a cache.
"""

from __future__ import annotations

import re

from connectors.database.changes.instant import ColumnClock, identify_server
from connectors.database.changes.method import (
    ChangeMethod,
    ChangeSource,
    Guarantee,
    Observation,
    ReadPlan,
    Restriction,
    State,
)
from connectors.database.port import ReadSession, SqlDialect
from ingestd.sdk import SourceBroken

DEFAULT_LAG_SECONDS = 300.0

_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_NOW = {
    "postgresql": "SELECT (extract(epoch FROM now()) * 1000000)::bigint",
    "mariadb": "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))",
}


class TimeLag(ChangeMethod):
    """Reads the rows with a time that is less than the lag before the last reading."""

    def __init__(self, source: ChangeSource, dialect: SqlDialect, guarantee: Guarantee, *, clock: ColumnClock) -> None:
        super().__init__(source, dialect, guarantee)
        self._clock = clock

    def server(self, session: ReadSession) -> str:
        """See `ChangeMethod.server`."""
        return self._clock.server(session)

    def follow(self, session: ReadSession, state: State | None, observation: Observation) -> ReadPlan:  # noqa: ARG002
        """See `ChangeMethod.follow`."""
        now = _now(self.dialect, session)
        restriction = None if state is None else self._clock.between(int(state["bound"]), self._latest(now))
        return ReadPlan(restriction, {"bound": now - _lag_microseconds(self.source)})

    def unfollowed(self, session: ReadSession, observation: Observation) -> Restriction | None:  # noqa: ARG002
        """See `ChangeMethod.unfollowed`: rows without a time, or with one in the future."""
        return self._clock.outside(self._latest(_now(self.dialect, session)))

    def _latest(self, now: int) -> int:
        return now + round(self.source.slack_seconds * 1_000_000)


class NumberLag(ChangeMethod):
    """Reads the rows from the highest number on that was visible before the lag. NaN and infinite numbers do not count."""

    def server(self, session: ReadSession) -> str:
        """See `ChangeMethod.server`."""
        return identify_server(self.dialect, session)

    def follow(self, session: ReadSession, state: State | None, observation: Observation) -> ReadPlan:  # noqa: ARG002
        """See `ChangeMethod.follow`."""
        now = _now(self.dialect, session)
        bound = state["bound"] if state is not None else None
        candidate = state["candidate"] if state is not None else None
        column = self.dialect.quote(self.source.cursor)
        restriction = (
            None if bound is None else Restriction(f"{column} >= {_checked(bound)} AND {self._finite(column)}")
        )
        if candidate is not None and now - int(candidate["at"]) >= _lag_microseconds(self.source):
            bound, candidate = candidate["highest"], None
        if candidate is None:
            highest = session.scalar(f"SELECT max({column}) FROM {self.source.source} WHERE {self._finite(column)}")
            candidate = {"at": now, "highest": _checked(highest)} if highest is not None else None
        return ReadPlan(restriction, {"bound": bound, "candidate": candidate})

    def unfollowed(self, session: ReadSession, observation: Observation) -> Restriction | None:  # noqa: ARG002
        """See `ChangeMethod.unfollowed`: rows without a number, or with one that has no place in the order."""
        column = self.dialect.quote(self.source.cursor)
        return Restriction(f"{column} IS NULL OR NOT ({self._finite(column)})")

    def _finite(self, column: str) -> str:
        """Return the condition of finite numbers. PostgreSQL orders NaN after infinity."""
        if self.dialect.name != "postgresql":
            return "TRUE"
        return f"{column}::numeric < 'infinity'::numeric AND {column}::numeric > '-infinity'::numeric"


def _now(dialect: SqlDialect, session: ReadSession) -> int:
    return int(session.scalar(_NOW[dialect.name]) or 0)


def _lag_microseconds(source: ChangeSource) -> int:
    lag = DEFAULT_LAG_SECONDS if source.lag_seconds is None else source.lag_seconds
    return round(lag * 1_000_000)


def _checked(number: str) -> str:
    if _NUMBER.fullmatch(number) is None:
        raise SourceBroken(
            f"The cursor column holds '{number}', which is no number: name a column with a time or number."
        )
    return number
