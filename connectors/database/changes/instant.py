"""The cursor column of times, compared with moments of the server's clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from connectors.database.changes.method import Restriction
from connectors.database.port import ReadSession, SqlDialect

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ZONED = frozenset({"timestamp with time zone", "timestamptz"})
_LOCAL = frozenset({"timestamp without time zone", "timestamp", "datetime", "date"})


class ColumnClock:
    """Compares a column with moments, in microseconds since the epoch.

    A column without a zone holds the local time of ``zone``. Where clocks are set back, an hour of local times occurs twice: the
    bound is then an hour earlier and the end an hour later, so that no row is left out.
    """

    def __init__(self, dialect: SqlDialect, column: str, kind: str, zone: str) -> None:
        self._dialect = dialect
        self._column = dialect.quote(column)
        self._is_zoned = _is_zoned(dialect, kind)
        self._is_date = kind.lower() == "date"
        self._zone = zone

    @staticmethod
    def knows(kind: str) -> bool:
        """Return whether the type is a date, or a date with a time."""
        return _plain(kind) in _ZONED | _LOCAL

    @staticmethod
    def needs_zone(dialect: SqlDialect, kind: str) -> bool:
        """Return whether values of the type have no time zone."""
        return not _is_zoned(dialect, kind)

    def server(self, session: ReadSession) -> str:
        """Return what identifies the server."""
        return identify_server(self._dialect, session)

    def since(self, first: int) -> Restriction:
        """Return the condition of rows with a time that is not before ``first``."""
        return Restriction(f"{self._column} >= {self._moment(first, later=False)}")

    def between(self, first: int, last: int) -> Restriction:
        """Return the condition of rows from ``first`` to ``last``."""
        return Restriction(f"{self.since(first).condition} AND {self._column} <= {self._moment(last, later=True)}")

    def outside(self, last: int) -> Restriction:
        """Return the condition of rows without a time, or after ``last``, or infinitely early."""
        infinite = f" OR {self._column} = '-infinity'" if self._dialect.name == "postgresql" else ""
        return Restriction(f"{self._column} IS NULL OR {self._column} > {self._moment(last, later=True)}{infinite}")

    def _moment(self, at: int, *, later: bool) -> str:
        """Return the SQL of a moment in the column's type."""
        moment = _EPOCH + timedelta(microseconds=at)
        text = _text(moment)
        postgresql = self._dialect.name == "postgresql"
        if self._is_zoned:
            return f"'{text}+00'::timestamptz" if postgresql else f"TIMESTAMP'{text}'"
        zone = self._zone.replace("'", "''")
        hour = timedelta(hours=-1 if later else 1)
        other = _text(moment + hour)
        choice, sign = ("greatest", "+") if later else ("least", "-")
        if postgresql:
            local = [f"('{one}+00'::timestamptz AT TIME ZONE '{zone}')" for one in (text, other)]
            found = f"{choice}({local[0]}, {local[1]} {sign} interval '1 hour')"
            return f"({found})::date" if self._is_date else found
        local = [f"CONVERT_TZ('{one}', '+00:00', '{zone}')" for one in (text, other)]
        found = f"{choice}({local[0]}, {local[1]} {sign} INTERVAL 1 HOUR)"
        return f"CAST({found} AS {'DATE' if self._is_date else 'DATETIME(6)'})"


def _text(moment: datetime) -> str:
    # Not strftime: its years before 1000 have fewer than four digits.
    return moment.replace(tzinfo=None).isoformat(" ", "microseconds")


def identify_server(dialect: SqlDialect, session: ReadSession) -> str:
    """Return what another or a restored server changes."""
    return session.scalar(_IDENTITY[dialect.name]) or ""


def _plain(kind: str) -> str:
    """Return a type's name in lower case without its precision."""
    words = kind.lower()
    start, end = words.find("("), words.find(")")
    return words if start < 0 else (words[:start] + words[end + 1 :]).strip()


def _is_zoned(dialect: SqlDialect, kind: str) -> bool:
    plain = _plain(kind)
    # MariaDB stores a TIMESTAMP in UTC and shows it in the zone of the session, which is UTC here.
    return plain in _ZONED or (dialect.name == "mariadb" and plain == "timestamp")


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
