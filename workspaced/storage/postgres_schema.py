"""Migrate a PostgreSQL database. A program that a migration step excludes can't use the database afterwards.

Each session of a program holds a shared lock for its program as long as it is open, so a write needs no check. A step that
excludes older programs needs exclusive locks for these programs, so it waits until their sessions end. If an older program
opens a session during the step, the session waits for the end of the step. Then the program finds a schema that it can't use.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import psycopg

from ingestd.process.postgres_address import PostgresAddress
from workspaced.core.problems import UnavailableProblem
from workspaced.storage import migrations, schema
from workspaced.storage.port import StorageUnusable
from workspaced.storage.postgres import PostgresTransaction, as_problem
from workspaced.storage.postgres_connection import PostgresConnection, connect, wait_for_standby

_LOCK_WAIT = "2s"
_PAUSE_SECONDS = 1.0
_LOCK = 0x776F726B73706163  # "workspac": the advisory lock of a migration
_PROGRAMS = 0x73636865  # "sche": the first key of a program's advisory lock; the second key is its newest step


def enter(connection: PostgresConnection, address: PostgresAddress) -> None:
    """Check that this program can use the database. Until the connection ends, no migration step can exclude this program.

    Raises:
        UnavailableProblem: this program can't use the database; the message says what to do.
    """
    try:
        connection.execute(f"SELECT pg_advisory_lock_shared({_PROGRAMS}, {migrations.head()})")
        schema.require_usable(PostgresTransaction(connection, write=False, has_begun=True), f"The database {address}")
    except psycopg.errors.LockNotAvailable as error:
        sentence = f"The database {address} is being migrated: try again in a moment."
        raise UnavailableProblem("storage_busy", sentence) from error
    except psycopg.Error as error:
        raise as_problem(error) from error


def migrate(
    address: PostgresAddress, *, on_wait: Callable[[str], None] = lambda _sentence: None, give_up_seconds: float = 30.0
) -> tuple[int, int]:
    """Run the missing steps, each in a transaction; return the last step before and after. One process at a time runs steps.

    While a step waits for a table's lock, all later requests for the table wait, too. So a step gives up after `_LOCK_WAIT` and
    is tried again after a pause, in which other requests run. ``on_wait`` gets a sentence when a step first gives up.

    Raises:
        StorageUnusable: a newer program wrote the database, or this user may not change it. Or during ``give_up_seconds``,
            another session held a lock, or a program that the step excludes used the database.
        UnavailableProblem: the server can't be reached or was lost, or a synchronous standby is missing.
    """
    connection = connect(address)
    name = f"The database {address}"
    try:
        connection.execute("SET lock_timeout = 0")  # a migration by another process may take long
        connection.execute_long(b"SELECT pg_advisory_lock(%d)" % _LOCK)
        connection.execute(f"SET lock_timeout = '{_LOCK_WAIT}'")
        before = schema.reached(PostgresTransaction(connection, write=False, has_begun=True))
        if sentence := schema.too_new(name, before):
            raise StorageUnusable(sentence)
        for step in migrations.steps("postgres"):
            if step.number > before.number:
                _run_step(connection, name, step, on_wait=on_wait, give_up_seconds=give_up_seconds)
        wait_for_standby(connection)
    except psycopg.Error as error:
        if connection.closed:
            raise UnavailableProblem(
                "storage_lost",
                f"The connection to the database {address} was lost ({' '.join(str(error).split())}). Run `workspaced migrate` "
                "again: it continues after the last step that was done.",
            ) from error
        raise StorageUnusable(
            f"{name} can't be brought to schema {migrations.head()} ({' '.join(str(error).split())}). "
            "The failed step is undone. The user must own the database or its schema."
        ) from error
    else:
        return before.number, max(before.number, migrations.head())
    finally:
        connection.close()


class _Blocker(NamedTuple):
    """The sessions that block a step, and the advice to the operator."""

    sessions: str
    remedy: str


def _run_step(
    connection: PostgresConnection,
    name: str,
    step: migrations.MigrationStep,
    *,
    on_wait: Callable[[str], None],
    give_up_seconds: float,
) -> None:
    """Run a step, and retry it while other sessions block it; raise StorageUnusable after ``give_up_seconds``."""
    begun = time.monotonic()
    is_reported = False
    while blocker := _attempt(connection, step):
        if time.monotonic() - begun >= give_up_seconds:
            raise StorageUnusable(
                f"{name} was not brought to schema {step.number} within {give_up_seconds:.0f} seconds, because of "
                f"{blocker.sessions}. Nothing of the step was done. {blocker.remedy} Then run `workspaced migrate` again."
            )
        if not is_reported:
            is_reported = True
            on_wait(f"Schema {step.number} waits for {blocker.sessions}.")
        time.sleep(_PAUSE_SECONDS)


def _attempt(connection: PostgresConnection, step: migrations.MigrationStep) -> _Blocker | None:
    """Run a step. If other sessions block it, do nothing and return the blocker."""
    # The locks are tried without waiting, because a waiting request would delay new sessions of the older programs.
    alone = (
        f"SELECT bool_and(pg_try_advisory_xact_lock({_PROGRAMS}, program)) "
        f"FROM generate_series(1, {step.oldest_program - 1}) program"
    )
    try:
        with connection.transaction():
            if connection.execute(alone).fetchone() != (False,):
                connection.execute_long(step.sql.encode())
                schema.record(PostgresTransaction(connection, write=True, has_begun=True), step)
                return None
    except psycopg.errors.LockNotAvailable:
        return _Blocker(
            f"other sessions that use its tables: {_open_transactions(connection)}",
            "End these sessions, for example with pg_terminate_backend, or wait for their end.",
        )
    return _Blocker(
        f"programs that don't know schema {step.oldest_program} and use the database: "
        f"{_older_programs(connection, step.oldest_program)}",
        "Stop these hosts, or upgrade them to the release before this one. End the sessions of a host that has vanished with "
        "pg_terminate_backend.",
    )


def _open_transactions(connection: PostgresConnection) -> str:
    """Return a text that names the oldest open transactions of other sessions."""
    rows = connection.execute(
        "SELECT pid, usename, coalesce(nullif(application_name, ''), 'no name'), extract(epoch FROM now() - xact_start)::bigint "
        "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL "
        "ORDER BY xact_start LIMIT 5"
    ).fetchall()
    found = [f"process {pid} of {user} ({name}), open for {seconds} s" for pid, user, name, seconds in rows]
    return "; ".join(found) or "they have ended meanwhile"


def _older_programs(connection: PostgresConnection, oldest: int) -> str:
    """Return a text that names the sessions of programs that don't know the step ``oldest``."""
    rows = connection.execute(
        "SELECT l.objid, coalesce(host(a.client_addr), 'this server'), coalesce(nullif(a.application_name, ''), 'no name'), "
        "string_agg(l.pid::text, ', ' ORDER BY l.pid) FROM pg_locks l LEFT JOIN pg_stat_activity a USING (pid) "
        "WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2 AND l.classid = %s AND l.objid < %s "
        "AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
        "GROUP BY 1, 2, 3 ORDER BY 1, 2, 3 LIMIT 5",
        [_PROGRAMS, oldest],
    ).fetchall()
    found = [
        f"a program that knows schema {known} on {host} ({name}), with the processes {pids} of PostgreSQL"
        for known, host, name, pids in rows
    ]
    return "; ".join(found) or "they have ended meanwhile"
