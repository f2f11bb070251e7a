"""PostgreSQL as this service uses it (contract P2): READ COMMITTED, rows held by whoever will change them."""

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

from ingestd.process.statements import Statement
from workspaced.core.problems import UnavailableProblem
from workspaced.storage.address import PostgresAddress
from workspaced.storage.port import PasswordRefused, Row, Values

CONNECT_SECONDS = 5
CHANNEL = "workspaced"
"""The one channel of PostgreSQL that we use; ours are told apart by what is said on it."""
LOCK_SECONDS = 5.0
# Below this many rows an INSERT is cheaper than the two round trips of a COPY.
_COPIED_ROWS = 24
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_][a-z0-9_]*)")
_COMMENT = re.compile(r"^--.*\n?", re.MULTILINE)
_INSERT = re.compile(r"INSERT INTO (?P<table>\w+) \((?P<columns>[^)]+)\) VALUES\s*", re.DOTALL)
_NO_VALUES: Values = {}

Connection: TypeAlias = "psycopg.Connection[Row]"
Mark: TypeAlias = tuple[int, frozenset[str]]


class _FlagDumper(Dumper):
    """True and False are 1 and 0 in our tables, as SQLite has them."""

    oid = psycopg.postgres.types["int8"].oid

    def dump(self, obj: Any) -> Buffer:
        return b"1" if obj else b"0"


def connect(address: PostgresAddress, *, lock_seconds: float = LOCK_SECONDS) -> Connection:
    """An open connection in autocommit, so that no transaction begins unless we say so.

    It may be used from any thread, by one at a time. A wait for a row that somebody else holds ends after ``lock_seconds``.

    Raises:
        UnavailableProblem: the server can't be reached or refuses us; the sentence has no password. It is a `PasswordRefused`
            where the server was reached and the password is the matter.
    """
    try:
        connection = psycopg.connect(**_parameters(address), autocommit=True)  # type: ignore[arg-type]  # all are text
    except psycopg.Error as error:
        raise unreachable(address, error) from None  # its context may hold the parameters
    # Every whole number is a bigint, so that one statement is prepared once, whatever the size of its numbers.
    connection.adapters.register_dumper(int, Int8Dumper)
    connection.adapters.register_dumper(bool, _FlagDumper)
    try:
        connection.execute(_SESSION, [str(int(lock_seconds * 1_000))])
    except psycopg.Error as error:
        connection.close()
        raise unreachable(address, error) from None
    return connection


async def connect_to_listen(address: PostgresAddress) -> psycopg.AsyncConnection[Row]:
    """A connection for LISTEN.

    Raises:
        UnavailableProblem: as `connect`.
    """
    try:
        return await psycopg.AsyncConnection.connect(**_parameters(address), autocommit=True)  # type: ignore[arg-type]
    except psycopg.Error as error:
        raise unreachable(address, error) from None


def _parameters(address: PostgresAddress) -> dict[str, str]:
    """A silent end of the network is noticed within a minute."""
    ours = {
        "connect_timeout": str(CONNECT_SECONDS),
        "application_name": "workspaced",
        "client_encoding": "UTF8",
        "keepalives_idle": "20",
        "keepalives_interval": "10",
        "keepalives_count": "3",
    }
    return {**ours, **dict(address.parameters)}


# An acknowledged write survives loss of power whatever the server's own default is; stricter ones stay. Statements are made to
# walk an index; a plan that was made while a table was empty must not read all of it later. A staging table has none to walk,
# which looks expensive to the planner and must not make it compile.
_SESSION = """
SELECT set_config('default_transaction_isolation', 'read committed', false),
       set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
                                        ELSE current_setting('synchronous_commit') END, false),
       set_config('lock_timeout', %s, false),
       set_config('enable_seqscan', 'off', false), set_config('jit', 'off', false)
"""


class PostgresTransaction:
    """`workspaced.storage.port.Transaction` on a connection inside a transaction."""

    def __init__(self, connection: Connection, *, write: bool) -> None:
        self._connection = connection
        self._write = write
        self._depth = 0
        self._cursors = 0
        self._deferred: list[tuple[str, Row]] = []
        self._notified: set[str] = set()
        self.touched = 0
        """How many statements may have changed something by now."""

    def one(self, statement: str, values: Values = _NO_VALUES, /) -> Row | None:
        """The first row, if there is one."""
        return self._connection.execute(self._spoken(statement), values).fetchone()

    def all(self, statement: str, values: Values = _NO_VALUES, /) -> list[Row]:
        """Every row."""
        return self._connection.execute(self._spoken(statement), values).fetchall()

    def chunks(self, statement: str, values: Values, size: int, /) -> Iterator[list[Row]]:
        """Every row, at most ``size`` at a time; the rest stays at the server."""
        self._cursors += 1
        with self._connection.cursor(name=f"chunks_{self._cursors}") as cursor:
            cursor.execute(self._spoken(statement), values)
            while rows := cursor.fetchmany(size):
                yield rows

    def run(self, statement: str, values: Values = _NO_VALUES, /) -> int:
        """Do it; how many rows it changed."""
        return self._connection.execute(self._spoken(statement), values).rowcount

    def load(self, statement: str, rows: Sequence[Row], /) -> None:
        """Insert many rows: few by one INSERT, many by COPY."""
        if not rows:
            return
        self.touched += 1
        if len(rows) < _COPIED_ROWS:
            self._connection.execute(_many(statement, len(rows[0]), len(rows)), list(chain.from_iterable(rows)))
            return
        with self._connection.cursor() as cursor, cursor.copy(_copy(statement)) as copying:
            for row in rows:
                copying.write_row(row)

    def defer(self, statement: str, row: Row, /) -> None:
        """Remember the row for `finish`."""
        self._deferred.append((statement, row))

    def notify(self, channel: str, /) -> None:
        """Remember the channel for `finish`: PostgreSQL tells every process that listens, after the commit."""
        self._notified.add(channel)

    def mark(self) -> Mark:
        """What was put off, and what is to be told, by now."""
        return len(self._deferred), frozenset(self._notified)

    def forget(self, mark: Mark) -> None:
        """Drop what was put off or was to be told since."""
        deferred, notified = mark
        del self._deferred[deferred:]
        self._notified = set(notified)

    def finish(self) -> None:
        """Insert the rows that were put off, and say what is to be told."""
        by_statement: dict[str, list[Row]] = {}
        for statement, row in self._deferred:
            by_statement.setdefault(statement, []).append(row)
        self._deferred.clear()
        for statement, rows in by_statement.items():
            self.load(statement, rows)
        for channel in sorted(self._notified):
            self._connection.execute("SELECT pg_notify(%s, %s)", [CHANNEL, channel])

    @contextmanager
    def nested(self) -> Iterator[None]:
        """A savepoint around the block."""
        self._depth += 1
        mark = self.mark()
        name = f"nested_{self._depth}"
        self._connection.execute(f"SAVEPOINT {name}")
        try:
            yield
        except BaseException:
            self.forget(mark)
            if not self._connection.broken:
                self._connection.execute(f"ROLLBACK TO {name}; RELEASE {name}")
            raise
        else:
            self._connection.execute(f"RELEASE {name}")
        finally:
            self._depth -= 1

    def _spoken(self, statement: str) -> str:
        if isinstance(statement, Statement):
            statement = statement.holding if self._write else statement.postgres
        spoken = _translated(statement)
        if not spoken.startswith("SELECT"):
            self.touched += 1
        return spoken


class Undone(Exception):
    """The transaction was undone for what others did meanwhile, or never reached the server: it may be done again."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason))
        self.reason = reason


@contextmanager
def transaction(connection: Connection, *, write: bool) -> Iterator[PostgresTransaction]:
    """One transaction: kept when the block ends, undone when it raises.

    Raises:
        Undone: it may be done again.
        UnavailableProblem: it can't be done now, or the connection was lost in the commit, so nobody knows what became of it.
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
                "Look before you repeat it, or repeat it with an Idempotency-Key.",
            ) from error
        if connection.closed or isinstance(error, REPEATABLE):
            raise Undone(error) from error
        raise as_problem(error) from error


REPEATABLE = (
    psycopg.errors.SerializationFailure,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.UniqueViolation,
    psycopg.errors.ForeignKeyViolation,
)
"""What others did between our looking and our writing. After another look a slice says itself what is the matter, if anything."""


def as_problem(error: Exception) -> Exception:
    """What a caller is told when PostgreSQL can't; our own mistakes (a wrong statement, say) stay what they are."""
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
                "storage_failed", "The database takes no writes: it is a standby.", retry_seconds=5
            )
        case psycopg.OperationalError() | psycopg.InterfaceError() if not isinstance(
            error, psycopg.errors.QueryCanceled
        ):
            return UnavailableProblem("storage_lost", "The database is away: the connection was lost.", retry_seconds=5)
    return error


def unreachable(address: PostgresAddress, error: psycopg.Error) -> UnavailableProblem:
    """The server's or the driver's own words, without a password."""
    words = " ".join(str(error).split())
    for name, value in address.parameters:
        if "password" in name:
            words = words.replace(value, "…")
    why = f"The database {address} can't be used: {words}"
    if _is_about_the_password(error):
        return PasswordRefused("storage_refused", f"{why}. {_PASSWORD_REMEDY}", retry_seconds=30)
    return UnavailableProblem("storage_away", why, retry_seconds=5)


# libpq hands on no SQLSTATE of a connection that was refused, so the server's own words have to tell. One that speaks another
# language than English is taken for away.
_WRONG_PASSWORD = "password authentication failed"  # noqa: S105  the server's words, no password
_PASSWORD_REMEDY = (
    "Put the right password into PGPASSWORD, ~/.pgpass or the URL, there with its special characters escaped."  # noqa: S105
)


def _is_about_the_password(error: psycopg.Error) -> bool:
    missing = error.pgconn is not None and error.pgconn.needs_password
    return missing or _WRONG_PASSWORD in str(error)


@cache
def _translated(statement: str) -> str:
    return _PARAMETER.sub(r"%(\1)s", _COMMENT.sub("", statement).replace("%", "%%")).lstrip()


@lru_cache(maxsize=64)
def _many(statement: str, columns: int, rows: int) -> str:
    row = f"({','.join(['%s'] * columns)})"
    return f"{statement} {','.join([row] * rows)}"


@lru_cache(maxsize=64)
def _copy(statement: str) -> sql.SQL:
    match = _INSERT.fullmatch(statement)
    if match is None:
        raise ValueError(f"a statement to load rows must be INSERT INTO table (columns) VALUES: {statement}")
    return sql.SQL(f"COPY {match['table']} ({match['columns']}) FROM STDIN")  # ours, of a .sql file
