"""Migrate a SQLite file to the newest schema. Its ``user_version`` is the last step that was done."""

from __future__ import annotations

import sqlite3

from workspaced.storage import migrations
from workspaced.storage.port import StorageUnusable


def reached(connection: sqlite3.Connection) -> int:
    """Return the last migration step that was done; 0 for an empty database."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection, *, name: str) -> None:
    """Run the missing steps, each in an exclusive transaction. ``name`` is the file, for error messages.

    Raises:
        StorageUnusable: a newer program wrote the file.
    """
    if (version := reached(connection)) > migrations.head():
        raise StorageUnusable(migrations.newer(name, version))
    for number, sql in migrations.steps("sqlite"):
        connection.execute("BEGIN EXCLUSIVE")
        try:
            if reached(connection) < number:  # read inside the lock: another process may have done the step meanwhile
                for statement in _statements(sql):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {number}")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")


def _statements(sql: str) -> list[str]:
    """Split a script at the semicolons at which SQLite considers a statement complete."""
    statements: list[str] = []
    pending = ""
    for part in sql.split(";"):
        pending += part
        if sqlite3.complete_statement(pending + ";"):
            statements.append(pending + ";")
            pending = ""
        else:
            pending += ";"
    return [statement for statement in statements if statement.strip(" \n;")]
