"""Read-only connections, with every time limit set and every value requested as the server's text."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from operator import methodcaller
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.pool import NullPool

from connectors.database.options import DatabaseOptions

_LIMIT = "ingestd time limit"
_STEPS_BETWEEN_CHECKS = 10_000
_AS_WRITTEN = methodcaller("decode", "utf-8", "surrogateescape")


class TimeLimit:
    """Interrupts SQLite, which has no time limit, when one request takes too long."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.restart()

    def restart(self) -> None:
        """Begin a new request."""
        self._until = time.monotonic() + self._seconds

    def __call__(self) -> bool:
        """Return True if SQLite must stop."""
        return time.monotonic() > self._until


def create_engine_for(options: DatabaseOptions, base: Path) -> Engine:
    """Return an engine without a pool, so that no connection stays open between scheduled readings."""
    address = options.address()
    if address.get_backend_name() == "sqlite":
        return _sqlite(base / str(address.database), options)
    return _postgresql(options)


@contextmanager
def reading(engine: Engine, batch_rows: int) -> Iterator[Connection]:
    """Open one read-only transaction, which sees one state of the database and streams rows."""
    execution: dict[str, Any] = {"stream_results": True, "yield_per": batch_rows}
    if engine.dialect.name == "postgresql":
        execution |= {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    with engine.connect().execution_options(**execution) as connection, connection.begin():
        yield connection


def restart_limit(connection: Connection) -> None:
    """Give the next request the full time limit."""
    limit = connection.info.get(_LIMIT)
    if limit is not None:
        limit.restart()


def _sqlite(path: Path, options: DatabaseOptions) -> Engine:
    address = f"file:{quote(str(path.absolute()))}?mode=ro"

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(
            address, uri=True, timeout=options.connect_timeout_seconds, isolation_level=None, check_same_thread=False
        )
        connection.text_factory = _AS_WRITTEN
        return connection

    engine = sa.create_engine("sqlite://", creator=connect, poolclass=NullPool)

    @sa.event.listens_for(engine, "connect")
    def limit(connection: sqlite3.Connection, record: Any) -> None:
        limit = TimeLimit(options.statement_timeout_seconds)
        connection.set_progress_handler(limit, _STEPS_BETWEEN_CHECKS)
        record.info[_LIMIT] = limit

    @sa.event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    return engine


def _postgresql(options: DatabaseOptions) -> Engine:
    from connectors.database.postgresql import prepare_cursor, prepare_session  # noqa: PLC0415 - psycopg is an extra

    engine = sa.create_engine(
        options.address().set(drivername="postgresql+psycopg"),
        poolclass=NullPool,
        connect_args={
            "connect_timeout": options.connect_timeout_seconds,
            "application_name": "ingestd",
            # A server that disappeared is detected within a minute.
            "keepalives_idle": 30,
            "keepalives_interval": 10,
            "keepalives_count": 3,
        },
    )

    @sa.event.listens_for(engine, "connect")
    def session(connection: Any, _record: object) -> None:
        prepare_session(connection, options.statement_timeout_seconds)

    @sa.event.listens_for(engine, "before_cursor_execute")
    def cursor(connection: Connection, cursor: Any, *_: object) -> None:
        if connection.get_execution_options().get("stream_results"):
            prepare_cursor(cursor)

    return engine
