"""The database connector: one read-only, streaming SELECT for each reading, on a schedule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from sqlalchemy.engine import Engine

from connectors.database.batches import incremental, snapshot
from connectors.database.engine import create_engine_for, reading
from connectors.database.exact import check_names
from connectors.database.failure import as_sentences, shown
from connectors.database.options import DatabaseOptions
from connectors.database.statement import no_rows, without_cursor_value
from ingestd.sdk import Batch, Connector, Cursor, Partition, SourceBroken, SourceContext, SourceError, Step


class DatabaseConnector(Connector):
    """A table or a query. The one partition is named after the table, or ``query``."""

    Options: ClassVar[type[DatabaseOptions]] = DatabaseOptions
    options: DatabaseOptions
    scheduled_only: ClassVar[bool] = True

    def __init__(self, options: DatabaseOptions, context: SourceContext) -> None:
        super().__init__(options, context)
        self._created_engine: Engine | None = None
        self._what = f"Table {options.table}" if options.table is not None else "The query"

    def partitions(self) -> Iterable[Partition]:
        """Return the one partition, without a query."""
        name = self.options.table or "query"
        return [Partition(name=name, snapshot=self.options.mode == "snapshot", deletes=self.options.deletes)]

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:  # noqa: ARG002 - there is one
        """Yield all rows (snapshot), or the new rows from the last cursor value on (incremental).

        A snapshot is read whole whether it changed or not. The runtime finds the unchanged rows.
        """
        engine = self._engine()
        with as_sentences(engine, self.options), reading(engine, self.options.batch_rows) as connection:
            if self.options.mode == "snapshot":
                yield from snapshot(connection, self.options, self._what)
            else:
                yield from incremental(connection, self.options, self._what, cursor or None)

    def verify(self) -> Iterable[Step]:
        """Check that the database responds and has the configured columns, with a cursor value in each row."""
        engine: Engine | None = None
        try:
            engine = self._engine()
            with as_sentences(engine, self.options), reading(engine, 1):
                yield Step(name="connection", outcome="passed", sentence=f"{shown(self.options)} responds.")
        except SourceError as error:
            yield Step(name="connection", outcome="failed", sentence=str(error))
            return
        try:
            yield from self._columns(engine)
        except SourceError as error:
            yield Step(name="columns", outcome="failed", sentence=str(error))

    def _columns(self, engine: Engine) -> Iterator[Step]:
        cursor = self.options.cursor
        with as_sentences(engine, self.options), reading(engine, 1) as connection:
            with connection.execute(no_rows(self.options)) as result:
                names = list(result.keys())
            check_names(names, [*self.options.keys, *([cursor] if cursor is not None else [])], self._what)
            yield Step(name="columns", outcome="passed", sentence=f"{self._what} has {', '.join(names)}.")
            if cursor is None:
                return
            without = int(connection.execute(without_cursor_value(self.options)).scalar_one())
        if without:
            sentence = f"{without} rows have no {cursor}: they are rejected at the first reading; their later changes are missed."
            yield Step(name="cursor", outcome="failed", sentence=sentence)
        else:
            yield Step(name="cursor", outcome="passed", sentence=f"Every row has a value in {cursor}.")

    def explain(self, name: str, cursor: Cursor | None = None) -> str | None:  # noqa: ARG002 - only the schedule matters
        """Return where the rows come from, and that only the schedule starts a reading."""
        if name != (self.options.table or "query"):
            return None
        return f"{name} of {shown(self.options)} is read when its schedule says so, {self.options.mode}."

    def close(self) -> None:
        """Release the engine. No connection stays open between readings."""
        if self._created_engine is not None:
            self._created_engine.dispose()
            self._created_engine = None

    def _engine(self) -> Engine:
        if self._created_engine is None:
            try:
                self._created_engine = create_engine_for(self.options, self.context.base)
            except ImportError as error:
                raise SourceBroken(f"PostgreSQL needs psycopg: install ingestd[postgres] ({error}).") from error
        return self._created_engine
