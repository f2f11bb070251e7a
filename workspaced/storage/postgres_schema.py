"""Migrate a PostgreSQL database to the newest schema. The table ``schema_step`` has the steps that were done."""

from __future__ import annotations

import psycopg

from workspaced.core.problems import UnavailableProblem
from workspaced.storage import migrations
from workspaced.storage.address import PostgresAddress
from workspaced.storage.port import StorageUnusable
from workspaced.storage.postgres import Connection, connect

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
        UnavailableProblem: it has another one; the message says what to do.
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


def migrate(address: PostgresAddress) -> tuple[int, int]:
    """Run the missing steps, each in a transaction; return the steps before and after. One process at a time runs them.

    Raises:
        StorageUnusable: a newer program wrote the database, or this user may not change it.
        UnavailableProblem: the server can't be reached.
    """
    connection = connect(address)
    try:
        connection.execute("SET lock_timeout = 0")  # a migration by another process may take long
        connection.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
        before = reached(connection)
        if before > migrations.head():
            raise StorageUnusable(migrations.newer(f"The database {address}", before))
        connection.execute(
            "CREATE TABLE IF NOT EXISTS schema_step (number bigint PRIMARY KEY, at timestamptz NOT NULL)"
        )
        for number, sql in migrations.steps("postgres"):
            if number > before:
                with connection.transaction():
                    connection.execute(sql.encode())
                    connection.execute("INSERT INTO schema_step VALUES (%s, now())", [number])
    except psycopg.Error as error:
        raise StorageUnusable(
            f"The database {address} can't be brought to schema {migrations.head()} ({' '.join(str(error).split())}). "
            "What was begun of the step that failed is undone. The user must own the database or its schema."
        ) from error
    else:
        return before, migrations.head()
    finally:
        connection.close()
