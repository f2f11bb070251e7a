"""The choice of the method for a source, and the guarantee of this method."""

from __future__ import annotations

from collections.abc import Sequence

from connectors.database.changes.cursor_column import (
    ColumnClock,
    EndedTransactions,
    NumberLag,
    TimeLag,
    has_zone,
    is_time,
)
from connectors.database.changes.method import DEFAULT_LAG_SECONDS, ChangeMethod, Guarantee
from connectors.database.changes.row_version import GUARANTEE as ROW_VERSION
from connectors.database.changes.row_version import RowVersion, is_suitable
from connectors.database.changes.server_version import (
    MIN_ACTIVE_GUARANTEE,
    ROW_VERSION_TYPE,
    ActiveRowVersion,
    RowChangeNumber,
)
from connectors.database.changes.slot import choose_slot
from connectors.database.changes.transactions import observe_innodb, observe_postgresql
from connectors.database.changes.whole import WholeReading
from connectors.database.options import DatabaseOptions
from connectors.database.port import ReadSession, ResultColumn, SqlDialect
from ingestd.sdk import SourceBroken

_MAY_LIST = "SELECT count(*) FROM information_schema.user_privileges WHERE privilege_type IN ('PROCESS', 'SUPER')"
_IS_REPLICA = "SELECT count(*) FROM information_schema.processlist WHERE command LIKE 'Slave%'"
_KNOWS_ZONE = "SELECT CONVERT_TZ('2026-01-01', '+00:00', '{zone}')"  # NULL would hide every row
_ZONE = {
    "postgresql": "SELECT reset_val FROM pg_settings WHERE name = 'TimeZone'",
    "mariadb": "SELECT @@global.time_zone",
}
_NUMBERS = frozenset(
    {"smallint", "integer", "bigint", "numeric", "real", "double precision"}
    | {"tiny", "short", "int24", "long", "longlong", "decimal", "newdecimal", "float", "double"}  # MariaDB's protocol
)
_SET_CURSOR = "Set cursor to a column with the time of each row's last change."


def choose_method(session: ReadSession, dialect: SqlDialect, columns: Sequence[ResultColumn]) -> ChangeMethod:
    """Return the method for the source in ``dialect``. ``columns``: the columns of its rows.

    Raises:
        SourceBroken: the cursor column is missing, or holds neither times nor numbers.
    """
    method = _choose(session, dialect, columns)
    return choose_slot(session, dialect, method) if dialect.options.slot is not None else method


def _choose(session: ReadSession, dialect: SqlDialect, columns: Sequence[ResultColumn]) -> ChangeMethod:  # noqa: PLR0911 - one return for each method
    options = dialect.options
    if dialect.name == "postgresql" and dialect.table and is_suitable(session, dialect.table):
        return RowVersion(dialect, ROW_VERSION)
    if dialect.name == "oracle":
        if dialect.table:
            by_row = "A table with ROWDEPENDENCIES has a number for each row; otherwise all rows of a changed block are read."
            return RowChangeNumber(dialect, _delayed(options, "ORA_ROWSCN", "its change number was assigned.", by_row))
        return WholeReading(dialect, _whole("Read a table instead of a query: ORA_ROWSCN then shows changed rows."))
    if dialect.name == "sqlserver":
        if options.cursor and _type(columns, options.cursor) == ROW_VERSION_TYPE:
            return ActiveRowVersion(dialect, MIN_ACTIVE_GUARANTEE)
        return WholeReading(dialect, _whole("Set cursor to a column of the type rowversion."))
    if not options.cursor:
        return WholeReading(dialect, _whole(_SET_CURSOR))
    kind = _type(columns, options.cursor)
    if is_time(kind):
        return _by_time(session, dialect, kind)
    if kind.lower().partition("(")[0] not in _NUMBERS:
        raise SourceBroken(
            f"Column {options.cursor} has the type {kind}, but cursor needs a column with a date and time, or with a number."
        )
    if options.lag_seconds is None:
        why = (
            f"Column {options.cursor} holds numbers, which can be committed late in any order."
            " Set cursor to a column with a time, or set lag_seconds to the longest duration of a transaction."
        )
        return WholeReading(dialect, _whole(why))
    return NumberLag(dialect, _lag(options, _SET_CURSOR))


def _by_time(session: ReadSession, dialect: SqlDialect, kind: str) -> ChangeMethod:
    options, is_local = dialect.options, not has_zone(dialect, kind)
    zone = options.cursor_timezone or ""
    if not zone and is_local:
        zone = session.scalar(_ZONE[dialect.name]) or "UTC"
    if dialect.name == "mariadb" and zone and session.scalar(_KNOWS_ZONE.format(zone=zone.replace("'", "''"))) is None:
        raise SourceBroken(
            f"The server does not know the time zone {zone} (cursor_timezone). Load its tables with mariadb-tzinfo-to-sql, or"
            " write an offset such as +01:00."
        )
    clock = ColumnClock(dialect, kind, zone)
    local = f" Its values are taken as local time of {zone} (cursor_timezone)." if is_local else ""
    if dialect.name == "postgresql":
        view, list_running = "pg_locks", observe_postgresql
        problem = None
        if session.scalar("SELECT pg_is_in_recovery()::text") == "true":
            problem = "Read from the primary: a standby does not list the transactions that run there."
    else:
        view, list_running = "information_schema.innodb_trx", observe_innodb
        problem = _innodb_problem(session)
    if problem is not None:
        return TimeLag(dialect, _lag(options, problem, local), clock)
    better = "Read a table instead of a view or query: then no cursor column is needed."
    guarantee = Guarantee(
        method="ended transactions",
        sentence=(
            f"Each reading finds every row with a {options.cursor} that the server's clock sets at each write,"
            f" however late it is committed. Rows are read from a moment on: all transactions that {view} listed at that"
            f" moment have ended.{local} Deleted rows and rows with an earlier {options.cursor} are found by the sweep."
        ),
        improvement=better if dialect.name == "postgresql" else "",
    )
    return EndedTransactions(dialect, guarantee, clock, list_running)


def _innodb_problem(session: ReadSession) -> str | None:
    """Return advice if the running transactions can't be listed now, or "" if they never can. Return None if they can."""
    if "mariadb" not in str(session.scalar("SELECT VERSION()")).lower():
        return ""  # the process list of MySQL has no statement ids, which `_INNODB` needs
    if session.scalar(_MAY_LIST) == "0":
        return "GRANT PROCESS ON *.* to this user: the running transactions can then be listed, and no lag is needed."
    if session.scalar(_IS_REPLICA) != "0":
        return "Read from the primary: a replica does not list the transactions that run there."
    return None


def _type(columns: Sequence[ResultColumn], name: str) -> str:
    for column in columns:
        if column.name == name:
            return column.type
    raise SourceBroken(f"There is no column {name} (cursor); there are {', '.join(column.name for column in columns)}.")


def _lag(options: DatabaseOptions, improvement: str, local: str = "") -> Guarantee:
    return _delayed(options, "lag", f"its {options.cursor} was set.{local}", improvement)


def _delayed(options: DatabaseOptions, method: str, beginning: str, improvement: str) -> Guarantee:
    """Return the guarantee of a method with a lag. ``beginning``: the event at which the lag begins, as end of a sentence."""
    lag = DEFAULT_LAG_SECONDS if options.lag_seconds is None else options.lag_seconds
    return Guarantee(
        method=method,
        sentence=(
            f"A reading finds a row that becomes visible within {lag:g} seconds (lag_seconds) after {beginning}"
            " Rows that become visible later and deleted rows are found by the sweep."
        ),
        improvement=improvement,
    )


def _whole(improvement: str) -> Guarantee:
    return Guarantee(
        method="whole",
        sentence="Each reading finds every change, because it reads everything.",
        improvement=improvement,
    )
