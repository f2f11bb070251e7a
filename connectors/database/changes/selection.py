"""The choice of the method by the kind of the source, with its guarantee."""

from __future__ import annotations

from collections.abc import Sequence

from connectors.database.changes.ended import EndedTransactions
from connectors.database.changes.instant import ColumnClock
from connectors.database.changes.lag import DEFAULT_LAG_SECONDS, NumberLag, TimeLag
from connectors.database.changes.method import ChangeMethod, ChangeSource, Guarantee
from connectors.database.changes.row_version import GUARANTEE as ROW_VERSION
from connectors.database.changes.row_version import RowVersion, is_suitable
from connectors.database.changes.server_version import (
    MIN_ACTIVE_GUARANTEE,
    ROW_VERSION_TYPE,
    ActiveRowVersion,
    RowChangeNumber,
    change_number_guarantee,
)
from connectors.database.changes.transactions import observe_innodb, observe_postgresql
from connectors.database.changes.whole import WholeReading
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


def choose_method(
    session: ReadSession, dialect: SqlDialect, source: ChangeSource, columns: Sequence[ResultColumn]
) -> ChangeMethod:
    """Return the method for a source of a server.

    Raises:
        SourceBroken: there is no such cursor column, or it holds neither times nor numbers.
    """
    if dialect.name == "postgresql" and source.table and is_suitable(session, source.table):
        return RowVersion(source, dialect, ROW_VERSION)
    if dialect.name in {"sqlserver", "oracle"}:
        return _by_server_version(dialect, source, columns)
    if not source.cursor:
        return WholeReading(source, dialect, _whole("Set cursor to a column with the time of each row's last change."))
    kind = _type(columns, source.cursor)
    if ColumnClock.knows(kind):
        return _by_time(session, dialect, source, kind)
    if kind.lower().partition("(")[0] not in _NUMBERS:
        raise SourceBroken(
            f"Column {source.cursor} has the type {kind}, but cursor needs a column with a date and time, or with a number."
        )
    if source.lag_seconds is None:
        why = (
            f"Column {source.cursor} holds numbers, which can be committed late in any order."
            " Set cursor to a column with a time, or set lag_seconds to the longest duration of a transaction."
        )
        return WholeReading(source, dialect, _whole(why))
    return NumberLag(source, dialect, _lag(source, "Set cursor to a column with the time of each row's last change."))


def _by_server_version(dialect: SqlDialect, source: ChangeSource, columns: Sequence[ResultColumn]) -> ChangeMethod:
    if dialect.name == "oracle":
        if source.table:
            return RowChangeNumber(source, dialect, change_number_guarantee(source))
        return WholeReading(
            source, dialect, _whole("Read a table instead of a query: ORA_ROWSCN then shows changed rows.")
        )
    if source.cursor and _type(columns, source.cursor) == ROW_VERSION_TYPE:
        return ActiveRowVersion(source, dialect, MIN_ACTIVE_GUARANTEE)
    return WholeReading(source, dialect, _whole("Set cursor to a column of the type rowversion."))


def _by_time(session: ReadSession, dialect: SqlDialect, source: ChangeSource, kind: str) -> ChangeMethod:
    zone = source.cursor_timezone
    if not zone and ColumnClock.needs_zone(dialect, kind):
        zone = session.scalar(_ZONE[dialect.name]) or "UTC"
    if dialect.name == "mariadb" and zone and session.scalar(_KNOWS_ZONE.format(zone=zone.replace("'", "''"))) is None:
        raise SourceBroken(
            f"The server does not know the time zone {zone} (cursor_timezone). Load its tables with mariadb-tzinfo-to-sql, or"
            " write an offset such as +01:00."
        )
    clock = ColumnClock(dialect, source.cursor, kind, zone)
    local = f" It is taken as local time of {zone} (cursor_timezone)." if ColumnClock.needs_zone(dialect, kind) else ""
    if dialect.name == "postgresql":
        if session.scalar("SELECT pg_is_in_recovery()::text") == "true":
            better = "Read from the primary: a standby does not list the transactions that run there."
            return TimeLag(source, dialect, _lag(source, better, local), clock=clock)
        guarantee = _ended(
            source, "pg_locks", local, "Read a table instead of a view or query: no column is then needed."
        )
        return EndedTransactions(source, dialect, guarantee, clock=clock, observe=observe_postgresql)
    if "mariadb" not in str(session.scalar("SELECT VERSION()")).lower():
        return TimeLag(source, dialect, _lag(source, "", local), clock=clock)  # statements have no id in MySQL's list
    if session.scalar(_MAY_LIST) == "0":
        better = "GRANT PROCESS ON *.* to this user: the running transactions can then be listed, and no lag is needed."
        return TimeLag(source, dialect, _lag(source, better, local), clock=clock)
    if session.scalar(_IS_REPLICA) != "0":
        better = "Read from the primary: a replica does not list the transactions that run there."
        return TimeLag(source, dialect, _lag(source, better, local), clock=clock)
    return EndedTransactions(
        source, dialect, _ended(source, "information_schema.innodb_trx", local, ""), clock=clock, observe=observe_innodb
    )


def _type(columns: Sequence[ResultColumn], name: str) -> str:
    for column in columns:
        if column.name == name:
            return column.type
    raise SourceBroken(f"There is no column {name} (cursor); there are {', '.join(column.name for column in columns)}.")


def _ended(source: ChangeSource, view: str, local: str, improvement: str) -> Guarantee:
    return Guarantee(
        method="ended transactions",
        sentence=(
            f"Each reading finds every row with a {source.cursor} that is set by the server's clock when it is written,"
            " however late it is committed: rows are read from a moment on at which every transaction listed in"
            f" {view} has ended since.{local} Deleted rows and rows with an earlier {source.cursor} are found by the sweep."
        ),
        improvement=improvement,
    )


def _lag(source: ChangeSource, improvement: str, local: str = "") -> Guarantee:
    lag = DEFAULT_LAG_SECONDS if source.lag_seconds is None else source.lag_seconds
    return Guarantee(
        method="lag",
        sentence=(
            f"A reading finds a row that becomes visible within {lag:g} seconds (lag_seconds) after its {source.cursor} was"
            f" set.{local} Later ones and deleted rows are found by the sweep."
        ),
        improvement=improvement,
    )


def _whole(improvement: str) -> Guarantee:
    return Guarantee(
        method="whole",
        sentence="Each reading finds every change, because it reads everything.",
        improvement=improvement,
    )
