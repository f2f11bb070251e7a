"""PostgreSQL as this service uses it (contract P2): READ COMMITTED, with row locks on what a transaction will change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from itertools import chain
from typing import Any, TypeAlias

import psycopg
from psycopg import sql
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.types.numeric import Int8Dumper

from workspaced.core.problems import UnavailableProblem
from workspaced.storage.address import PostgresAddress
from workspaced.storage.port import NO_VALUES, PasswordRefused, Row, Transaction, Values, insert_of
from workspaced.storage.statements import Statement

CONNECT_SECONDS = 5
CHANNEL = "workspaced"
"""The only channel of PostgreSQL that the service uses; its own channels are in the payload."""
LOCK_SECONDS = 5.0
# Below this many rows an INSERT is cheaper than the two round trips of a COPY.
_COPIED_ROWS = 24
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_][a-z0-9_]*)")
_COMMENT = re.compile(r"^--.*\n?", re.MULTILINE)
_INSERT = re.compile(r"INSERT INTO (?P<table>\w+) \((?P<columns>[^)]+)\) VALUES\s*", re.DOTALL)

Connection: TypeAlias = "psycopg.Connection[Row]"


class _FlagDumper(Dumper):
    """Booleans are stored as 1 and 0, as in SQLite."""

    oid = psycopg.postgres.types["int8"].oid

    def dump(self, obj: Any) -> Buffer:
        return b"1" if obj else b"0"


def connect(address: PostgresAddress, *, lock_seconds: float = LOCK_SECONDS) -> Connection:
    """Return an open connection in autocommit mode, so that transactions begin only explicitly.

    It may be used from any thread, by one at a time. Waiting for a locked row ends after ``lock_seconds``.

    Raises:
        UnavailableProblem: the server can't be reached or refuses the connection; the message contains no password. It is a
            `PasswordRefused` if the password is the reason.
    """
    try:
        connection = psycopg.connect(**_parameters(address), autocommit=True)  # type: ignore[arg-type]  # all are text
    except psycopg.Error as error:
        raise unreachable(address, error) from None  # its context may contain the parameters
    # All integers are bigint, so that a statement is prepared once, whatever the size of its numbers.
    connection.adapters.register_dumper(int, Int8Dumper)
    connection.adapters.register_dumper(bool, _FlagDumper)
    try:
        connection.execute(_SESSION, [str(int(lock_seconds * 1_000))])
    except psycopg.Error as error:
        connection.close()
        raise unreachable(address, error) from None
    return connection


async def connect_to_listen(address: PostgresAddress) -> psycopg.AsyncConnection[Row]:
    """Return a connection for LISTEN. Raises UnavailableProblem: see `connect`."""
    try:
        return await psycopg.AsyncConnection.connect(**_parameters(address), autocommit=True)  # type: ignore[arg-type]
    except psycopg.Error as error:
        raise unreachable(address, error) from None


def _parameters(address: PostgresAddress) -> dict[str, str]:
    """Return libpq's parameters; a silent peer is detected within a minute."""
    defaults = {
        "connect_timeout": str(CONNECT_SECONDS),
        "application_name": "workspaced",
        "client_encoding": "UTF8",
        "keepalives_idle": "20",
        "keepalives_interval": "10",
        "keepalives_count": "3",
    }
    return {**defaults, **dict(address.parameters)}


# An acknowledged write survives a loss of power whatever the server's default is; stricter settings stay. Statements must use
# indexes, because a plan that was made while a table was empty must not read all of it later. A staging table has no index,
# so its plans look expensive; without `jit = off` the planner would compile them.
_SESSION = """
SELECT set_config('default_transaction_isolation', 'read committed', false),
       set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
                                        ELSE current_setting('synchronous_commit') END, false),
       set_config('lock_timeout', %s, false),
       set_config('enable_seqscan', 'off', false), set_config('jit', 'off', false)
"""


class PostgresTransaction(Transaction):
    """`workspaced.storage.port.Transaction` of a connection inside a transaction."""

    def __init__(self, connection: Connection, *, write: bool) -> None:
        super().__init__()
        self._connection = connection
        self._write = write
        self._cursors = 0
        self.touched = 0
        """How many statements so far may have changed something."""

    def one(self, statement: str, values: Values = NO_VALUES, /) -> Row | None:
        """The first row, if there is one."""
        return self._connection.execute(self._translate(statement), values).fetchone()

    def all(self, statement: str, values: Values = NO_VALUES, /) -> list[Row]:
        """Every row."""
        return self._connection.execute(self._translate(statement), values).fetchall()

    def chunks(self, statement: str, values: Values, size: int, /) -> Iterator[list[Row]]:
        """Yield all rows, at most ``size`` at a time; the rest stays on the server."""
        self._cursors += 1
        with self._connection.cursor(name=f"chunks_{self._cursors}") as cursor:
            cursor.execute(self._translate(statement), values)
            while rows := cursor.fetchmany(size):
                yield rows

    def run(self, statement: str, values: Values = NO_VALUES, /) -> int:
        """Do it; how many rows it changed."""
        return self._connection.execute(self._translate(statement), values).rowcount

    def load(self, statement: str, rows: Sequence[Row], /) -> None:
        """Insert many rows: few by one INSERT, many by COPY."""
        if not rows:
            return
        self.touched += 1
        if len(rows) < _COPIED_ROWS:
            insert = insert_of(statement, len(rows[0]), len(rows), "%s")
            self._connection.execute(insert, list(chain.from_iterable(rows)))
            return
        with self._connection.cursor() as cursor, cursor.copy(_copy(statement)) as copying:
            for row in rows:
                copying.write_row(row)

    def finish(self) -> None:
        """Insert the deferred rows and send the notifications."""
        for statement, rows in self._rows_by_statement().items():
            self.load(statement, rows)
        for channel in sorted(self.notified):
            self._connection.execute("SELECT pg_notify(%s, %s)", [CHANNEL, channel])

    def _execute(self, statement: str) -> None:
        self._connection.execute(statement.encode())

    def _roll_back_to(self, savepoint: str) -> None:
        if not self._connection.broken:
            self._execute(f"ROLLBACK TO {savepoint}; RELEASE {savepoint}")

    def _translate(self, statement: str) -> str:
        if isinstance(statement, Statement):
            statement = statement.locking if self._write else statement.postgres
        translated = _translated(statement)
        if not translated.startswith("SELECT"):
            self.touched += 1
        return translated


class RolledBack(Exception):
    """The transaction was rolled back because of concurrent changes, or never reached the server; it may be repeated."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason))
        self.reason = reason


@contextmanager
def transaction(connection: Connection, *, write: bool) -> Iterator[PostgresTransaction]:
    """Run one transaction: committed when the block ends, rolled back when it raises.

    Raises:
        RolledBack: it may be repeated.
        UnavailableProblem: it can't be done now, or the connection was lost during the commit, so its outcome is unknown.
    """
    committing = False
    try:
        connection.execute("BEGIN" if write else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            begun = PostgresTransaction(connection, write=write)
            yield begun
            begun.finish()
            committing = True
            connection.execute("COMMIT")
        except BaseException:
            if not connection.closed:
                connection.execute("ROLLBACK")
            raise
    except psycopg.Error as error:
        if connection.closed and committing and write:
            raise UnavailableProblem(
                "storage_lost",
                "The connection to the database was lost in the commit, so it is not known whether the change was made. "
                "Read before you repeat it, or repeat it with an Idempotency-Key.",
            ) from error
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
    """Return the problem for an error of the database; errors of this program, such as a wrong statement, stay as they are."""
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


def unreachable(address: PostgresAddress, error: psycopg.Error) -> UnavailableProblem:
    """Return a problem with the message of the server or the driver, without a password."""
    message = " ".join(str(error).split())
    for name, value in address.parameters:
        if "password" in name:
            message = message.replace(value, "…")
    why = f"The database {address} can't be used: {message}"
    if _is_about_the_password(error):
        return PasswordRefused("storage_refused", f"{why}. {_PASSWORD_REMEDY}", retry_seconds=30)
    return UnavailableProblem("storage_away", why, retry_seconds=5)


# libpq provides no SQLSTATE for a refused connection, so only the server's message identifies a wrong password. A message in
# another language than English counts as an unavailable server.
_WRONG_PASSWORD = "password authentication failed"  # noqa: S105  the server's message, no password
_PASSWORD_REMEDY = (
    "Set the right password in PGPASSWORD, ~/.pgpass or the URL, in which special characters are percent-encoded."  # noqa: S105
)


def _is_about_the_password(error: psycopg.Error) -> bool:
    missing = error.pgconn is not None and error.pgconn.needs_password
    return missing or _WRONG_PASSWORD in str(error)


@cache
def _translated(statement: str) -> str:
    return _PARAMETER.sub(r"%(\1)s", _COMMENT.sub("", statement).replace("%", "%%")).lstrip()


@lru_cache(maxsize=64)
def _copy(statement: str) -> sql.SQL:
    match = _INSERT.fullmatch(statement)
    if match is None:
        raise ValueError(f"a statement to load rows must be INSERT INTO table (columns) VALUES: {statement}")
    return sql.SQL(f"COPY {match['table']} ({match['columns']}) FROM STDIN")  # from our own .sql file
