"""The schema, step by step: numbered files, forward only, immutable once released.

SQLite's ``user_version`` says which step a file has reached.
"""

from __future__ import annotations

import re
import sqlite3
from importlib.resources import files

from workspaced.storage.port import StorageUnusable

_FILE = re.compile(r"(?P<number>\d{4})_[a-z_]+\.sql")


def steps() -> tuple[tuple[int, str], ...]:
    """Number and SQL of every step, in order."""
    found = [
        (int(match["number"]), entry.read_text(encoding="utf-8"))
        for entry in files(__name__).iterdir()
        if (match := _FILE.fullmatch(entry.name))
    ]
    return tuple(sorted(found))


def head() -> int:
    """The newest step this program knows."""
    return max(number for number, _ in steps())


def reached(connection: sqlite3.Connection) -> int:
    """The step that the database has reached; 0 for an empty one."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection, *, name: str) -> None:
    """Bring the database to `head`, each step in one exclusive transaction. ``name`` is the file, for the sentence.

    Raises:
        StorageUnusable: a newer program wrote the file.
    """
    if (version := reached(connection)) > head():
        raise StorageUnusable(
            f"{name} was written by a newer workspaced (schema {version}; this one knows up to {head()}). "
            "Start that version again."
        )
    for number, sql in steps():
        connection.execute("BEGIN EXCLUSIVE")
        try:
            if reached(connection) < number:  # asked inside the lock: another process may have been faster
                for statement in _statements(sql):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {number}")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")


def _statements(sql: str) -> list[str]:
    """Cut a script at the semicolons where SQLite itself says that a statement is complete."""
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
