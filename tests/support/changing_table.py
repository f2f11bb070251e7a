"""Clients that change a table, and a reader that restarts at random points."""

from __future__ import annotations

import json
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, Protocol

import psycopg
import pymysql

from connectors.database.changes import ChangeReader
from ingestd.sdk import Cursor, SourceUnavailable

DISTURBANCES = (psycopg.OperationalError, pymysql.err.OperationalError, pymysql.err.InterfaceError)
"""Errors after which a transaction has ended: the server aborted it because of a deadlock, or the server stopped."""

_START_SECONDS = 60.0


class Client(Protocol):
    """The connection of a writer.

    ``prepare`` prepares the transaction, so that ``finish`` can commit it, also after a disconnect. ``recover`` connects again
    after one of `DISTURBANCES`. ``is_prepared`` returns whether a prepared transaction still waits for ``finish``.
    """

    def do(self, sql: str) -> None: ...
    def prepare(self, name: str) -> None: ...
    def finish(self, name: str) -> None: ...
    def is_prepared(self, name: str) -> bool: ...
    def recover(self) -> None: ...
    def close(self) -> None: ...


class SqlClient:
    """A client of a database server. ``kind``: ``postgresql`` or ``mariadb``."""

    def __init__(self, kind: str, connect: Callable[[], Any]) -> None:
        self._kind = kind
        self._connect = connect
        self._connection = connect()
        self._cursor = self._connection.cursor()

    def do(self, sql: str) -> None:
        self._cursor.execute(sql)

    def fetch(self, sql: str) -> Sequence[tuple[Any, ...]]:
        self.do(sql)
        rows: Sequence[tuple[Any, ...]] = self._cursor.fetchall()
        return rows

    def prepare(self, name: str) -> None:
        if self._kind == "postgresql":
            self.do(f"PREPARE TRANSACTION '{name}'")
            return
        self.do(f"XA END '{name}'")
        self.do(f"XA PREPARE '{name}'")
        self._connection.close()  # so that the prepared transaction has no connection
        self._connection = self._connect()
        self._cursor = self._connection.cursor()

    def finish(self, name: str) -> None:
        self.do(f"COMMIT PREPARED '{name}'" if self._kind == "postgresql" else f"XA COMMIT '{name}'")

    def is_prepared(self, name: str) -> bool:
        is_postgresql = self._kind == "postgresql"
        listed = self.fetch(
            "SELECT quote_literal(gid) FROM pg_prepared_xacts" if is_postgresql else "XA RECOVER FORMAT='SQL'"
        )
        return any(row[-1] == f"'{name}'" for row in listed)

    def recover(self) -> None:
        """Connect again. Retry while the server is starting."""
        self.close()
        until = time.monotonic() + _START_SECONDS
        while True:
            try:
                self._connection = self._connect()
                self._cursor = self._connection.cursor()
            except DISTURBANCES:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)  # a server can't notify clients that it has started
            else:
                return

    @contextmanager
    def in_background(self, sql: str, *, seen_by: SqlClient) -> Iterator[None]:
        """Execute a statement that ``seen_by`` blocks. The block runs while the statement waits, and must end the wait."""
        with ThreadPoolExecutor(1) as pool:
            statement = pool.submit(self.do, sql)
            until = time.monotonic() + 30
            while not seen_by.waits() and time.monotonic() < until:
                time.sleep(0.01)  # the server does not signal that a statement waits
            yield
            statement.result(30)

    def waits(self) -> bool:
        """Return whether a statement waits for a table lock (MariaDB)."""
        self.do("SELECT count(*) FROM information_schema.processlist WHERE state LIKE 'Waiting for table%'")
        return bool(self._cursor.fetchone()[0])

    def close(self) -> None:
        with suppress(psycopg.Error, pymysql.err.Error):  # the server may have closed the connection
            self._connection.close()


class SqliteClient:
    """A client of a SQLite file. Writers wait for each other with ``lock``, so that SQLite reports no busy file."""

    def __init__(self, path: str, lock: threading.Lock) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
        self._lock = lock
        self._locked = False

    def do(self, sql: str) -> None:
        if sql.startswith("BEGIN"):
            self._lock.acquire()
            self._locked = True
            sql = sql if sql == "BEGIN EXCLUSIVE" else "BEGIN IMMEDIATE"
        alone = not self._locked
        with self._lock if alone else threading.Lock():
            self._connection.execute(sql)
        if sql in {"COMMIT", "ROLLBACK"}:
            self._locked = False
            self._lock.release()

    def prepare(self, name: str) -> None:  # noqa: ARG002 - of the interface
        self.do("COMMIT")

    def finish(self, name: str) -> None:
        """Do nothing: SQLite can't prepare transactions, so `prepare` has committed."""

    def is_prepared(self, name: str) -> bool:  # noqa: ARG002 - of the interface
        return False

    def recover(self) -> None:
        """Do nothing: there is no server that could stop."""

    def close(self) -> None:
        self._connection.close()


class RestartingReader:
    """Reads changes as the intake does, and keeps the rows by key. A restart loses everything except the durable cursor."""

    def __init__(self, reader: Callable[[Callable[[], float]], ChangeReader], seed: int) -> None:
        self._new = reader
        self._rng = random.Random(seed)
        self._at = 0.0
        self._reader = reader(lambda: self._at)
        self.cursor: Cursor | None = None
        self.rows: dict[str, tuple[str | None, ...]] = {}
        self.read = self.whole = self.unavailable = 0

    def poll(self, *, broken: bool = False) -> None:
        """Read once. ``broken``: the reading may be interrupted before its last frame; the reader then restarts."""
        stop_after = self._rng.randrange(3) if broken else 10**9
        gathered: dict[str, tuple[str | None, ...]] = {}
        for count, reading in enumerate(self._reader.read(self.cursor)):
            if count >= stop_after:
                self.restart()
                return
            found: Sequence[tuple[str | None, ...]] = reading.frame.records.rows()
            rows = {str(row[0]): row for row in found}
            self.read += len(rows)
            self.rows |= rows
            gathered |= rows
            if reading.last:
                self.whole += reading.whole
                if reading.whole:
                    self.rows = gathered
                for position in reading.removed or ():
                    del self.rows[position.removeprefix("id=")]
                self.cursor = json.loads(json.dumps(reading.cursor))

    def reset(self) -> None:
        """Request a whole reading, as an operator does."""
        self._reader.reset()

    def restart(self) -> None:
        self._reader.close()
        self._reader = self._new(lambda: self._at)

    def sweep(self) -> None:
        """Read everything, because the interval of the sweep has passed."""
        self._at += 10**6
        self.poll()

    @property
    def method(self) -> str:
        return self._reader.guarantee.method if self._reader.guarantee is not None else ""

    @property
    def improvement(self) -> str:
        return self._reader.guarantee.improvement if self._reader.guarantee is not None else ""

    @property
    def notice(self) -> str:
        return self._reader.notice

    def replace(self, reader: Callable[[Callable[[], float]], ChangeReader]) -> None:
        """Restart with another configuration."""
        self._new = reader
        self.restart()

    def close(self) -> None:
        self._reader.close()

    def poll_at_random(self, pause: Callable[[float], object]) -> None:
        try:
            self.poll(broken=self._rng.random() < 0.2)
        except SourceUnavailable:  # the server restarts, and the daemon would try again
            self.unavailable += 1
        if self._rng.random() < 0.1:
            self.restart()
        pause(self._rng.choice([0.0, 0.02, 0.1, 0.3]))
