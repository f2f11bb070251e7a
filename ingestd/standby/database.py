"""A schema of a PostgreSQL database, for the shipments and the leases of daemons with `--standby`. Needs psycopg."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg import sql
from psycopg.errors import InsufficientPrivilege, OperationalError

from ingestd.core.errors import IngestdError
from ingestd.process.postgres_connection import (
    DURABLE_COMMITS,
    SERVER_WAITS,
    Row,
    ServerSilent,
    WatchedConnection,
    failure_of,
)
from ingestd.process.statements import load_statements
from ingestd.standby.database_url import DatabaseSchema

_LOCK_MS = 5_000
_SQL = {name: text.encode() for name, text in load_statements("ingestd.standby", "queries.sql").items()}
_SESSION = f"SELECT current_setting('search_path'), {DURABLE_COMMITS}".encode()


class DatabaseUnavailable(IngestdError):
    """The database can't be used now; the sentence says why. A change may have taken effect."""


class StandbyDatabase:
    """One connection to a schema. The schema is created on first use. Every wait for the server has a limit.

    ``statement_seconds``: the time limit of a statement, also if the server no longer responds. All methods block. Several
    threads may call the methods; the calls run one after another.
    """

    def __init__(self, schema: DatabaseSchema, *, statement_seconds: float) -> None:
        self.schema = schema
        self._statement_seconds = statement_seconds
        self._lock = threading.Lock()
        self._connection: WatchedConnection | None = None

    def rows(self, statement: str, values: Mapping[str, Any]) -> list[Row]:
        """Execute the statement with this name, and return its rows. Its change is durable, and may have been made twice.

        Raises:
            DatabaseUnavailable: the database can't be used now.
        """
        with self._lock:
            kept = self._connection
            try:
                try:
                    return self._execute(_SQL[statement], values)
                except OperationalError as error:
                    if kept is None or not kept.closed or isinstance(error, ServerSilent):
                        raise
                    self._close()
                # Since the connection was used last, the server was restarted, or another server was promoted.
                return self._execute(_SQL[statement], values)
            except psycopg.Error as error:
                raise self._unavailable(error) from None  # the error's context may contain the parameters
            except BaseException:
                self._close()
                raise

    def close(self) -> None:
        """Close the connection. A later statement opens one again."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _execute(self, statement: bytes, values: Mapping[str, Any]) -> list[Row]:
        if self._connection is None:
            self._connection = self._connect()
        connection = self._connection
        cursor = connection.execute(statement, values, binary=True)
        found = cursor.fetchall() if cursor.description is not None else []
        if connection.is_unreplicated:
            raise OperationalError("the wait for a synchronous standby was cancelled")
        return found

    def _connect(self) -> WatchedConnection:
        """Return a connection with the schema as its search path. Raises psycopg.Error."""
        given = dict(self.schema.address.parameters)
        milliseconds = round(self._statement_seconds * 1_000)
        session = f"-c search_path={self.schema.name} -c statement_timeout={milliseconds} -c lock_timeout={_LOCK_MS}"
        parameters = {"application_name": "ingestd", "client_encoding": "UTF8", **given}
        parameters["options"] = f"{given.get('options', '')} {session}".strip()
        connection = WatchedConnection.connect(**parameters, autocommit=True, prepare_threshold=None)  # type: ignore[arg-type]  # all are text
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: WatchedConnection) -> None:
        """Limit the waits of a new connection, and create missing tables. Only the creation needs a right to create objects."""
        connection.silent_seconds = self._statement_seconds
        connection.add_notice_handler(connection.note)
        path, *_ = connection.execute(_SESSION).fetchone() or ("",)
        if path != self.schema.name:
            raise OperationalError(
                "a pooler in front of it ignores the options of a connection; give the address of the server"
            )
        connection.execute(SERVER_WAITS.encode(), dict(self.schema.address.parameters))

        def is_true(name: str) -> bool:
            return connection.execute(_SQL[name]).fetchone() == (True,)

        if is_true("has_tables"):
            return
        with connection.transaction():
            connection.execute(_SQL["creation_lock"])
            if not is_true("has_schema"):
                connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(self.schema.name)))
            for name in ("create_objects", "store_objects_as_they_are", "create_leases"):
                connection.execute(_SQL[name])

    def _unavailable(self, error: psycopg.Error) -> DatabaseUnavailable:
        self._close()
        remedy = ""
        if isinstance(error, InsufficientPrivilege):
            remedy = f" Have an administrator create the schema {self.schema.name} with this user as its owner."
        why = failure_of(error, self.schema.address).rstrip(".")
        return DatabaseUnavailable(f"The database {self.schema} can't be used: {why}.{remedy}")
