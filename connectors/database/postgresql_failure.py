"""Converts errors of PostgreSQL to source errors. The error's class decides whether the reading is tried again."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import psycopg

from connectors.database.failure import existing_tables, lock_wait, login_refused, one_line
from connectors.database.options import DatabaseOptions
from ingestd.sdk import SourceBroken, SourceError, SourceUnavailable

if TYPE_CHECKING:
    from connectors.database.postgresql import PostgresqlSession

_AWAY = ("08", "40", "53", "55", "57", "58")  # connection, rollback, resources, state, operator, system
_ALSO_AWAY = frozenset({"25P03", "25P04"})  # idle_in_transaction_session_timeout, transaction_timeout
_NO_LOGIN = "28"
_PROTOCOL = "08P01"
_NO_TABLE, _LOCK, _NO_PERMISSION, _CANCELED = "42P01", "55P03", "42501", "57014"

# libpq reports a failed connection only as text, which was written by libpq, PostgreSQL or PgBouncer.
_LOGIN = re.compile(
    r"authentication failed|no pg_hba\.conf entry|pg_hba\.conf rejects|no password supplied|password is required|auth failed"
    r"|no such user|role \S+ (does not exist|is not permitted to log in)|wrong password|login failed",
)
_CONFIGURED = re.compile(
    r"database \S+ does not exist|no such database|unsupported startup parameter|invalid connection option|invalid \S+ value"
    r"|permission denied for database|root certificate file|does not support SSL|protocol violation"
)
_OTHER = re.compile(
    r"too many|connection slots|not yet accepting|starting up|shutting down|recovery|time.?out|timed out|closed|terminat"
    r"|refused|reset by peer|could not|not available|limit exceeded|no more connections|server conn crashed",
    re.IGNORECASE,
)
_TABLES = (
    "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')"
    " AND pg_table_is_visible(c.oid) AND n.nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1"
)
LOCK_HOLDERS = """
SELECT b.pid, coalesce(a.usename, ''), coalesce(a.application_name, ''),
  coalesce(to_char(a.xact_start AT TIME ZONE 'UTC', 'HH24:MI:SS'), ''),
  coalesce((SELECT l.relation::regclass::text FROM pg_locks l
    WHERE l.pid = {pid} AND NOT l.granted AND l.locktype = 'relation' LIMIT 1), '')
FROM unnest(pg_blocking_pids({pid})) AS b (pid) LEFT JOIN pg_stat_activity a ON a.pid = b.pid LIMIT 5
"""
"""A query for the programs that block a process now: they hold the lock, or are before the process in the queue."""


def connection_error(
    options: DatabaseOptions, error: psycopg.Error, find_code: Callable[[], str] = lambda: ""
) -> SourceError:
    """Return the error for a failed connection. ``find_code``: returns the SQLSTATE, called only if the text is not known."""
    where, words = options.address(), one_line(error)
    used_password = error.pgconn is not None and error.pgconn.used_password
    is_login, is_configured = bool(_LOGIN.search(words)), bool(_CONFIGURED.search(words))
    if not (is_login or is_configured or _OTHER.search(words)):
        code = find_code()
        is_login = code.startswith(_NO_LOGIN) or (not code and used_password)
        is_configured = bool(code) and not is_login and not code.startswith(_AWAY)
    if is_configured:
        return SourceBroken(f"The database {where} refuses the connection: {words}.")
    if is_login:
        return login_refused(where, words)
    return SourceUnavailable(f"The database {where} can't be reached: {words}.")


def statement_error(options: DatabaseOptions, error: psycopg.Error, session: PostgresqlSession | None) -> SourceError:
    """Return the error for a statement that failed. Query the cause with ``session``."""
    where, state = options.address(), str(error.sqlstate or "")
    words = one_line(error.diag.message_primary or error)
    refused = f"The database {where} refuses the reading: {words}."
    if state == _LOCK:
        return SourceUnavailable(lock_wait(where, options.lock_timeout_seconds, _holders(session)))
    if state == _CANCELED:
        return SourceUnavailable(f"The database {where} canceled the reading: {words}.")
    if not state or state in _ALSO_AWAY or (state.startswith(_AWAY) and state != _PROTOCOL):
        return SourceUnavailable(f"The database {where} can't be reached: {words}.")
    if state == _NO_TABLE:
        return SourceBroken(refused + _tables(session))
    if state == _NO_PERMISSION and "row-level security" in words:
        return SourceBroken(
            f"{refused} A policy hides rows from this user, and hidden rows would count as removed. Let the user read all rows"
            " (ALTER ROLE … BYPASSRLS)."
        )
    return SourceBroken(refused)


def _tables(session: PostgresqlSession | None) -> str:
    try:
        found = session.rows(_TABLES) if session is not None and session.restart() else None
    except (psycopg.Error, SourceError):
        return ""  # the error about the missing table is more useful than this second error
    return existing_tables([name for (name,) in found]) if found is not None else ""


def _holders(session: PostgresqlSession | None) -> str:
    found = session.holders if session is not None else None
    return ", ".join(
        (f"process {pid}" if pid != "0" else "a prepared transaction")
        + (f" of user {user}" if user else "")
        + (f" ({application})" if application else "")
        + (f" on {table}" if table else "")
        + (f" since {since} UTC" if since else "")
        for pid, user, application, since, table in found or ()
    )
