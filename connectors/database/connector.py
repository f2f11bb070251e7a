"""The database connector: one read-only, streaming SELECT for each reading, on a schedule."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from connectors.database.batches import batch_of, named_columns, snapshot
from connectors.database.changes import ChangeReader, ChangeSource, Guarantee
from connectors.database.changes.backfill import begin_backfill, cancel_backfill
from connectors.database.changes.reader import MethodChooser
from connectors.database.changes.rewind import rewind_cursor
from connectors.database.changes.selection import choose_method
from connectors.database.changes.slot import SlotSettings
from connectors.database.changes.slot_choice import choose_method_with_slot
from connectors.database.families import create_database, create_listener, verify_listener
from connectors.database.login import LoginGuard
from connectors.database.options import DatabaseOptions
from connectors.database.port import Database, ReadSession
from connectors.database.setup import setup_sql
from connectors.database.statement import parse_table, source
from ingestd.sdk import Batch, Connector, Cursor, CursorMove, Partition, SourceContext, SourceError, Step

if TYPE_CHECKING:
    from connectors.database.notifications import NotificationListener  # needs the driver of PostgreSQL


class DatabaseConnector(Connector):
    """A table or a query. The one partition is named after the table, or ``query``."""

    Options: ClassVar[type[DatabaseOptions]] = DatabaseOptions
    options: DatabaseOptions
    scheduled_only: ClassVar[bool] = True

    def __init__(self, options: DatabaseOptions, context: SourceContext) -> None:
        super().__init__(options, context)
        self._created_database: Database | None = None
        self._login = LoginGuard()
        self._listener: NotificationListener | None = None
        self._created_changes: ChangeReader | None = None
        self._pauses_backfill = False

    def partitions(self) -> Iterable[Partition]:
        """Return the one partition, without a query."""
        name = self.options.table or "query"
        return [Partition(name=name, snapshot=True, deletes=self.options.deletes)]

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:  # noqa: ARG002 - there is one
        """Yield all rows (snapshot), or the rows that may have changed and from time to time all of them (changes).

        A snapshot is read whole whether it changed or not. The runtime finds the unchanged rows.
        """
        if self.options.incremental:
            changes = self._changes()
            changes.is_paused = self._pauses_backfill
            for reading in changes.read(cursor):
                batch = batch_of(reading.frame, self.options.keys, first=1, cursor=reading.cursor)
                facts = _facts(self._changes().guarantee)
                yield dataclasses.replace(
                    batch, last=reading.last, partial=not reading.whole, removed=reading.removed, facts=facts
                )
            return
        with self._session() as session:
            yield from snapshot(session, self._database().dialect, self.options)

    def move_cursor(self, cursor: Cursor, move: CursorMove, to: str) -> Cursor:
        """Return the moved cursor. ``to``: a time or number of the cursor column, from which rows are read again."""
        if move == "rewind":
            return rewind_cursor(cursor, to)
        if move == "backfill":
            return begin_backfill(cursor, self.options.keys, self._database().dialect)
        return cancel_backfill(cursor)

    def pause_backfill(self, paused: bool) -> None:
        """Have a backfill wait, or continue."""
        self._pauses_backfill = paused

    def waiting(self) -> float | None:
        """Return 0 while a backfill has more pages."""
        return 0.0 if self._created_changes is not None and self._created_changes.is_backfilling else None

    def verify(self) -> Iterable[Step]:
        """Check that the database responds and has the configured columns; report how changes are found."""
        what = f"Table {self.options.table}" if self.options.table is not None else "The query"
        name = "connection"
        try:
            with self._session() as session:
                yield Step(name=name, outcome="passed", sentence=f"{self.options.address()} responds.")
                name = "columns"
                from_ = source(self._database().dialect, table=self.options.table, query=self.options.query)
                columns = named_columns(session.columns(from_), self.options)
                # No database returns a row for this, and each checks whether the user may read the columns.
                for _ in session.frames(columns, from_, rest="WHERE 1 = 0"):
                    pass
                names = ", ".join(column.name for column in columns)
                yield Step(name=name, outcome="passed", sentence=f"{what} has {names}.")
            if self.options.incremental:
                name = "changes"
                sentence = _described(self._changes().choose(), self.options.sweep_seconds)
                yield Step(name=name, outcome="passed", sentence=sentence)
            if self.options.notify is not None:
                name = "notify"
                where = verify_listener(self.options)
                accepted = f"{where} accepts LISTEN on channel {self.options.notify}; the schedule remains."
                yield Step(name=name, outcome="passed", sentence=accepted)
        except SourceError as error:
            yield Step(name=name, outcome="failed", sentence=str(error))

    def setup_sql(self) -> str:
        """Return what an administrator may install: a role, a trigger, an index."""
        return setup_sql(self.options)

    def explain(self, name: str, cursor: Cursor | None = None) -> str | None:  # noqa: ARG002 - only the schedule matters
        """Return where the rows come from, and that only the schedule starts a reading."""
        if name != (self.options.table or "query"):
            return None
        if self._login.refused is not None:
            return str(self._login.refused)
        sentence = f"{name} of {self.options.address()} is read when its schedule says so, {self.options.mode}."
        listener = self._listener
        if listener is not None:
            sentence = f"{sentence} {listener.sentence}"
        guarantee = self._created_changes.guarantee if self._created_changes is not None else None
        return sentence if guarantee is None else f"{sentence} {_described(guarantee, self.options.sweep_seconds)}"

    def notices(self) -> Iterable[str]:
        """Return whether it listens, how changes are found and why, what would improve it, and which rows need the sweep."""
        listener, changes = self._listener, self._created_changes
        found = [] if listener is None else [listener.sentence]
        if changes is not None and changes.guarantee is not None:
            guarantee = changes.guarantee
            notices = (_method(guarantee), guarantee.sentence, changes.notice, changes.progress)
            found += [notice for notice in notices if notice]
        return found

    @contextmanager
    def listen(self, wake: Callable[[], None]) -> Iterator[None]:
        """Wake the pipeline at notifications of the database while the context is open, if ``notify`` is set."""
        if self.options.notify is None:
            yield
            return
        # Another address is another account, of which nothing is known.
        login = self._login if self.options.notify_url is None else LoginGuard()
        self._listener = create_listener(self.options, login, wake=wake, now=self.context.now, report=self.context.log)
        self._listener.start()
        try:
            yield
        finally:
            self._listener.stop()
            self._listener = None

    def resume(self) -> None:
        """Log in again at the next reading, although the database refused it."""
        self._login.forget()
        if self._listener is not None:
            self._listener.retry()

    def reset(self) -> None:
        """Have the next pass read everything, and log in again if the database refused it; an operator requested that."""
        self.resume()
        if self._created_changes is not None:
            self._created_changes.reset()

    def close(self) -> None:
        """Close what is open between readings."""
        if self._created_changes is not None:
            self._created_changes.close()

    @contextmanager
    def _session(self) -> Iterator[ReadSession]:
        """Open a session, unless the database refused the login before: another attempt may lock the account."""
        with ExitStack() as stack:
            with self._login.attempt():
                session = stack.enter_context(self._database().open())
            yield session

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
                keys=options.keys,
                sweep_seconds=options.sweep_seconds,
                whole_seconds=options.whole_seconds,
                settings=(options.deletes, options.binary, options.char_padding, options.money, options.nan),
                columns=lambda session: named_columns(session.columns(from_), options),
                now=self.context.now,
                report=self.context.log,
                path=self.context.base / address.database if address.family == "sqlite" else None,
                index_path=lambda: self.context.cache("rows.db"),
                choose=_chooser(options),
                page_rows=options.batch_rows,
            )
        return self._created_changes


def _chooser(options: DatabaseOptions) -> MethodChooser:
    """Return the function that chooses the method of changes."""
    if options.slot is None:
        return choose_method
    settings = SlotSettings(
        slot=options.slot,
        publication=str(options.publication),
        key=options.keys,
        finds_removed=options.deletes == "remove",
        most_bytes=options.slot_bytes,
    )
    return partial(choose_method_with_slot, settings=settings)


def _method(guarantee: Guarantee) -> str:
    """Return the method of a guarantee, and what would improve it."""
    return f"Changes are found by the method '{guarantee.method}'. {guarantee.improvement}".rstrip()


def _facts(guarantee: Guarantee | None) -> dict[str, str]:
    """Return what `ingestd trace` shows of the reading that found a row."""
    if guarantee is None:
        return {}
    improvement = {"changes.improvement": guarantee.improvement} if guarantee.improvement else {}
    return {"changes.method": guarantee.method, "changes.guarantee": guarantee.sentence, **improvement}


def _described(guarantee: Guarantee, sweep_seconds: float) -> str:
    """Return the sentences of a guarantee, with the interval of the sweep if there is one."""
    sweep = f"The sweep compares the keys of all rows every {sweep_seconds:g} seconds (sweep_seconds)."
    without = "No sweep is configured (sweep_seconds: 0)."
    parts = [f"Changes are found by the method '{guarantee.method}'.", guarantee.sentence]
    if "sweep" in guarantee.sentence:
        parts.append(sweep if sweep_seconds else without)
    return " ".join([*parts, guarantee.improvement]).rstrip()
