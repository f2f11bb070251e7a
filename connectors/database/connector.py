"""The database connector: one read-only, streaming SELECT a reading, on a schedule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from sqlalchemy.engine import Engine

from connectors.database.batches import incremental, snapshot
from connectors.database.engine import create_engine_for, reading
from connectors.database.exact import checked_names
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
        self._opened: Engine | None = None
        self._what = f"Table {options.table}" if options.table is not None else "The query"

    def partitions(self) -> Iterable[Partition]:
        """The one partition; the database is not asked."""
        name = self.options.table or "query"
        return [Partition(name=name, snapshot=self.options.mode == "snapshot", deletes=self.options.deletes)]

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:  # noqa: ARG002 - there is one
        """All rows (snapshot), or those from the last cursor value on that have not been handed over (incremental).

        A snapshot is read whole whether it changed or not; what did not change, the runtime finds.
        """
        engine = self._engine()
        with as_sentences(engine, self.options), reading(engine, self.options.batch_rows) as connection:
            if self.options.mode == "snapshot":
                yield from snapshot(connection, self.options, self._what)
            else:
                yield from incremental(connection, self.options, self._what, cursor or None)

    def verify(self) -> Iterable[Step]:
        """Whether the database answers, has the columns that are configured, and lets every row be followed."""
        engine: Engine | None = None
        try:
            engine = self._engine()
            with as_sentences(engine, self.options), reading(engine, 1):
                yield Step(name="connection", outcome="passed", sentence=f"{shown(self.options)} answers.")
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
            checked_names(names, [*self.options.keys, *([cursor] if cursor is not None else [])], self._what)
            yield Step(name="columns", outcome="passed", sentence=f"{self._what} has {', '.join(names)}.")
            if cursor is None:
                return
            without = int(connection.execute(without_cursor_value(self.options)).scalar_one())
        if without:
            sentence = (
                f"{without} rows have no {cursor}: they are parked at the first reading and not followed after it."
            )
            yield Step(name="cursor", outcome="failed", sentence=sentence)
        else:
            yield Step(name="cursor", outcome="passed", sentence=f"Every row has a value in {cursor}.")

    def explain(self, name: str, cursor: Cursor | None = None) -> str | None:  # noqa: ARG002 - it is the schedule that counts
        """Where the rows come from, and that only the schedule asks for them."""
        if name != (self.options.table or "query"):
            return None
        return f"{name} of {shown(self.options)} is read when its schedule says so, {self.options.mode}."

    def close(self) -> None:
        """Nothing stays open between readings; the engine's own resources are let go."""
        if self._opened is not None:
            self._opened.dispose()
            self._opened = None

    def _engine(self) -> Engine:
        if self._opened is None:
            try:
                self._opened = create_engine_for(self.options, self.context.base)
            except ImportError as error:
                raise SourceBroken(f"PostgreSQL needs psycopg: install ingestd[postgres] ({error}).") from error
        return self._opened
