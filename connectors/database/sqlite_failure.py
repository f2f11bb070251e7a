"""SQLite's errors as sentences, classified by what to do."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from connectors.database.failure import one_line
from connectors.database.limits import Deadline
from connectors.database.options import DatabaseOptions
from ingestd.sdk import SourceBroken, SourceError, SourceUnavailable

_BROKEN = frozenset({1, 8, 11, 20, 23, 25, 26})  # error, readonly, corrupt, mismatch, auth, range, not a database
_BUSY, _INTERRUPT, _FULL, _CANTOPEN = 5, 9, 13, 14
_HOT_JOURNAL = 776  # SQLITE_READONLY_ROLLBACK
_NO_SHARED_MEMORY = frozenset({264, 1288, 1544})  # SQLITE_READONLY_RECOVERY, _CANTINIT, _DIRECTORY


class SqliteFailure:
    """Translates the errors of one file."""

    def __init__(self, options: DatabaseOptions, path: Path) -> None:
        self._options = options
        self._path = path
        self._where = options.address()

    def of(self, error: sqlite3.Error, deadline: Deadline) -> SourceError:  # noqa: PLR0911 - one return for each cause
        """Return the error for a connection or a statement that failed."""
        words = one_line(error)
        code = getattr(error, "sqlite_errorcode", 1)
        if code & 0xFF == _INTERRUPT:
            return deadline.exceeded()
        if code & 0xFF == _BUSY or words == "database is locked":
            return SourceUnavailable(
                f"The database {self._where} can't be read because another program writes to it for longer than"
                f" {self._options.lock_timeout_seconds:g} seconds (lock_timeout_seconds)."
            )
        if code & 0xFF == _FULL:
            return SourceUnavailable(
                f"The database {self._where} can't be copied for the reading: the system's temporary folder is full (TMPDIR)."
            )
        if code == _HOT_JOURNAL:
            return SourceBroken(
                f"The database {self._where} was left in the middle of a write: {self._path.name}-journal holds what must be"
                " undone, and ingestd never writes to the file. Open the file once with the program that owns it, or with"
                f" sqlite3 {self._path.name} 'SELECT count(*) FROM sqlite_master' by a user that may write it."
            )
        if code in _NO_SHARED_MEMORY or (code & 0xFF == _CANTOPEN and os.access(self._path, os.R_OK)):
            return SourceBroken(
                f"The database {self._where} is in WAL mode, and ingestd may not write to its folder, where SQLite needs the file"
                f" {self._path.name}-shm. Let the user of ingestd write to the folder, keep the program that owns the file"
                " running, or let it set PRAGMA journal_mode = DELETE."
            )
        if code & 0xFF not in _BROKEN:
            return SourceUnavailable(f"The database {self._where} can't be reached: {words}.")
        return SourceBroken(f"The database {self._where} refuses the reading: {words}.")
