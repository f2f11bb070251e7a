"""The clock of the database, which all hosts of a service share."""

from __future__ import annotations

from workspaced.storage.port import ReadTransaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.storage", "clock.sql")


def database_now(reader: ReadTransaction) -> int:
    """Return the time of the database in milliseconds since 1970. The clock also advances within a transaction."""
    return int(reader.existing(_SQL["now"])[0])
