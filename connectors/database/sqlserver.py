"""SQL Server: each value is converted to text by the server, so no driver type and no locale matters.

Its SQL is checked by compilation only: no test runs it on a server.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import mssql_python

from connectors.database.driver_rows import text_frames
from connectors.database.failure import login_refused, one_line
from connectors.database.limits import Deadline
from connectors.database.options import DatabaseOptions
from connectors.database.port import Database, Frame, Parameter, ReadSession, ResultColumn
from connectors.database.sqlserver_dialect import ONE_STATE, SqlServerDialect, column_of, describe, literal
from connectors.database.statement import bind, select
from ingestd.sdk import SourceBroken, SourceError, SourceUnavailable

_SETTINGS = frozenset(
    {
        "applicationintent",
        "authentication",
        "encrypt",
        "hostnameincertificate",
        "ipaddresspreference",
        "multisubnetfailover",
    }
    | {"packetsize", "servercertificate", "serverspn", "trusted_connection", "trustservercertificate"}
)
_NO_SNAPSHOT = ("snapshot isolation", "3952")


class SqlServerDatabase(Database):
    """A SQL Server database with ``ALLOW_SNAPSHOT_ISOLATION``."""

    dialect: SqlServerDialect

    def __init__(self, options: DatabaseOptions) -> None:
        self._options = options
        self.dialect = SqlServerDialect(options)

    @contextmanager
    def open(self) -> Iterator[ReadSession]:
        """Connect and begin a transaction that sees one state of the database and takes no locks on rows."""
        try:
            connection = mssql_python.connect(**self._parameters())
        except mssql_python.Error as error:
            raise self._failure(error) from None  # the driver's error may show the address
        with closing(connection):
            try:
                connection.timeout = max(1, round(self._options.statement_timeout_seconds))
                session = SqlServerSession(connection, self._options, self.dialect)
                session.begin()
                yield session
                connection.rollback()
            except mssql_python.Error as error:
                raise self._failure(error) from None

    def _parameters(self) -> dict[str, Any]:
        address = self._options.address()
        settings = {name.lower(): value for name, value in address.query.items()}
        unknown = sorted(settings.keys() - _SETTINGS)
        if unknown:
            known = ", ".join(sorted(_SETTINGS))
            raise SourceBroken(
                f"The url has the settings {', '.join(unknown)}, which are not known; known are {known}."
            )
        server = f"{address.host or 'localhost'},{address.port or 1433}"
        return {
            "server": server,
            "database": address.database,
            "uid": address.user,
            "pwd": address.password or "",
            "applicationintent": "ReadOnly",
            "timeout": self._options.connect_timeout_seconds,
            "autocommit": False,
            **settings,
        }

    def _failure(self, error: mssql_python.Error) -> SourceError:
        """Return the error as one with a sentence."""
        where, words = self._options.address(), one_line(error.ddbc_error or error.driver_error)
        if "authorization" in str(error.driver_error).lower() or "Login failed" in words:
            return login_refused(where, words)
        if any(mark in words for mark in _NO_SNAPSHOT):
            return SourceBroken(
                f"The database {where} does not permit a reading of one state: {words}. Its owner runs ALTER DATABASE … SET"
                " ALLOW_SNAPSHOT_ISOLATION ON."
            )
        if isinstance(error, mssql_python.OperationalError | mssql_python.InterfaceError):
            return SourceUnavailable(f"The database {where} can't be reached: {words}.")
        return SourceBroken(f"The database {where} refuses the reading: {words}.")


class SqlServerSession(ReadSession):
    """A transaction of one connection."""

    def __init__(self, connection: Any, options: DatabaseOptions, dialect: SqlServerDialect) -> None:
        self._connection = connection
        self._options = options
        self._dialect = dialect
        self._deadline = Deadline(options)

    def begin(self) -> None:
        """Set the limits of the session; the transaction begins with its first statement."""
        lock = max(1, round(self._options.lock_timeout_seconds * 1000))
        with closing(self._connection.cursor()) as cursor:
            for statement in (f"SET LOCK_TIMEOUT {lock}", ONE_STATE):
                cursor.execute(statement)

    def columns(self, source: str) -> list[ResultColumn]:
        """Return the columns of ``source``."""
        with closing(self._connection.cursor()) as cursor:
            cursor.execute(describe(source))
            rows = cursor.fetchall()
        refused = next((words for _, _, words in rows if words), None)
        if refused is not None:
            raise SourceBroken(f"The database {self._options.address()} refuses the reading: {one_line(refused)}.")
        return [column_of(name or "", type_) for name, type_, _ in rows]

    def frames(
        self, columns: Sequence[ResultColumn], source: str, *, rest: str = "", parameters: Sequence[Parameter] = ()
    ) -> Iterator[Frame]:
        """Yield the rows in frames of bounded rows and bytes."""
        with closing(self._connection.cursor()) as cursor:
            cursor.execute(bind(select(self._dialect, columns, source, rest), parameters, literal))
            yield from text_frames(cursor, columns, self._options, self._deadline)

    def scalar(self, sql: str, parameters: Sequence[Parameter] = ()) -> str | None:
        """Return the first value of the only row of a statement as text."""
        with closing(self._connection.cursor()) as cursor:
            cursor.execute(bind(sql, parameters, literal))
            row = cursor.fetchone()
        return None if row is None or row[0] is None else str(row[0])
