"""Sizes and schema of a state file, without its content; also of a file that this version can't use."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

_STEPS = 100_000
"""SQLite VM instructions between two checks of the time limit."""
_PRAGMAS = ("user_version", "application_id", "page_count", "page_size", "freelist_count", "journal_mode")


def state_facts(path: Path, *, seconds: float) -> dict[str, object]:
    """Return sizes in bytes, the schema, and the row count of each table (None if it is not known after ``seconds``).

    Raises:
        sqlite3.Error: the file is no database, or it is damaged.
    """
    files = {suffix: path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm")}
    facts: dict[str, object] = {
        f"bytes{suffix}": file.stat().st_size if file.exists() else None for suffix, file in files.items()
    }
    if not path.exists():
        return facts
    until = time.monotonic() + seconds
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=seconds)) as connection:
        facts |= {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _PRAGMAS}
        schema = connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type, name").fetchall()
        facts["schema"] = [{"type": kind, "name": name, "sql": sql} for kind, name, sql in schema]
        connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
        tables = [name for kind, name, _ in schema if kind == "table"]
        facts["rows"] = {name: _count(connection, name) for name in tables}
    return facts


def _count(connection: sqlite3.Connection, table: str) -> int | None:
    quoted = table.replace('"', '""')
    try:
        count: int = connection.execute(f'SELECT count(*) FROM "{quoted}"').fetchone()[0]
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", 0) != sqlite3.SQLITE_INTERRUPT:
            raise
        return None
    return count
