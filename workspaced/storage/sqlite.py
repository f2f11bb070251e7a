"""SQLite as this service uses it (contract P1): WAL, synchronous=FULL, transactions that begin explicitly."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain
from pathlib import Path

from workspaced.core.problems import UnavailableProblem
from workspaced.core.sort_keys import natural_key, number_of
from workspaced.storage.port import NO_VALUES, Row, Transaction, Values

BUSY_SECONDS = 5.0
_CACHE_KIB = 65_536
# A checkpoint for every 64 MB of log instead of every 4 MB: bulk writes on random keys rewrite the same pages many times.
_CHECKPOINT_PAGES = 16_384
_ROWS_A_STATEMENT = 500
_DEFERRED_A_STATEMENT = 128


def connect(path: Path, *, readonly: bool = False, busy_seconds: float = BUSY_SECONDS) -> sqlite3.Connection:
    """Return an open connection in autocommit mode, so that transactions begin only explicitly.

    Any thread may use the connection, but only one thread at a time.
    """
    connection = sqlite3.connect(
        path, timeout=busy_seconds, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    connection.create_function("number_of", 1, number_of, deterministic=True)
    connection.create_function("natural_key", 1, natural_key, deterministic=True)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB if not readonly else _CACHE_KIB // 8}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    if readonly:
        connection.execute("PRAGMA query_only = ON")
    else:  # the writer's staging table is in memory; a reader may sort many rows, so it uses a file
        connection.execute("PRAGMA temp_store = MEMORY")
    return connection


class SqliteTransaction(Transaction):
    """`workspaced.storage.port.Transaction` of a connection inside a transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__()
        self._connection = connection

    def one(self, statement: str, values: Values = NO_VALUES, /) -> Row | None:
        """Return the first row, if there is one."""
        cursor = self._connection.execute(statement, values)
        row: Row | None = cursor.fetchone()
        cursor.close()  # a statement with unread rows would keep its lock
        return row

    def all(self, statement: str, values: Values = NO_VALUES, /) -> list[Row]:
        """Return all rows."""
        return self._connection.execute(statement, values).fetchall()

    def chunks(self, statement: str, values: Values, size: int, /) -> Iterator[list[Row]]:
        """Yield all rows, at most ``size`` at a time."""
        cursor = self._connection.execute(statement, values)
        try:
            while rows := cursor.fetchmany(size):
                yield rows
        finally:
            cursor.close()

    def run(self, statement: str, values: Values = NO_VALUES, /) -> int:
        """Run a statement; return how many rows it changed."""
        return self._connection.execute(statement, values).rowcount

    def load(self, statement: str, rows: Sequence[Row], /) -> None:
        """Insert many rows, hundreds per statement. A statement releases the interpreter's lock once, not once for each row."""
        for start in range(0, len(rows), _ROWS_A_STATEMENT):
            part = rows[start : start + _ROWS_A_STATEMENT]
            self._connection.execute(_insert_of(statement, len(part[0]), len(part)), list(chain.from_iterable(part)))

    def finish(self) -> None:
        """Insert the deferred rows together: hundreds of rows take little more time than one row.

        The rows are inserted in groups of a power of two, because SQLite caches a compiled statement for each number of rows.
        """
        for statement, rows in self._rows_by_statement().items():
            start = 0
            while start < len(rows):
                count = min(1 << (len(rows) - start).bit_length() - 1, _DEFERRED_A_STATEMENT)
                self.load(statement, rows[start : start + count])
                start += count

    def _execute(self, statement: str) -> None:
        self._connection.execute(statement)

    def _roll_back_to(self, savepoint: str) -> None:
        if self._connection.in_transaction:  # on a full disk SQLite itself rolls everything back
            self._execute(f"ROLLBACK TO {savepoint}")
            self._execute(f"RELEASE {savepoint}")


@lru_cache(maxsize=128)
def _insert_of(statement: str, columns: int, rows: int) -> str:
    """Return the INSERT of several rows."""
    row = f"({','.join(['?'] * columns)})"
    return f"{statement} {','.join([row] * rows)}"


@contextmanager
def transaction(connection: sqlite3.Connection, *, write: bool) -> Iterator[SqliteTransaction]:
    """Run one transaction: commit when the context ends normally, or roll back when it ends with an exception.

    A writing transaction takes the write lock at its beginning. A transaction that reads before it takes the lock can fail
    under concurrency, with any timeout (contract P1).

    Raises:
        UnavailableProblem: SQLite failed (busy after its timeout, disk full, input/output error).
    """
    try:
        connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        try:
            begun = SqliteTransaction(connection)
            yield begun
            begun.finish()
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        else:
            connection.execute("COMMIT")
    except sqlite3.OperationalError as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise as_problem(error) from error


def as_problem(error: sqlite3.OperationalError) -> Exception:
    """Return the problem for an error of the database. Errors of this program, such as a wrong statement, are not converted."""
    code = error.sqlite_errorcode & 0xFF
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return UnavailableProblem("storage_busy", "The database is busy: try again in a moment.")
    if code == sqlite3.SQLITE_FULL:
        return UnavailableProblem("storage_full", "The disk that holds the database is full.", retry_seconds=30)
    if code in {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}:
        return UnavailableProblem("storage_failed", f"The database file can't be used ({error}).", retry_seconds=5)
    return error
