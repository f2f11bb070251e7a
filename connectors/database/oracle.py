"""Oracle, by the thin mode of its driver, which needs no client library. Each value is converted to text by the server.

Its SQL is checked by compilation only: no test runs it on a server.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import oracledb

from connectors.database.driver_rows import text_frames
from connectors.database.failure import login_refused, one_line
from connectors.database.limits import Deadline
from connectors.database.options import DatabaseOptions
from connectors.database.oracle_dialect import SESSION, OracleDialect, column_of, literal
from connectors.database.port import Database, Frame, Parameter, ReadSession, ResultColumn
from connectors.database.statement import bind, select
from ingestd.sdk import SourceBroken, SourceError, SourceUnavailable

_LOGIN = frozenset({1017, 28000, 28001, 1045, 1005})  # denied, locked, expired
_AWAY = frozenset({1033, 1034, 1089, 3113, 3114, 1555, 8177, 12514, 12541, 12170, 2391, 18})
"""Starting, shutdown, a lost connection, a snapshot that is too old, no listener, too many sessions."""


class OracleDatabase(Database):
    """An Oracle server; the database of the URL is its service name."""

    dialect: OracleDialect

    def __init__(self, options: DatabaseOptions) -> None:
        self._options = options
        self.dialect = OracleDialect(options)

    @contextmanager
    def open(self) -> Iterator[ReadSession]:
        """Connect and begin a read-only transaction that sees one state of the database."""
        address = self._options.address()
        if address.query:
            raise SourceBroken(f"The url has the settings {', '.join(sorted(address.query))}; Oracle has none here.")
        try:
            connection = oracledb.connect(
                user=address.user,
                password=address.password,
                host=address.host or "localhost",
                port=int(address.port or 1521),
                service_name=address.database,
                tcp_connect_timeout=self._options.connect_timeout_seconds,
            )
        except oracledb.Error as error:
            raise self._failure(error) from None  # the driver's error may show the address
        with closing(connection):
            try:
                connection.call_timeout = round(self._options.statement_timeout_seconds * 1000)
                session = OracleSession(connection, self._options, self.dialect)
                session.begin()
                yield session
                connection.rollback()
            except oracledb.Error as error:
                raise self._failure(error) from None

    def _failure(self, error: oracledb.Error) -> SourceError:
        """Return the error as one with a sentence."""
        where, cause = self._options.address(), error.args[0] if error.args else error
        code, words = getattr(cause, "code", 0), one_line(getattr(cause, "message", cause))
        if code in _LOGIN:
            return login_refused(where, words)
        if getattr(cause, "full_code", "") == "DPY-4024":  # call_timeout
            return Deadline(self._options).silent()
        if code in _AWAY or not code or getattr(cause, "isrecoverable", False):
            return SourceUnavailable(f"The database {where} can't be reached: {words}.")
        return SourceBroken(f"The database {where} refuses the reading: {words}.")


class OracleSession(ReadSession):
    """A transaction of one connection."""

    def __init__(self, connection: Any, options: DatabaseOptions, dialect: OracleDialect) -> None:
        self._connection = connection
        self._options = options
        self._dialect = dialect
        self._deadline = Deadline(options)

    def begin(self) -> None:
        """Fix the text of numbers and begin the transaction."""
        for statement in (SESSION, "SET TRANSACTION READ ONLY"):
            self._execute(statement).close()

    def columns(self, source: str) -> list[ResultColumn]:
        """Return the columns of ``source``."""
        with closing(self._execute(f"SELECT * FROM {source} WHERE 1 = 0")) as cursor:
            columns = [column_of(name, type_.name) for name, type_, *_ in cursor.description]
        large = [column.name for column in columns if column.kind == "binary" and column.type != "raw"]
        if large and self._options.binary in {"hex", "base64"}:
            raise SourceBroken(
                f"Column {large[0]} is a large object, which can't be written as text (binary: {self._options.binary}). Leave it"
                " out in a query."
            )
        return columns

    def frames(
        self, columns: Sequence[ResultColumn], source: str, *, rest: str = "", parameters: Sequence[Parameter] = ()
    ) -> Iterator[Frame]:
        """Yield the rows in frames of bounded rows and bytes."""
        with closing(self._execute(bind(select(self._dialect, columns, source, rest), parameters, literal))) as cursor:
            yield from text_frames(cursor, columns, self._options, self._deadline)

    def scalar(self, sql: str, parameters: Sequence[Parameter] = ()) -> str | None:
        """Return the first value of the only row of a statement as text."""
        with closing(self._execute(bind(sql, parameters, literal))) as cursor:
            row = cursor.fetchone()
        return None if row is None or row[0] is None else str(row[0])

    def _execute(self, sql: str) -> Any:
        cursor = self._connection.cursor()
        cursor.execute(sql, fetch_lobs=False)  # the text of a CLOB, not a handle
        return cursor
