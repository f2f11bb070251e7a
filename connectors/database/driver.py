"""The common part of SQL Server and Oracle: the SQL converts each value to text, and a DB-API driver fetches the texts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from importlib import import_module
from typing import Any, ClassVar

import polars as pl

from connectors.database.frames import apply_settings
from connectors.database.limits import Deadline
from connectors.database.options import DatabaseOptions
from connectors.database.port import Database, Frame, Parameter, ReadSession, ResultColumn, SqlDialect, bind
from ingestd.sdk import SourceError

_FETCHED = 1000
"""The maximum number of rows in one fetch. A frame can exceed ``batch_bytes`` by the rows of one fetch."""


class DriverDialect(SqlDialect):
    """SQL without parameters: each value is written into the statement as a literal."""

    text_mark: ClassVar[str] = ""
    """The SQL prefix of a text literal, before its opening quote."""

    def literal(self, value: Parameter) -> str:
        """Return the SQL literal of a number or a text."""
        return repr(value) if isinstance(value, int | float) else f"{self.text_mark}'" + value.replace("'", "''") + "'"


class DriverDatabase(Database):
    """A server that is accessed with the driver package ``driver_name``."""

    driver_name: ClassVar[str]
    dialect: DriverDialect

    def __init__(self, options: DatabaseOptions) -> None:
        self.driver = import_module(self.driver_name)
        self.options = options

    @abstractmethod
    def connect(self) -> Any:
        """Return a new connection."""

    @abstractmethod
    def session(self, connection: Any) -> DriverSession:
        """Begin a transaction on ``connection``, and return the session."""

    @abstractmethod
    def failure(self, error: Any) -> SourceError:
        """Return the `SourceError` for an error of the driver."""

    @contextmanager
    def open(self) -> Iterator[ReadSession]:
        """See `Database.open`."""
        try:
            connection = self.connect()
        except self.driver.Error as error:
            raise self.failure(error) from None  # the driver's error may show the address
        with closing(connection):
            try:
                yield self.session(connection)
                connection.rollback()
            except self.driver.Error as error:
                raise self.failure(error) from None


class DriverSession(ReadSession):
    """A transaction of one connection."""

    execute_options: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, connection: Any, dialect: DriverDialect) -> None:
        self._connection = connection
        self.dialect = dialect
        self._deadline = Deadline(dialect.options)

    def execute(self, sql: str) -> Any:
        """Execute a statement and return its cursor. The caller closes the cursor."""
        cursor = self._connection.cursor()
        cursor.execute(sql, **self.execute_options)
        return cursor

    def frames(
        self, columns: Sequence[ResultColumn], source: str, rest: str = "", parameters: Sequence[Parameter] = ()
    ) -> Iterator[Frame]:
        """See `ReadSession.frames`."""
        sql = bind(self.dialect.select(columns, source, rest), parameters, self.dialect.literal)
        with closing(self.execute(sql)) as cursor:
            yield from text_frames(cursor, columns, self.dialect.options, self._deadline)

    def scalar(self, sql: str, parameters: Sequence[Parameter] = ()) -> str | None:
        """See `ReadSession.scalar`."""
        with closing(self.execute(bind(sql, parameters, self.dialect.literal))) as cursor:
            row = cursor.fetchone()
        return None if row is None or row[0] is None else str(row[0])


def text_frames(
    cursor: Any, columns: Sequence[ResultColumn], options: DatabaseOptions, deadline: Deadline
) -> Iterator[Frame]:
    """Yield the rows of a DB-API cursor in frames of limited size, at least one. Each value must be a str or None.

    Raises:
        SourceUnavailable: a time limit is exceeded.
    """
    rows: list[tuple[str | None, ...]] = []
    size = 0
    while fetched := cursor.fetchmany(min(_FETCHED, options.batch_rows - len(rows))):
        rows += [tuple(row) for row in fetched]
        size += sum(len(value) for row in fetched for value in row if value is not None)
        if len(rows) >= options.batch_rows or size >= options.batch_bytes:
            yield _frame(rows, columns, options)
            rows, size = [], 0
            deadline.restart()
        deadline.check()
    yield _frame(rows, columns, options)


def _frame(rows: Sequence[tuple[str | None, ...]], columns: Sequence[ResultColumn], options: DatabaseOptions) -> Frame:
    schema = {column.name: pl.String for column in columns}
    return apply_settings(Frame(records=pl.DataFrame(rows, schema=schema, orient="row")), columns, options)
