"""Converts errors of MariaDB and MySQL to source errors. The error's class decides whether the reading is tried again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pymysql

from connectors.database.failure import existing_tables, lock_wait, login_refused, one_line
from connectors.database.limits import Deadline
from connectors.database.options import DatabaseOptions
from ingestd.sdk import SourceBroken, SourceError, SourceUnavailable

if TYPE_CHECKING:
    from connectors.database.mariadb import MariadbSession

_LOGIN = frozenset({1045, 1698, 1862, 3118, 3955, 4151})  # denied, expired, locked
_AWAY = frozenset(
    {1040, 1041, 1053, 1079, 1080, 1129, 1152, 1158, 1159, 1160, 1161, 1184, 1203, 1213, 1226, 1317, 1836, 1927}
)
"""Too many connections, no memory, shutdown, network errors, limits of a user, deadlock, interrupted or killed."""
_CLIENT = range(2000, 3000)
_TOTAL = frozenset({1969, 3024})  # max_statement_time, max_execution_time
_SILENT, _LOCK, _NO_TABLE = 2013, 1205, 1146
_TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY 1"
# Queries for the lock holders. The first needs performance_schema, the second needs MariaDB's plugin metadata_lock_info.
_HOLDERS = (
    (
        "SELECT t.processlist_id, t.processlist_user, m.object_name FROM performance_schema.metadata_locks m"
        " JOIN performance_schema.threads t ON t.thread_id = m.owner_thread_id WHERE m.lock_status = 'GRANTED'"
        " AND m.object_type = 'TABLE' AND m.object_schema = DATABASE() AND m.lock_type IN ('EXCLUSIVE', 'SHARED_NO_READ_WRITE')"
    ),
    (
        "SELECT l.thread_id, p.user, l.table_name FROM information_schema.metadata_lock_info l"
        " LEFT JOIN information_schema.processlist p ON p.id = l.thread_id WHERE l.table_schema = DATABASE()"
        " AND l.lock_mode IN ('MDL_EXCLUSIVE', 'MDL_SHARED_NO_READ_WRITE')"
    ),
)


def error_of(
    options: DatabaseOptions,
    error: pymysql.Error,
    session: MariadbSession | None,
    connect: Callable[[], pymysql.Connection[Any]],
) -> SourceError:
    """Return the error for a failed connection (``session`` is None) or statement. Query the cause with ``session``."""
    where, number = options.address(), error.args[0] if error.args and isinstance(error.args[0], int) else 0
    words = one_line(error.args[1] if len(error.args) > 1 else error)
    if number in _LOGIN:
        return login_refused(where, words)
    if number == _SILENT and "timed out" in words and session is not None:
        _kill(session, connect)
        return Deadline(options).silent()
    if number in _TOTAL:
        return Deadline(options).too_long()
    if number == _LOCK:
        return SourceUnavailable(lock_wait(where, options.lock_timeout_seconds, _holders(session)))
    if number in _AWAY or number in _CLIENT or not number:
        return SourceUnavailable(f"The database {where} can't be reached: {words}.")
    tables = _rows(session, _TABLES) if number == _NO_TABLE else None
    existing = existing_tables([str(name) for (name,) in tables]) if tables is not None else ""
    return SourceBroken(f"The database {where} refuses the reading: {words}.{existing}")


def _kill(session: MariadbSession, connect: Callable[[], pymysql.Connection[Any]]) -> None:
    """Kill the connection on the server. Otherwise the server would execute the statement to its end."""
    try:
        with closing(connect()) as other, closing(other.cursor()) as cursor:
            cursor.execute(f"KILL {session.number}")
    except (pymysql.Error, SourceError):
        return  # the server may be unreachable, and max_statement_time ends the statement in any case


def _holders(session: MariadbSession | None) -> str:
    found = next((rows for statement in _HOLDERS if (rows := _rows(session, statement)) is not None), [])
    return ", ".join(f"process {pid} of user {user} on {table}" for pid, user, table in found)


def _rows(session: MariadbSession | None, sql: str) -> list[tuple[str | None, ...]] | None:
    """Return the rows of a statement about the cause of an error; None if the statement can't be executed."""
    try:
        return session.rows(sql) if session is not None else None
    except pymysql.Error:
        return None  # an error here would hide the first error
