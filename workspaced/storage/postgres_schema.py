"""Migrate a PostgreSQL database to the newest schema. The table ``schema_step`` has the steps that were done."""

from __future__ import annotations

import time
from collections.abc import Callable

import psycopg

from workspaced.core.problems import UnavailableProblem
from workspaced.storage import migrations
from workspaced.storage.address import PostgresAddress
from workspaced.storage.port import StorageUnusable
from workspaced.storage.postgres import Connection, connect

_LOCK_WAIT = "2s"
_PAUSE_SECONDS = 1.0
_LOCK = 0x776F726B73706163  # "workspac": the advisory lock of a migration


def reached(connection: Connection) -> int:
    """Return the last migration step that was done; 0 for an empty database."""
    row = connection.execute("SELECT to_regclass('schema_step') IS NOT NULL").fetchone()
    if row is None or not row[0]:
        return 0
    row = connection.execute("SELECT coalesce(max(number), 0) FROM schema_step").fetchone()
    return int(row[0]) if row else 0


def require_head(connection: Connection, address: PostgresAddress) -> None:
    """Check that the database has the schema of this program.

    Raises:
        UnavailableProblem: it has another schema; the message says what to do.
    """
    version = reached(connection)
    if version > migrations.head():
        raise UnavailableProblem("schema_ahead", migrations.newer(f"The database {address}", version), retry_seconds=5)
    if version < migrations.head():
        raise UnavailableProblem(
            "schema_behind",
            f"The database {address} has schema {version}, but this program needs {migrations.head()}. "
            "Run `workspaced migrate` with the same database.",
            retry_seconds=5,
        )


def migrate(
    address: PostgresAddress, *, on_wait: Callable[[str], None] = lambda _sentence: None, give_up_seconds: float = 30.0
) -> tuple[int, int]:
    """Run the missing steps, each in a transaction; return the steps before and after. One process at a time runs them.

    While a step waits for a table's lock, every other request for the table waits after it. So a step gives up after
    `_LOCK_WAIT` and is tried again after a pause, in which other requests run. ``on_wait`` gets a sentence at the first time.

    Raises:
        StorageUnusable: a newer program wrote the database, this user may not change it, or another session held a lock for
            ``give_up_seconds``.
        UnavailableProblem: the server can't be reached.
    """
    connection = connect(address)
    try:
        connection.execute("SET lock_timeout = 0")  # a migration by another process may take long
        connection.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
        connection.execute(f"SET lock_timeout = '{_LOCK_WAIT}'")
        before = reached(connection)
        if before > migrations.head():
            raise StorageUnusable(migrations.newer(f"The database {address}", before))
        connection.execute(
            "CREATE TABLE IF NOT EXISTS schema_step (number bigint PRIMARY KEY, at timestamptz NOT NULL)"
        )
        for number, sql in migrations.steps("postgres"):
            if number > before:
                _run_step(connection, address, number, sql, on_wait=on_wait, give_up_seconds=give_up_seconds)
    except psycopg.Error as error:
        raise StorageUnusable(
            f"The database {address} can't be brought to schema {migrations.head()} ({' '.join(str(error).split())}). "
            "What was begun of the step that failed is undone. The user must own the database or its schema."
        ) from error
    else:
        return before, migrations.head()
    finally:
        connection.close()


def _run_step(
    connection: Connection,
    address: PostgresAddress,
    number: int,
    sql: str,
    *,
    on_wait: Callable[[str], None],
    give_up_seconds: float,
) -> None:
    """Run a step, again while other sessions hold locks; raise StorageUnusable after ``give_up_seconds``."""
    begun = time.monotonic()
    is_reported = False
    while True:
        try:
            with connection.transaction():
                connection.execute(sql.encode())
                connection.execute("INSERT INTO schema_step VALUES (%s, now())", [number])
        except psycopg.errors.LockNotAvailable:
            holders = _open_transactions(connection)
            if time.monotonic() - begun >= give_up_seconds:
                raise StorageUnusable(
                    f"The database {address} was not brought to schema {number}, because other sessions have used its tables "
                    f"for {give_up_seconds:.0f} seconds: {holders}. Nothing of the step was done. End these sessions, for "
                    "example with pg_terminate_backend, or wait for their end; then run `workspaced migrate` again."
                ) from None
            if not is_reported:
                is_reported = True
                on_wait(f"Schema {number} waits for other sessions that use its tables: {holders}.")
            time.sleep(_PAUSE_SECONDS)
        else:
            return


def _open_transactions(connection: Connection) -> str:
    """Return the oldest open transactions of other sessions, for people."""
    rows = connection.execute(
        "SELECT pid, usename, coalesce(nullif(application_name, ''), 'no name'), extract(epoch FROM now() - xact_start)::bigint "
        "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL "
        "ORDER BY xact_start LIMIT 5"
    ).fetchall()
    found = [f"process {pid} of {user} ({name}), open for {seconds} s" for pid, user, name, seconds in rows]
    return "; ".join(found) or "they have ended meanwhile"
