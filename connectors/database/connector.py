"""The database connector: on a schedule, it reads rows with read-only SELECT statements, and streams the results."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from connectors.database.batches import batch_of, described, named_columns, snapshot
from connectors.database.changes import ChangeReader, Guarantee
from connectors.database.changes.backfill import begin_backfill, cancel_backfill
from connectors.database.changes.cursor import rewind_cursor
from connectors.database.failure import LoginGuard
from connectors.database.families import EXPERIMENTAL, create_database, driver_of
from connectors.database.options import DatabaseOptions
from connectors.database.port import Database, ReadSession
from connectors.database.setup import setup_sql
from ingestd.sdk import Batch, Connector, Cursor, CursorMove, Partition, SourceContext, SourceError, Step

if TYPE_CHECKING:
    from connectors.database.notifications import NotificationListener  # needs the driver of PostgreSQL


class DatabaseConnector(Connector):
    """The connector of a table or a query. The name of its only partition is the table's name, or ``query``."""

    Options: ClassVar[type[DatabaseOptions]] = DatabaseOptions
    options: DatabaseOptions
    scheduled_only: ClassVar[bool] = True

    def __init__(self, options: DatabaseOptions, context: SourceContext) -> None:
        super().__init__(options, context)
        self._name = options.table or "query"
        self._login = LoginGuard()
        self._listener: NotificationListener | None = None
        self._created_changes: ChangeReader | None = None
        self._pauses_backfill = False

    def partitions(self) -> Iterable[Partition]:
        """Return the only partition. This sends no query."""
        return [Partition(name=self._name, snapshot=True, deletes=self.options.deletes)]

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:  # noqa: ARG002 - one partition
        """Yield all rows (``mode: snapshot``), or the rows that may have changed (``mode: changes``).

        A reading of changes sometimes yields all rows. The runtime detects rows that are unchanged.
        """
        if self.options.incremental:
            changes = self._changes()
            changes.is_paused = self._pauses_backfill
            for reading in changes.read(cursor):
                batch = batch_of(reading.frame, self.options.keys, first=1, cursor=reading.cursor)
                facts = _facts(changes.guarantee)
                yield dataclasses.replace(
                    batch, last=reading.last, partial=not reading.whole, removed=reading.removed, facts=facts
                )
            return
        with self._session() as session:
            yield from snapshot(session, self._database.dialect)

    def primary_key(self) -> Sequence[str]:
        """Return the columns of the table's primary key; see `ingestd.sdk.KnowsKey`."""
        return self._database.primary_key() if self.options.table is not None else ()

    def move_cursor(self, cursor: Cursor, move: CursorMove, to: str) -> Cursor:
        """Return the moved cursor. ``to``: rows from this time or number on are read again (only for ``rewind``)."""
        if move == "rewind":
            return rewind_cursor(cursor, to)
        if move == "backfill":
            return begin_backfill(cursor, self._database.dialect)
        return cancel_backfill(cursor)

    def pause_backfill(self, paused: bool) -> None:
        """Pause the backfill, or let it continue. This takes effect at the next reading."""
        self._pauses_backfill = paused

    def waiting(self) -> float | None:
        """Return 0 (read again now) while a backfill continues; else None."""
        return 0.0 if self._created_changes is not None and self._created_changes.is_backfilling else None

    def verify(self) -> Iterable[Step]:
        """Check that the database responds and has the configured columns, and report how changes are found."""
        options, name = self.options, "connection"
        if options.address().family in EXPERIMENTAL:
            kind = f"database.kind {options.address().family}"
            sentence = f"{kind} is experimental: no test runs against such a server."
            yield Step(name="kind", outcome="skipped", sentence=sentence)
        try:
            with self._session() as session:
                yield Step(name=name, outcome="passed", sentence=f"{options.address()} responds.")
                name, dialect = "columns", self._database.dialect
                columns = named_columns(session, dialect)
                # This statement returns no row, but every database checks whether the user may read the columns.
                for _ in session.frames(columns, dialect.source, "WHERE 1 = 0"):
                    pass
                names = ", ".join(column.name for column in columns)
                fields = tuple(column.name for column in columns)
                yield Step(name=name, outcome="passed", sentence=f"{described(options)} has {names}.", fields=fields)
            if options.incremental:
                name = "changes"
                sentence = _guaranteed(self._changes().choose(), options.sweep_seconds)
                yield Step(name=name, outcome="passed", sentence=sentence)
            if options.notify is not None:
                name = "notify"
                with driver_of("postgresql"):
                    from connectors.database.notifications import verify_listener  # noqa: PLC0415
                where = verify_listener(options)
                accepted = f"{where} accepts LISTEN on channel {options.notify}; the schedule remains."
                yield Step(name=name, outcome="passed", sentence=accepted)
        except SourceError as error:
            yield Step(name=name, outcome="failed", sentence=str(error))

    def setup_sql(self) -> str:
        """Return SQL statements for an administrator, such as statements that create a role, a trigger and an index."""
        return setup_sql(self.options)

    def explain(self, name: str, cursor: Cursor | None = None) -> str | None:  # noqa: ARG002 - only the schedule matters
        """Return sentences on the database, the schedule, and how changes are found; None if ``name`` is not the partition."""
        if name != self._name:
            return None
        if self._login.refused is not None:
            return str(self._login.refused)
        sentence = f"{name} of {self.options.address()} is read on its schedule (mode: {self.options.mode})."
        listener = self._listener  # when `listen` ends, in another thread, it sets this attribute to None
        if listener is not None:
            sentence = f"{sentence} {listener.sentence}"
        guarantee = self._created_changes.guarantee if self._created_changes is not None else None
        return sentence if guarantee is None else f"{sentence} {_guaranteed(guarantee, self.options.sweep_seconds)}"

    def notices(self) -> Iterable[str]:
        """Return sentences on the listener, on how changes are found, on rows that need the sweep, and on a backfill."""
        listener = self._listener
        if listener is not None:
            yield listener.sentence
        changes = self._created_changes
        if changes is not None and changes.guarantee is not None:
            guarantee = changes.guarantee
            yield f"Changes are found by the method '{guarantee.method}'. {guarantee.improvement}".rstrip()
            yield from filter(None, (guarantee.sentence, changes.notice, changes.progress))

    @contextmanager
    def listen(self, wake: Callable[[], None]) -> Iterator[None]:
        """If ``notify`` is set, wake the pipeline at notifications of the database while the context is open."""
        if self.options.notify is None:
            yield
            return
        # ``notify_url`` has its own account. So if the database refused the login of ``url``, this login is still tried.
        login = self._login if self.options.notify_url is None else LoginGuard()
        with driver_of("postgresql"):
            from connectors.database.notifications import NotificationListener  # noqa: PLC0415
        self._listener = NotificationListener(self.options, self.context, login, wake)
        self._listener.start()
        try:
            yield
        finally:
            self._listener.stop()
            self._listener = None

    def resume(self) -> None:
        """Log in again at the next reading, although the database refused the last login."""
        self._login.forget()
        if self._listener is not None:
            self._listener.retry()

    def reset(self) -> None:
        """Let the next reading read everything, and log in again even after a refused login. An operator requested this."""
        self.resume()
        if self._created_changes is not None:
            self._created_changes.reset()

    def close(self) -> None:
        """Close the files that stay open between readings."""
        if self._created_changes is not None:
            self._created_changes.close()

    @contextmanager
    def _session(self) -> Iterator[ReadSession]:
        """Open a session. After a refused login, raise `LoginRefused`, because another attempt may lock the account."""
        with ExitStack() as stack:
            with self._login.attempt():
                session = stack.enter_context(self._database.open())
            yield session

    @cached_property
    def _database(self) -> Database:
        return create_database(self.options, self.context.base)

    def _changes(self) -> ChangeReader:
        if self._created_changes is None:
            self._created_changes = ChangeReader(self.context, self._database.dialect, self._session)
        return self._created_changes


def _facts(guarantee: Guarantee | None) -> dict[str, str]:
    """Return facts about the reading. `ingestd trace` shows them for each row of the reading."""
    if guarantee is None:
        return {}
    improvement = {"changes.improvement": guarantee.improvement} if guarantee.improvement else {}
    return {"changes.method": guarantee.method, "changes.guarantee": guarantee.sentence, **improvement}


def _guaranteed(guarantee: Guarantee, sweep_seconds: float) -> str:
    """Return the sentences of a guarantee. If it mentions the sweep, add the sweep's interval."""
    parts = [f"Changes are found by the method '{guarantee.method}'.", guarantee.sentence]
    if "sweep" in guarantee.sentence:
        sweep = f"The sweep compares the keys of all rows every {sweep_seconds:g} seconds (sweep_seconds)."
        parts.append(sweep if sweep_seconds else "No sweep is configured (sweep_seconds: 0).")
    return " ".join([*parts, guarantee.improvement]).rstrip()
