"""Connections to PostgreSQL. Every wait for the server ends, and a commit without its synchronous standby is detected."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.abc import RV, Buffer, PQGen
from psycopg.adapt import Dumper
from psycopg.types.numeric import Int8Dumper

from ingestd.process.postgres_address import PostgresAddress
from ingestd.process.postgres_connection import (
    DURABLE_COMMITS,
    LOOK_SECONDS,
    SERVER_WAITS,
    Watched,
    WatchedConnection,
    failure_of,
)
from workspaced.core.json_body import encode
from workspaced.core.problems import UnavailableProblem
from workspaced.storage.port import JsonRows, Row, StorageRefused

LOCK_SECONDS = 5.0


class ListeningConnection(Watched, psycopg.AsyncConnection[Row]):
    """A connection for LISTEN. Each wait ends if the server no longer responds."""

    silent_seconds = 2 * LOOK_SECONDS

    async def wait(self, gen: PQGen[RV], *args: Any, **options: Any) -> RV:
        """See psycopg. Raises ServerSilent: see `watched`."""
        return await super().wait(self.watched(gen), *args, **options)


class PostgresConnection(WatchedConnection):
    """A connection of the service's stores."""

    _may_take_long = False
    lineage = (0, 0)
    """The identifier and the timeline of the database. A promotion begins the next timeline. (0, 0) on a standby."""

    def is_worth_waiting(self, silent: float) -> bool:
        """Return whether the server responds to a login, and the statement may take this long (see `execute_long`)."""
        return (self._may_take_long or super().is_worth_waiting(silent)) and self.responds_to_login()

    def execute_long(self, statement: bytes) -> None:
        """Execute a statement that may take longer than `silent_seconds`, as long as the server responds to logins.

        Raises:
            psycopg.Error: the statement failed, or the server no longer responds.
        """
        self._may_take_long = True
        try:
            self.execute(statement)
        finally:
            self._may_take_long = False

    @property
    def place(self) -> dict[str, str]:
        """The host, address and port of this connection, as libpq's parameters."""
        info = self.info
        given = {"host": info.host, "hostaddr": info.hostaddr, "port": str(info.port)}
        return {name: value for name, value in given.items() if value}

    def responds_to_login(self) -> bool:
        """Return whether the server of this connection responds to a login, even if it refuses the login."""
        given = {**self.info.get_parameters(), **self.place, "password": self.info.password}
        try:
            psycopg.connect(**given).close()  # type: ignore[arg-type]  # all are text
        except psycopg.errors.ConnectionTimeout:
            return False
        except psycopg.Error:
            return True
        return True

    def require_replicated(self) -> None:
        """Raise UnavailableProblem if a commit was not replicated; the connection is then closed."""
        if self.is_unreplicated:
            self.pgconn.finish()
            raise outcome_unknown("The change was stored, but the wait for a synchronous standby was cancelled")


class _FlagDumper(Dumper):
    """Booleans are stored as 1 and 0, as in SQLite."""

    oid = psycopg.postgres.types["int8"].oid

    def dump(self, obj: Any) -> Buffer:
        return b"1" if obj else b"0"


class _JsonDumper(Dumper):
    """JSON without a type, because the statement determines whether the value is json or jsonb."""

    def dump(self, obj: JsonRows) -> Buffer:
        return encode(obj.rows)


def connect(address: PostgresAddress, *, lock_seconds: float = LOCK_SECONDS) -> PostgresConnection:
    """Return an open connection in autocommit mode, so that transactions begin only explicitly.

    Any thread may use the connection, but only one thread at a time. Waiting for a locked row ends after ``lock_seconds``.

    Raises:
        UnavailableProblem: the server can't be reached or refuses the connection; the message contains no password. The problem
            is a `StorageRefused` if the cause is the password, or a pooler that shares sessions.
    """
    try:
        connection = PostgresConnection.connect(**_parameters(address), autocommit=True)  # type: ignore[arg-type]  # all are text
    except psycopg.Error as error:
        raise unreachable(address, error) from None  # the error's context may contain the parameters
    # All integers are sent as bigint, so that a statement is prepared once and not again for each size of integers.
    connection.adapters.register_dumper(int, Int8Dumper)
    connection.adapters.register_dumper(bool, _FlagDumper)
    connection.adapters.register_dumper(JsonRows, _JsonDumper)
    connection.add_notice_handler(connection.note)
    try:
        _require_session(address, connection)
        connection.execute(SERVER_WAITS, dict(address.parameters))
        connection.execute(_SESSION, [str(int(lock_seconds * 1_000))])
        connection.lineage = connection.execute(_LINEAGE).fetchone() or (0, 0)
    except psycopg.Error as error:
        connection.close()
        raise unreachable(address, error) from None
    except BaseException:
        connection.close()
        raise
    return connection


async def connect_to_listen(address: PostgresAddress) -> ListeningConnection:
    """Return a connection for LISTEN. Raises UnavailableProblem: see `connect`."""
    connection = None
    try:
        connection = await ListeningConnection.connect(**_parameters(address), autocommit=True)  # type: ignore[arg-type]
        await connection.execute(SERVER_WAITS, dict(address.parameters))
    except BaseException as error:
        if connection:
            await connection.close()
        if isinstance(error, psycopg.Error):
            raise unreachable(address, error) from None
        raise
    return connection


def wait_for_standby(connection: PostgresConnection) -> None:
    """Commit a WAL message, and wait for the synchronous standbys that the server requires. Does nothing on a standby.

    After this commit, all data that readers could see before the commit is replicated. So a repeated write that finds nothing
    to change may be acknowledged.

    Raises:
        UnavailableProblem: the wait was cancelled.
        psycopg.Error: the connection was lost.
    """
    connection.execute(_WAIT_FOR_STANDBY)
    connection.require_replicated()


def _parameters(address: PostgresAddress) -> dict[str, str]:
    return {"application_name": "workspaced", "client_encoding": "UTF8", **dict(address.parameters)}


# Statements must use indexes: a plan that was made for an empty table would later read the whole table. A staging table has no
# index, so its plans look expensive, and without `jit = off` PostgreSQL would compile them.
_SESSION = f"""
SELECT set_config('default_transaction_isolation', 'read committed', false), {DURABLE_COMMITS},
       set_config('lock_timeout', %s, false),
       set_config('enable_seqscan', 'off', false), set_config('jit', 'off', false)
"""
_WAIT_FOR_STANDBY = "SELECT pg_logical_emit_message(true, 'workspaced', '') WHERE NOT pg_is_in_recovery()"
_POOLER_SECONDS = 2.0
_BACKEND = "SELECT pg_backend_pid()"
_LINEAGE = """
SELECT system_identifier, ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint FROM pg_control_system()
WHERE NOT pg_is_in_recovery()
"""


def _require_session(address: PostgresAddress, connection: PostgresConnection) -> None:
    """Raise StorageRefused if a pooler may give the connection a different session for each transaction.

    A pooler reports an invented process id at the login. If this id is not the id of the session's process, a second connection
    is opened for a comparison. Without sharing, each connection keeps its session, and the two sessions differ.
    """
    mine = connection.execute(_BACKEND).fetchone()
    if mine == (connection.info.backend_pid,):
        return
    try:
        with PostgresConnection.connect(**_parameters(address), autocommit=True) as other:  # type: ignore[arg-type]  # all are text
            other.silent_seconds = _POOLER_SECONDS
            is_shared = other.execute(_BACKEND).fetchone() == mine or connection.execute(_BACKEND).fetchone() != mine
    except psycopg.Error:  # the pooler has no session for another client, so no session is shared
        return
    if is_shared:
        raise StorageRefused(
            "storage_refused",
            f"The database {address} can't be used: a pooler in front of it shares one session between clients, but "
            "the service needs LISTEN and settings of a session. Set pool_mode = session (PgBouncer), or give the address of "
            "the server.",
            retry_seconds=30,
        )


def outcome_unknown(what: str) -> UnavailableProblem:
    """Return the problem of a commit with an unknown outcome; ``what``: a clause that says what happened."""
    return UnavailableProblem(
        "storage_lost",
        f"{what}, so it is not known whether the change is kept. Read before you repeat it, or repeat it with an "
        "Idempotency-Key.",
    )


def unreachable(address: PostgresAddress, error: psycopg.Error) -> UnavailableProblem:
    """Return a problem with the message of the server or the driver, without a password."""
    why = f"The database {address} can't be used: {failure_of(error, address)}"
    if _is_about_the_password(error):
        return StorageRefused("storage_refused", f"{why}. {_PASSWORD_REMEDY}", retry_seconds=30)
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
