"""PostgreSQL as this service uses it (contract P2): READ COMMITTED, with locks on the rows that a transaction will change."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import TypeAlias

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus

from workspaced.core.problems import UnavailableProblem
from workspaced.storage.port import NO_VALUES, JsonRows, Row, Transaction, Values
from workspaced.storage.postgres_connection import PostgresConnection, outcome_unknown
from workspaced.storage.statements import Statement

CHANNEL = "workspaced"
"""The only PostgreSQL channel of the service. The payload names the channel of `Store.listen`."""
# Up to this many rows an INSERT from JSON is cheaper than a COPY, which needs two additional round trips.
_JSON_ROWS = 200
_BEGIN_WRITE = "BEGIN"
_BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_][a-z0-9_]*)")
_COMMENT = re.compile(r"^--.*\n?", re.MULTILINE)
_INSERT = re.compile(r"INSERT INTO (?P<table>\w+) \((?P<columns>[^)]+)\) VALUES\s*", re.DOTALL)

Params: TypeAlias = Values | Sequence[object]


def notify(connection: PostgresConnection, channels: Collection[str], *, sender: str = "") -> None:
    """Wake the listeners of the channels in all processes except ``sender``, which has already woken its own listeners.

    Call this function after the commit of a write. All transactions that notify share one lock until they are durable.
    """
    for channel in sorted(channels):
        connection.execute("SELECT pg_notify(%s, %s)", [CHANNEL, f"{channel} {sender}"])


class _Waiting:
    """A statement that is sent together with the next statement, and its rows if ``wants_rows``."""

    __slots__ = ("rows", "statement", "values", "wants_rows")

    def __init__(self, statement: str, values: Params, *, wants_rows: bool = False) -> None:
        self.statement = statement
        self.values = values
        self.wants_rows = wants_rows
        self.rows: list[Row] | None = None


class PostgresTransaction(Transaction):
    """`workspaced.storage.port.Transaction` of a connection.

    A statement without a result (`later`), or with a result that is read later (`ask`), is held. A held statement is sent
    in the round trip of the next statement with a result, or of the commit. BEGIN is held, too.
    """

    def __init__(self, connection: PostgresConnection, *, write: bool, has_begun: bool = False) -> None:
        """``has_begun``: the connection is in a transaction already, or commits each statement separately."""
        super().__init__()
        self._connection = connection
        self._write = write
        self._cursors = 0
        begin = _Waiting(_BEGIN_WRITE if write else _BEGIN_READ, NO_VALUES)
        self._waiting: list[_Waiting] = [] if has_begun else [begin]
        self.touched = 0
        """The number of statements so far that may have changed data."""

    def one(self, statement: str, values: Values = NO_VALUES, /) -> Row | None:
        """Return the first row, if there is one."""
        return self._send(self._translate(statement), values).fetchone()

    def all(self, statement: str, values: Values = NO_VALUES, /) -> list[Row]:
        """Return all rows."""
        return self._send(self._translate(statement), values).fetchall()

    def ask(self, statement: str, values: Values = NO_VALUES, /) -> Callable[[], list[Row]]:
        """Hold the statement until the next statement is sent, or until its rows are read."""
        asked = _Waiting(self._translate(statement), values, wants_rows=True)
        self._waiting.append(asked)

        def rows() -> list[Row]:
            if asked.rows is None:
                self._send_waiting()
            if asked.rows is None:
                raise LookupError(f"the statement was undone before its rows were read: {statement}")
            return asked.rows

        return rows

    def chunks(self, statement: str, values: Values, size: int, /) -> Iterator[list[Row]]:
        """Yield all rows, at most ``size`` at a time; unread rows stay on the server."""
        self._send_waiting()
        self._cursors += 1
        with self._connection.cursor(name=f"chunks_{self._cursors}") as cursor:
            cursor.execute(self._translate(statement), values)
            while rows := cursor.fetchmany(size):
                yield rows

    def run(self, statement: str, values: Values = NO_VALUES, /) -> int:
        """Run the statement, unless its text for PostgreSQL is empty; return how many rows it changed."""
        translated = self._translate(statement)
        return self._send(translated, values).rowcount if translated else 0

    def later(self, statement: str, values: Values = NO_VALUES, /) -> None:
        """Hold the statement until the next statement or the commit is sent."""
        if translated := self._translate(statement):
            self._waiting.append(_Waiting(translated, values))

    def load(self, statement: str, rows: Sequence[Row], /) -> None:
        """Insert rows: a small number with the next statement, a larger number by COPY.

        If the statement has no text for PostgreSQL, insert nothing.
        """
        if not rows or not (insert := self._translate(statement)):
            return
        if len(rows) <= _JSON_ROWS:
            columns, translated = _insert_of_json(insert)
            records = JsonRows([dict(zip(columns, _json_row(row), strict=True)) for row in rows])
            self._waiting.append(_Waiting(translated, [records]))
            return
        self._send_waiting()  # a COPY can't be sent together with other statements
        with self._connection.cursor() as cursor, cursor.copy(_copy(insert)) as copying:
            for row in rows:
                copying.write_row(row)

    def commit(self) -> None:
        """Insert the deferred rows and commit. The caller sends the notifications afterwards (`notify`)."""
        for statement, rows in self._rows_by_statement().items():
            self.load(statement, rows)
        if self._connection.info.transaction_status != TransactionStatus.IDLE or len(self._waiting) > 1:
            ended = self._send("COMMIT", NO_VALUES).statusmessage
            if ended != "COMMIT":  # the server rolls a failed transaction back without an error
                raise psycopg.errors.InFailedSqlTransaction(f"the commit ended with {ended}: a statement had failed")

    def _send(self, translated: str, values: Params) -> psycopg.Cursor[Row]:
        """Run the waiting statements and then ``translated``, in one round trip. Raise the first error."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return self._connection.execute(translated, values)
        with self._connection.pipeline():
            sent = [(one, self._connection.execute(one.statement, one.values)) for one in waiting]
            last = self._connection.execute(translated, values)
        for one, cursor in sent:
            if one.wants_rows:
                one.rows = cursor.fetchall()
        return last

    def _send_waiting(self) -> None:
        if self._waiting:
            last = self._waiting.pop()
            cursor = self._send(last.statement, last.values)
            if last.wants_rows:
                last.rows = cursor.fetchall()

    def _execute(self, statement: str) -> None:
        self._send(statement, NO_VALUES)

    def _roll_back_to(self, savepoint: str) -> None:
        self._waiting.clear()  # held statements are newer than the savepoint: it was sent with all earlier statements
        if not self._connection.broken:
            self._execute(f"ROLLBACK TO {savepoint}")
            self._execute(f"RELEASE {savepoint}")

    def _translate(self, statement: str) -> str:
        if isinstance(statement, Statement):
            statement = statement.locking if self._write else statement.postgres
        translated = _translated(statement)
        if translated and not translated.startswith("SELECT"):
            self.touched += 1
        return translated


class RolledBack(Exception):
    """The transaction was rolled back because of concurrent changes, or never reached the server; it may be repeated."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason))
        self.reason = reason


@contextmanager
def transaction(connection: PostgresConnection, *, write: bool) -> Iterator[PostgresTransaction]:
    """Run one transaction: commit when the context ends normally, or roll back when it ends with an exception.

    Raises:
        RolledBack: the transaction may be repeated.
        UnavailableProblem: the transaction can't be done now. Or its outcome is unknown, because the connection was lost during
            the commit, or the commit was not replicated.
    """
    committing = False
    try:
        begun = PostgresTransaction(connection, write=write)
        try:
            yield begun
            committing = True
            begun.commit()
            connection.require_replicated()
        except BaseException:
            if not connection.closed and connection.info.transaction_status != TransactionStatus.IDLE:
                connection.execute("ROLLBACK")
            raise
    except psycopg.Error as error:
        if connection.closed and committing and write:
            raise outcome_unknown("The connection to the database was lost in the commit") from error
        if connection.closed or isinstance(error, REPEATABLE):
            raise RolledBack(error) from error
        raise as_problem(error) from error


REPEATABLE = (
    psycopg.errors.SerializationFailure,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.UniqueViolation,
    psycopg.errors.ForeignKeyViolation,
)
"""Errors caused by concurrent changes between reading and writing. A repetition reads again and reports the real problem."""


def as_problem(error: Exception) -> Exception:
    """Return the problem for an error of the database. Errors of this program, such as a wrong statement, are not converted."""
    match error:
        case (
            psycopg.errors.SerializationFailure()
            | psycopg.errors.DeadlockDetected()
            | psycopg.errors.LockNotAvailable()
        ):
            return UnavailableProblem("storage_busy", "The database is busy: try again in a moment.")
        case psycopg.errors.DiskFull():
            return UnavailableProblem("storage_full", "The disk that holds the database is full.", retry_seconds=30)
        case psycopg.errors.ReadOnlySqlTransaction():
            return UnavailableProblem(
                "storage_failed", "The database accepts no writes: it is a standby.", retry_seconds=5
            )
        case psycopg.OperationalError() | psycopg.InterfaceError() if not isinstance(
            error, psycopg.errors.QueryCanceled
        ):
            return UnavailableProblem("storage_lost", "The connection to the database was lost.", retry_seconds=5)
    return error


@cache
def _translated(statement: str) -> str:
    return _PARAMETER.sub(r"%(\1)s", _COMMENT.sub("", statement).replace("%", "%%")).lstrip()


@lru_cache(maxsize=64)
def _copy(statement: str) -> sql.SQL:
    table, columns = _target(statement)
    return sql.SQL(f"COPY {table} ({columns}) FROM STDIN")  # from our own .sql file


@lru_cache(maxsize=64)
def _insert_of_json(statement: str) -> tuple[list[str], str]:
    """Return the columns of a statement of `load`, and a statement that inserts a JSON array of rows with these columns."""
    table, columns = _target(statement)
    insert = f"INSERT INTO {table} ({columns}) SELECT {columns} FROM json_populate_recordset(NULL::{table}, %s)"
    return [column.strip() for column in columns.split(",")], insert


def _target(statement: str) -> tuple[str, str]:
    match = _INSERT.fullmatch(statement)
    if match is None:
        raise ValueError(f"a statement to load rows must be INSERT INTO table (columns) VALUES: {statement}")
    return match["table"], match["columns"]


def _json_row(row: Row) -> Row:
    """Return the values in the form in which PostgreSQL reads them from JSON."""
    if bytes not in map(type, row):  # this check saves a tenth of the writer's time
        return row
    return tuple(f"\\x{value.hex()}" if isinstance(value, bytes) else value for value in row)
