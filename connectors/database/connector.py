"""The database connector: one read-only, streaming SELECT for each reading, on a schedule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import ClassVar

from connectors.database.batches import incremental, named_columns, snapshot
from connectors.database.failure import LoginRefused
from connectors.database.families import create_database
from connectors.database.options import DatabaseOptions
from connectors.database.port import Database, ReadSession
from connectors.database.statement import source
from ingestd.sdk import Batch, Connector, Cursor, Partition, SourceContext, SourceError, Step


class DatabaseConnector(Connector):
    """A table or a query. The one partition is named after the table, or ``query``."""

    Options: ClassVar[type[DatabaseOptions]] = DatabaseOptions
    options: DatabaseOptions
    scheduled_only: ClassVar[bool] = True

    def __init__(self, options: DatabaseOptions, context: SourceContext) -> None:
        super().__init__(options, context)
        self._created_database: Database | None = None
        self._login_refused: LoginRefused | None = None

    def partitions(self) -> Iterable[Partition]:
        """Return the one partition, without a query."""
        name = self.options.table or "query"
        return [Partition(name=name, snapshot=self.options.mode == "snapshot", deletes=self.options.deletes)]

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:  # noqa: ARG002 - there is one
        """Yield all rows (snapshot), or the new rows from the last cursor value on (incremental).

        A snapshot is read whole whether it changed or not. The runtime finds the unchanged rows.
        """
        with self._session() as session:
            if self.options.mode == "snapshot":
                yield from snapshot(session, self._database().dialect, self.options)
            else:
                yield from incremental(session, self._database().dialect, self.options, cursor or None)

    def verify(self) -> Iterable[Step]:
        """Check that the database responds and has the configured columns, with a cursor value in each row."""
        what = f"Table {self.options.table}" if self.options.table is not None else "The query"
        cursor, name = self.options.cursor, "connection"
        try:
            with self._session() as session:
                yield Step(name=name, outcome="passed", sentence=f"{self.options.address()} responds.")
                name = "columns"
                dialect = self._database().dialect
                from_ = source(dialect, table=self.options.table, query=self.options.query)
                names = ", ".join(column.name for column in named_columns(session.columns(from_), self.options))
                yield Step(name=name, outcome="passed", sentence=f"{what} has {names}.")
                if cursor is None:
                    return
                name = "cursor"
                counted = session.scalar(f"SELECT count(*) FROM {from_} WHERE {dialect.quote(cursor)} IS NULL")
                sentence = f"Every row has a value in {cursor}."
                if counted != "0":
                    sentence = (
                        f"{counted} rows have no {cursor}: they are rejected at the first reading; their later changes are"
                        " missed."
                    )
                yield Step(name=name, outcome="passed" if counted == "0" else "failed", sentence=sentence)
        except SourceError as error:
            yield Step(name=name, outcome="failed", sentence=str(error))

    def explain(self, name: str, cursor: Cursor | None = None) -> str | None:  # noqa: ARG002 - only the schedule matters
        """Return where the rows come from, and that only the schedule starts a reading."""
        if name != (self.options.table or "query"):
            return None
        if self._login_refused is not None:
            return str(self._login_refused)
        return f"{name} of {self.options.address()} is read when its schedule says so, {self.options.mode}."

    def again(self) -> None:
        """Let the next pass log in again after the database refused it; an operator requested that."""
        self._login_refused = None

    @contextmanager
    def _session(self) -> Iterator[ReadSession]:
        """Open a session, unless the database refused the login before: another attempt may lock the account."""
        if self._login_refused is not None:
            raise LoginRefused(str(self._login_refused))
        try:
            with self._database().open() as session:
                yield session
        except LoginRefused as error:
            self._login_refused = error
            raise

    def _database(self) -> Database:
        if self._created_database is None:
            self._created_database = create_database(self.options, self.context.base)
        return self._created_database
