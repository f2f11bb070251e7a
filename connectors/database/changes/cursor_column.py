"""Methods that find changed rows by a cursor column: a column with the time or the number of a row's last change.

`EndedTransactions` reads all rows with a time from a bound on. A row's time is the time of its statement or of its transaction,
so a transaction that begins later writes later times. When every transaction that ran at a moment has ended, no new row with a
time before this moment can appear. Then this moment, less the slack, becomes the bound. The bound comes from the server's
clock, so NULL, infinite and future values of rows can't move it. The slack covers three things: the instant between the start
and the listing of a transaction, times without fractions of a second, and clients that write their own times.

`TimeLag` and `NumberLag` are for servers that do not show which transactions run. The lag is the longest expected duration of
a writing transaction. Numbers always need a lag, because a sequence assigns a number long before the transaction commits.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import ClassVar

from connectors.database.changes.method import (
    ChangeMethod,
    Guarantee,
    Observation,
    ReadPlan,
    Restriction,
    State,
)
from connectors.database.changes.transactions import remaining
from connectors.database.port import ReadSession, SqlDialect
from ingestd.sdk import SourceBroken

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ZONED = frozenset({"timestamp with time zone", "timestamptz"})
_LOCAL = frozenset({"timestamp without time zone", "timestamp", "datetime", "date"})
_MOST_RUNNING = 2_000
"""If more transactions run at a moment, this moment is not stored but a later one, so that the cursor stays small."""
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_NOW = {
    "postgresql": "SELECT (extract(epoch FROM now()) * 1000000)::bigint",
    "mariadb": "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))",
}
_IDENTITY = {
    "postgresql": (
        "SELECT json_build_object('server', (SELECT system_identifier::text FROM pg_control_system()),"
        " 'timeline', (SELECT timeline_id FROM pg_control_checkpoint()), 'database', current_database())::text"
    ),
    "mariadb": (
        "SELECT JSON_OBJECT('server', CONCAT_WS(' ', @@hostname, @@port, @@server_id, @@version_comment),"
        " 'database', DATABASE())"
    ),
}


class ColumnClock:
    """Writes SQL that compares the cursor column, of the type ``kind``, with moments in microseconds since the epoch.

    A column without a zone has local times of ``zone``. When clocks are set back, an hour of local times occurs twice. In such
    an hour the range begins an hour earlier or ends an hour later, so that no row is missed.
    """

    def __init__(self, dialect: SqlDialect, kind: str, zone: str) -> None:
        self._is_postgresql = dialect.name == "postgresql"
        self._column = dialect.quote(dialect.options.cursor or "")
        self._has_zone = has_zone(dialect, kind)
        self._is_date = kind.lower() == "date"
        self._zone = zone.replace("'", "''")

    def between(self, first: int, last: int) -> Restriction:
        """Return the condition for rows with a time from ``first`` to ``last``."""
        begin, end = self._moment(first, later=False), self._moment(last, later=True)
        return Restriction(f"{self._column} >= {begin} AND {self._column} <= {end}")

    def outside(self, last: int) -> Restriction:
        """Return the condition for rows without a time, with a time after ``last``, or with the time ``-infinity``."""
        infinite = f" OR {self._column} = '-infinity'" if self._is_postgresql else ""
        return Restriction(f"{self._column} IS NULL OR {self._column} > {self._moment(last, later=True)}{infinite}")

    def _moment(self, at: int, *, later: bool) -> str:
        """Return the SQL for a moment in the type of the column. ``later``: choose the later of two possible local times."""
        moment = _EPOCH + timedelta(microseconds=at)
        text, other = _text(moment), _text(moment + timedelta(hours=-1 if later else 1))
        if self._has_zone:
            return f"'{text}+00'::timestamptz" if self._is_postgresql else f"TIMESTAMP'{text}'"
        choice, sign = ("greatest", "+") if later else ("least", "-")
        if self._is_postgresql:
            local = [f"('{one}+00'::timestamptz AT TIME ZONE '{self._zone}')" for one in (text, other)]
            found = f"{choice}({local[0]}, {local[1]} {sign} interval '1 hour')"
            return f"({found})::date" if self._is_date else found
        local = [f"CONVERT_TZ('{one}', '+00:00', '{self._zone}')" for one in (text, other)]
        found = f"{choice}({local[0]}, {local[1]} {sign} INTERVAL 1 HOUR)"
        return f"CAST({found} AS {'DATE' if self._is_date else 'DATETIME(6)'})"


def is_time(kind: str) -> bool:
    """Return whether a type is a date, or a date with a time."""
    return _plain(kind) in _ZONED | _LOCAL


def has_zone(dialect: SqlDialect, kind: str) -> bool:
    """Return whether values of a type have a time zone."""
    # MariaDB stores a TIMESTAMP in UTC, and returns it in the session's zone. These sessions use UTC.
    return _plain(kind) in _ZONED or (dialect.name == "mariadb" and _plain(kind) == "timestamp")


class _ByColumn(ChangeMethod):
    """A method with a cursor column. It identifies only the server: a new definition of the table does not affect it."""

    def server(self, session: ReadSession) -> str:
        """See `ChangeMethod.server`."""
        return session.scalar(_IDENTITY[self.dialect.name]) or ""


class _ByTime(_ByColumn):
    """A method with a cursor column of times. ``clock`` writes the SQL that compares times."""

    def __init__(self, dialect: SqlDialect, guarantee: Guarantee, clock: ColumnClock) -> None:
        super().__init__(dialect, guarantee)
        self._clock = clock
        self._slack = round(self.options.slack_seconds * 1_000_000)


class EndedTransactions(_ByTime):
    """Reads the rows from the bound on. ``list_running`` returns the server's clock and the running transactions."""

    observes: ClassVar[bool] = True

    def __init__(
        self,
        dialect: SqlDialect,
        guarantee: Guarantee,
        clock: ColumnClock,
        list_running: Callable[[ReadSession], Observation],
    ) -> None:
        super().__init__(dialect, guarantee, clock)
        self._list_running = list_running

    def observe(self, session: ReadSession) -> Observation:
        """See `ChangeMethod.observe`. Every later transaction sees the rows of a transaction that ended before this call."""
        return self._list_running(session)

    def follow(self, session: ReadSession, state: State | None, observation: Observation) -> ReadPlan:  # noqa: ARG002
        """See `ChangeMethod.follow`."""
        bound: int | None = state["bound"] if state is not None else None
        candidate: State | None = state["candidate"] if state is not None else None
        restriction = None if bound is None else self._clock.between(bound, observation["at"] + self._slack)
        following = bound
        if candidate is not None:
            running = remaining(candidate["running"], observation)
            candidate = {"at": candidate["at"], "running": running}
            if not running:
                following, candidate = candidate["at"] - self._slack, None
        if observation["current"]:
            if not observation["running"]:
                following, candidate = observation["at"] - self._slack, None
            elif candidate is None and len(observation["running"]) <= _MOST_RUNNING:
                candidate = {"at": observation["at"], "running": sorted(observation["running"])}
        return ReadPlan(restriction, {"bound": following, "candidate": candidate})

    def unfollowed(self, session: ReadSession, observation: Observation) -> Restriction | None:  # noqa: ARG002
        """See `ChangeMethod.unfollowed`: rows without a time, or with a future or infinite time."""
        return self._clock.outside(observation["at"] + self._slack)


class TimeLag(_ByTime):
    """Reads the rows with a time from the last reading's time minus the lag."""

    def follow(self, session: ReadSession, state: State | None, observation: Observation) -> ReadPlan:  # noqa: ARG002
        """See `ChangeMethod.follow`."""
        now = _now(self.dialect, session)
        restriction = None if state is None else self._clock.between(int(state["bound"]), now + self._slack)
        return ReadPlan(restriction, {"bound": now - round(self.lag_seconds * 1_000_000)})

    def unfollowed(self, session: ReadSession, observation: Observation) -> Restriction | None:  # noqa: ARG002
        """See `ChangeMethod.unfollowed`: rows without a time, or with a future or infinite time."""
        return self._clock.outside(_now(self.dialect, session) + self._slack)


class NumberLag(_ByColumn):
    """Reads the rows from a bound on. The bound is the highest finite number that existed more than the lag ago."""

    def __init__(self, dialect: SqlDialect, guarantee: Guarantee) -> None:
        super().__init__(dialect, guarantee)
        self._column = column = dialect.quote(self.options.cursor or "")
        self._is_finite = "TRUE"
        if dialect.name == "postgresql":  # PostgreSQL sorts NaN after infinity
            self._is_finite = f"{column}::numeric < 'infinity'::numeric AND {column}::numeric > '-infinity'::numeric"

    def follow(self, session: ReadSession, state: State | None, observation: Observation) -> ReadPlan:  # noqa: ARG002
        """See `ChangeMethod.follow`."""
        now = _now(self.dialect, session)
        bound = state["bound"] if state is not None else None
        candidate = state["candidate"] if state is not None else None
        restriction = None
        if bound is not None:
            restriction = Restriction(f"{self._column} >= {_checked(bound)} AND {self._is_finite}")
        if candidate is not None and now - int(candidate["at"]) >= round(self.lag_seconds * 1_000_000):
            bound, candidate = candidate["highest"], None
        if candidate is None:
            highest = session.scalar(f"SELECT max({self._column}) FROM {self.dialect.source} WHERE {self._is_finite}")
            candidate = {"at": now, "highest": _checked(highest)} if highest is not None else None
        return ReadPlan(restriction, {"bound": bound, "candidate": candidate})

    def unfollowed(self, session: ReadSession, observation: Observation) -> Restriction | None:  # noqa: ARG002
        """See `ChangeMethod.unfollowed`: rows without a number, or with NaN or an infinite number."""
        return Restriction(f"{self._column} IS NULL OR NOT ({self._is_finite})")


def _now(dialect: SqlDialect, session: ReadSession) -> int:
    return int(session.scalar(_NOW[dialect.name]) or 0)


def _text(moment: datetime) -> str:
    # strftime would write years before 1000 with fewer than four digits.
    return moment.replace(tzinfo=None).isoformat(" ", "microseconds")


def _plain(kind: str) -> str:
    """Return the name of a type in lower case, without its precision."""
    words = kind.lower()
    start, end = words.find("("), words.find(")")
    return words if start < 0 else (words[:start] + words[end + 1 :]).strip()


def _checked(number: str) -> str:
    if _NUMBER.fullmatch(number) is None:
        raise SourceBroken(
            f"The cursor column holds '{number}', which is no number: name a column with a time or number."
        )
    return number
