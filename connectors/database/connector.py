"""The database connector: one read-only, streaming SELECT for each reading, on a schedule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import ClassVar

from connectors.database.batches import batch_of, named_columns, snapshot
from connectors.database.changes import ChangeReader, ChangeSource, Guarantee
from connectors.database.changes.rewind import rewind_cursor
from connectors.database.failure import LoginRefused
from connectors.database.families import create_database
from connectors.database.options import DatabaseOptions
from connectors.database.port import Database, ReadSession
from connectors.database.statement import parse_table, source
from ingestd.sdk import Batch, Connector, Cursor, Partition, Settlement, SourceContext, SourceError, Step

_REMEMBERED_REJECTS = 10_000
"""So many rejected rows are remembered; the rejections of others are replaced by the next whole reading."""


class DatabaseConnector(Connector):
    """A table or a query. The one partition is named after the table, or ``query``."""

    Options: ClassVar[type[DatabaseOptions]] = DatabaseOptions
    options: DatabaseOptions
    scheduled_only: ClassVar[bool] = True

    def __init__(self, options: DatabaseOptions, context: SourceContext) -> None:
        super().__init__(options, context)
        self._created_database: Database | None = None
        self._login_refused: LoginRefused | None = None
        self._created_changes: ChangeReader | None = None
        self._rejected: dict[str, str] = {}
        if options.mode == "incremental":
            context.log(
                f"Pipeline {context.pipeline}: mode: incremental is deprecated and now means mode: changes; write that instead."
            )

    def partitions(self) -> Iterable[Partition]:
        """Return the one partition, without a query."""
        name = self.options.table or "query"
        return [Partition(name=name, snapshot=True, deletes=self.options.deletes)]

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:  # noqa: ARG002 - there is one
        """Yield all rows (snapshot), or the rows that may have changed and from time to time all of them (changes).

        A snapshot is read whole whether it changed or not. The runtime finds the unchanged rows.
        """
        if self.options.follows_changes:
            for reading in self._changes().read(cursor):
                batch = batch_of(reading.frame, self.options.keys, first=1, cursor=reading.cursor)
                resolves = () if reading.whole else self._replaced_rejects(batch)
                yield replace(batch, last=reading.last, partial=not reading.whole, resolves=resolves)
            return
        with self._session() as session:
            yield from snapshot(session, self._database().dialect, self.options)

    def settled(self, partition: Partition, cursor: Cursor, settlement: Settlement) -> None:  # noqa: ARG002 - there is one
        """Remember which rows are rejected, so that a later reading of the same row replaces the rejection."""
        if self.options.follows_changes:
            records = (reject for reject in settlement.rejects() if reject.subject == "record")
            self._rejected = {str(reject.position): reject.reference for reject in islice(records, _REMEMBERED_REJECTS)}

    def _replaced_rejects(self, batch: Batch) -> tuple[str, ...]:
        if not self._rejected:
            return ()
        positions = [*map(str, batch.positions), *(str(reject.position) for reject in batch.rejects)]
        return tuple(self._rejected[position] for position in positions if position in self._rejected)

    def rewind(self, cursor: Cursor, to: str) -> Cursor:
        """Return the cursor from which the rows from ``to`` on are read again: a time or number of the cursor column."""
        return rewind_cursor(cursor, to)

    def verify(self) -> Iterable[Step]:
        """Check that the database responds and has the configured columns; report how changes are found."""
        what = f"Table {self.options.table}" if self.options.table is not None else "The query"
        name = "connection"
        try:
            with self._session() as session:
                yield Step(name=name, outcome="passed", sentence=f"{self.options.address()} responds.")
                name = "columns"
                from_ = source(self._database().dialect, table=self.options.table, query=self.options.query)
                names = ", ".join(column.name for column in named_columns(session.columns(from_), self.options))
                yield Step(name=name, outcome="passed", sentence=f"{what} has {names}.")
            if self.options.follows_changes:
                name = "changes"
                sentence = _described(self._changes().choose(), self.options.sweep_seconds)
                yield Step(name=name, outcome="passed", sentence=sentence)
        except SourceError as error:
            yield Step(name=name, outcome="failed", sentence=str(error))

    def explain(self, name: str, cursor: Cursor | None = None) -> str | None:  # noqa: ARG002 - only the schedule matters
        """Return where the rows come from, and that only the schedule starts a reading."""
        if name != (self.options.table or "query"):
            return None
        if self._login_refused is not None:
            return str(self._login_refused)
        sentence = f"{name} of {self.options.address()} is read when its schedule says so, {self.options.mode}."
        guarantee = self._created_changes.guarantee if self._created_changes is not None else None
        return sentence if guarantee is None else f"{sentence} {_described(guarantee, self.options.sweep_seconds)}"

    def notices(self) -> Iterable[str]:
        """Return the method that finds changes, what would improve it, and which rows only the sweep follows."""
        changes = self._created_changes
        if changes is None or changes.guarantee is None:
            return []
        return [notice for notice in (_method(changes.guarantee), changes.notice) if notice]

    def again(self) -> None:
        """Have the next pass read everything, and log in again if the database refused it; an operator requested that."""
        self._login_refused = None
        if self._created_changes is not None:
            self._created_changes.reset()

    def close(self) -> None:
        """Close what is open between readings."""
        if self._created_changes is not None:
            self._created_changes.close()

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

    def _changes(self) -> ChangeReader:
        if self._created_changes is None:
            options, dialect = self.options, self._database().dialect
            address, table = options.address(), options.table
            from_ = source(dialect, table=table, query=options.query)
            self._created_changes = ChangeReader(
                self._session,
                dialect,
                ChangeSource(
                    source=from_,
                    table=".".join(map(dialect.quote, parse_table(table))) if table is not None else "",
                    cursor=options.cursor or "",
                    cursor_timezone=options.cursor_timezone or "",
                    lag_seconds=options.lag_seconds,
                    slack_seconds=options.slack_seconds,
                ),
                identity=str(address),
                sweep_seconds=options.sweep_seconds,
                columns=lambda session: named_columns(session.columns(from_), options),
                now=self.context.now,
                report=self.context.log,
                path=self.context.base / address.database if address.family == "sqlite" else None,
            )
        return self._created_changes


def _method(guarantee: Guarantee) -> str:
    """Return the method of a guarantee, and what would improve it."""
    return f"Changes are found by the method '{guarantee.method}'. {guarantee.improvement}".rstrip()


def _described(guarantee: Guarantee, sweep_seconds: float) -> str:
    """Return the sentences of a guarantee, with the interval of the sweep if there is one."""
    sweep = f"The sweep is a whole reading every {sweep_seconds:g} seconds (sweep_seconds)."
    without = "No sweep is configured (sweep_seconds: 0)."
    parts = [f"Changes are found by the method '{guarantee.method}'.", guarantee.sentence]
    if "sweep" in guarantee.sentence:
        parts.append(sweep if sweep_seconds else without)
    return " ".join([*parts, guarantee.improvement]).rstrip()
