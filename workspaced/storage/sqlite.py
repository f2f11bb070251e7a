"""SQLite as this service uses it (contract P1): WAL, synchronous=FULL, transactions begun by our own hand."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain
from pathlib import Path

from workspaced.core.problems import UnavailableProblem
from workspaced.storage.port import Row, Values

BUSY_SECONDS = 5.0
_CACHE_KIB = 65_536
# A checkpoint every 64 MB of log instead of every 4: bulk on random keys rewrites the same pages many times over.
_CHECKPOINT_PAGES = 16_384
_ROWS_A_STATEMENT = 500
_DEFERRED_A_STATEMENT = 128
_NO_VALUES: Values = {}


def connect(path: Path, *, readonly: bool = False, busy_seconds: float = BUSY_SECONDS) -> sqlite3.Connection:
    """An open connection in autocommit, so that no transaction begins unless we say so.

    It may be used from any thread, by one at a time.
    """
    connection = sqlite3.connect(
        path, timeout=busy_seconds, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB if not readonly else _CACHE_KIB // 8}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    if readonly:
        connection.execute("PRAGMA query_only = ON")
    else:  # the staging table; a reader's sorting may be large and goes to a file
        connection.execute("PRAGMA temp_store = MEMORY")
    return connection


class SqliteTransaction:
    """`workspaced.storage.port.Transaction` on a connection inside a transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._depth = 0
        self._deferred: list[tuple[str, Row]] = []
        self.notified: set[str] = set()

    def one(self, statement: str, values: Values = _NO_VALUES, /) -> Row | None:
        """The first row, if there is one."""
        cursor = self._connection.execute(statement, values)
        row: Row | None = cursor.fetchone()
        cursor.close()  # a statement left half read would keep its lock
        return row

    def all(self, statement: str, values: Values = _NO_VALUES, /) -> list[Row]:
        """Every row."""
        return self._connection.execute(statement, values).fetchall()

    def chunks(self, statement: str, values: Values, size: int, /) -> Iterator[list[Row]]:
        """Every row, at most ``size`` at a time."""
        cursor = self._connection.execute(statement, values)
        try:
            while rows := cursor.fetchmany(size):
                yield rows
        finally:
            cursor.close()

    def run(self, statement: str, values: Values = _NO_VALUES, /) -> int:
        """Do it; how many rows it changed."""
        return self._connection.execute(statement, values).rowcount

    def load(self, statement: str, rows: Sequence[Row], /) -> None:
        """Insert many rows, hundreds a statement: each step gives up the interpreter's lock once, not once a row."""
        for start in range(0, len(rows), _ROWS_A_STATEMENT):
            part = rows[start : start + _ROWS_A_STATEMENT]
            self._connection.execute(_many(statement, len(part[0]), len(part)), list(chain.from_iterable(part)))

    def defer(self, statement: str, row: Row, /) -> None:
        """Remember the row for `finish`."""
        self._deferred.append((statement, row))

    @property
    def deferred(self) -> int:
        """How many rows are put off by now."""
        return len(self._deferred)

    def forget(self, deferred: int) -> None:
        """Drop the rows that were put off after there were so many."""
        del self._deferred[deferred:]

    def finish(self) -> None:
        """Insert the rows that were put off: some hundreds cost little more than one.

        Their number is cut into powers of two, since SQLite keeps what it has compiled for few numbers of rows only.
        """
        by_statement: dict[str, list[Row]] = {}
        for statement, row in self._deferred:
            by_statement.setdefault(statement, []).append(row)
        self._deferred.clear()
        for statement, rows in by_statement.items():
            start = 0
            while start < len(rows):
                count = min(1 << (len(rows) - start).bit_length() - 1, _DEFERRED_A_STATEMENT)
                self.load(statement, rows[start : start + count])
                start += count

    def notify(self, channel: str, /) -> None:
        """Remember the channel; whoever commits tells it on."""
        self.notified.add(channel)

    @contextmanager
    def nested(self) -> Iterator[None]:
        """A savepoint around the block."""
        self._depth += 1
        deferred = len(self._deferred)
        name = f"nested_{self._depth}"
        self._connection.execute(f"SAVEPOINT {name}")
        try:
            yield
        except BaseException:
            self.forget(deferred)
            if self._connection.in_transaction:  # a full disk makes SQLite roll everything back by itself
                self._connection.execute(f"ROLLBACK TO {name}")
                self._connection.execute(f"RELEASE {name}")
            raise
        else:
            self._connection.execute(f"RELEASE {name}")
        finally:
            self._depth -= 1


@contextmanager
def transaction(connection: sqlite3.Connection, *, write: bool) -> Iterator[SqliteTransaction]:
    """One transaction: kept when the block ends, undone when it raises.

    A writing one takes the lock at once: one that reads first and then writes fails under concurrency whatever the
    timeout is (contract P1).

    Raises:
        Unavailable: SQLite could not (busy after its timeout, disk full, input/output error).
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
    """What a caller is told when SQLite can't; our own mistakes (a wrong statement, say) stay what they are."""
    code = error.sqlite_errorcode & 0xFF
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return UnavailableProblem("storage_busy", "The database is busy: try again in a moment.")
    if code == sqlite3.SQLITE_FULL:
        return UnavailableProblem("storage_full", "The disk that holds the database is full.", retry_seconds=30)
    if code in {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}:
        return UnavailableProblem("storage_failed", f"The database file can't be used ({error}).", retry_seconds=5)
    return error


@lru_cache(maxsize=64)
def _many(statement: str, columns: int, rows: int) -> str:
    row = f"({','.join('?' * columns)})"
    return f"{statement} {','.join([row] * rows)}"
