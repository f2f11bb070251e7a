"""A table that several writers change at the same time in every awkward way, and a reader that restarts at random points.

Writers set the column ``at`` as applications do: to the time of the transaction (PostgreSQL) or of the statement (MariaDB). They
commit out of order, with savepoints, after reading for a while without a transaction id, and as prepared transactions. Changes
that no column shows (deletes, changed keys, back-dated and missing times) are recorded as ``unsigned``.
"""

from __future__ import annotations

import json
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol

from connectors.database.changes import ChangeReader
from ingestd.sdk import Cursor

WRITERS = 8
_ROWS_OF_A_WRITER = 40


class Client(Protocol):
    """A connection of one writer. ``prepare`` ends a transaction so that ``finish`` can commit it, also after a disconnect."""

    def do(self, sql: str) -> None: ...
    def prepare(self, name: str) -> None: ...
    def finish(self, name: str) -> None: ...
    def close(self) -> None: ...


class SqlClient:
    """A client of a server; ``kind`` is postgresql or mariadb."""

    def __init__(self, kind: str, connect: Callable[[], Any]) -> None:
        self._kind = kind
        self._connect = connect
        self._connection = connect()
        self._cursor = self._connection.cursor()

    def do(self, sql: str) -> None:
        self._cursor.execute(sql)

    def prepare(self, name: str) -> None:
        if self._kind == "postgresql":
            self.do(f"PREPARE TRANSACTION '{name}'")
            return
        self.do(f"XA END '{name}'")
        self.do(f"XA PREPARE '{name}'")
        self._connection.close()  # the transaction then has no connection
        self._connection = self._connect()
        self._cursor = self._connection.cursor()

    def finish(self, name: str) -> None:
        self.do(f"COMMIT PREPARED '{name}'" if self._kind == "postgresql" else f"XA COMMIT '{name}'")

    @contextmanager
    def in_background(self, sql: str, *, seen_by: SqlClient) -> Iterator[None]:
        """Execute a statement that waits for ``seen_by``; the context begins when it waits, and ends when it has ended."""
        with ThreadPoolExecutor(1) as pool:
            statement = pool.submit(self.do, sql)
            until = time.monotonic() + 30
            while not seen_by.waits() and time.monotonic() < until:
                time.sleep(0.01)  # the server does not signal that a statement waits
            yield
            statement.result(30)

    def waits(self) -> bool:
        """Return whether a statement of MariaDB waits for a lock of a table."""
        self.do("SELECT count(*) FROM information_schema.processlist WHERE state LIKE 'Waiting for table%'")
        return bool(self._cursor.fetchone()[0])

    def close(self) -> None:
        self._connection.close()


class SqliteClient:
    """A client of a file, with a lock that makes the writers wait for each other without an error."""

    def __init__(self, path: str, lock: threading.Lock) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
        self._lock = lock
        self._locked = False

    def do(self, sql: str) -> None:
        if sql.startswith("BEGIN"):
            self._lock.acquire()
            self._locked = True
            sql = "BEGIN IMMEDIATE"
        alone = not self._locked
        with self._lock if alone else threading.Lock():
            self._connection.execute(sql)
        if sql in {"COMMIT", "ROLLBACK"}:
            self._locked = False
            self._lock.release()

    def prepare(self, name: str) -> None:  # noqa: ARG002 - of the interface
        self.do("COMMIT")

    def finish(self, name: str) -> None:
        """Do nothing: a transaction of a file can't be prepared, so it was committed."""

    def close(self) -> None:
        self._connection.close()


class Writers:
    """Several threads that change a table until `stop`."""

    def __init__(self, table: str, clock: str, client: Callable[[], Client], *, begin_xa: bool, seed: int) -> None:
        self._table = table
        self._clock = clock
        self._client = client
        self._begin_xa = begin_xa
        self._stopped = threading.Event()
        self._failures: list[BaseException] = []
        self.unsigned: set[str] = set()
        self.commits = 0
        self._threads = [
            threading.Thread(target=self._write, args=(seed * 100 + number, number)) for number in range(WRITERS)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End all transactions."""
        self._stopped.set()
        for thread in self._threads:
            thread.join(60)
        if self._failures:
            raise self._failures[0]

    def _write(self, seed: int, number: int) -> None:
        client, rng = self._client(), random.Random(seed)
        try:
            for turn in range(10**6):
                if self._stopped.is_set():
                    return
                self._transaction(client, rng, number, f"t{seed}_{turn}")
                self.commits += 1
        except BaseException as error:  # noqa: BLE001 - reported by `stop`
            self._failures.append(error)
        finally:
            client.close()

    def _transaction(self, client: Client, rng: random.Random, number: int, name: str) -> None:
        kind = rng.choice(
            ["one", "one", "several", "savepoint", "slow", "without id", "prepared", "ties", "rollback", "unsigned"]
        )
        if kind in {"one", "unsigned"}:
            client.do("BEGIN")
            self._unsigned(client, rng, number) if kind == "unsigned" else self._upsert(client, rng, number, name)
            client.do("COMMIT")
            return
        client.do(f"XA BEGIN '{name}'" if kind == "prepared" and self._begin_xa else "BEGIN")
        if kind == "without id":
            client.do(f"SELECT count(*) FROM {self._table}" if rng.random() < 0.5 else "SELECT 1")
            self._pause(rng)
        for _ in range(rng.randrange(1, 4)):
            if kind == "savepoint":
                client.do("SAVEPOINT s")
                self._upsert(client, rng, number, name)
                client.do("ROLLBACK TO SAVEPOINT s" if rng.random() < 0.3 else "RELEASE SAVEPOINT s")
            elif kind == "ties":
                low = number * 1000
                client.do(
                    f"UPDATE {self._table} SET v = '{name}', at = {self._clock} WHERE id BETWEEN {low} AND {low + 999}"
                    " AND at < '2200-01-01'"
                )
            else:
                self._upsert(client, rng, number, name)
            if kind == "slow":
                self._pause(rng)
        self._pause(rng)
        if kind == "prepared":
            client.prepare(name)
            self._pause(rng)
            client.finish(name)
        else:
            client.do("ROLLBACK" if kind == "rollback" else "COMMIT")

    def _upsert(self, client: Client, rng: random.Random, number: int, name: str) -> None:
        identity = number * 1000 + rng.randrange(_ROWS_OF_A_WRITER)
        client.do(f"DELETE FROM {self._table} WHERE id = {identity}")
        client.do(f"INSERT INTO {self._table} VALUES ({identity}, '{name}', {self._clock})")
        if rng.random() < 0.5:
            client.do(f"UPDATE {self._table} SET v = '{name}b', at = {self._clock} WHERE id = {identity}")

    def _unsigned(self, client: Client, rng: random.Random, number: int) -> None:
        identity, other = (number * 1000 + rng.randrange(500, 500 + _ROWS_OF_A_WRITER) for _ in range(2))
        self.unsigned |= {str(identity), str(other)}
        client.do(f"DELETE FROM {self._table} WHERE id IN ({identity}, {other})")
        at = rng.choice(["NULL", "'2001-02-03 04:05:06'", "'2300-01-01 00:00:00'"])
        client.do(f"INSERT INTO {self._table} VALUES ({identity}, 'u{rng.random()}', {at})")
        if rng.random() < 0.5:
            client.do(f"UPDATE {self._table} SET id = {other} WHERE id = {identity}")

    def _pause(self, rng: random.Random) -> None:
        self._stopped.wait(rng.choice([0.0, 0.01, 0.05, 0.2, 0.6]))


class RestartingReader:
    """Reads changes as the intake does, and knows the rows by key. Restarts lose everything but the durable cursor."""

    def __init__(self, reader: Callable[[Callable[[], float]], ChangeReader], seed: int) -> None:
        self._new = reader
        self._rng = random.Random(seed)
        self._at = 0.0
        self._reader = reader(lambda: self._at)
        self.cursor: Cursor | None = None
        self.rows: dict[str, tuple[str | None, ...]] = {}
        self.read = self.whole = self.polls = 0

    def poll(self, *, broken: bool = False) -> None:
        """Read once; ``broken``: the reading may end before its last frame, and the reader then restarts."""
        stop_after = self._rng.randrange(3) if broken else 10**9
        gathered: dict[str, tuple[str | None, ...]] = {}
        self.polls += 1
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
        self.poll(broken=self._rng.random() < 0.2)
        if self._rng.random() < 0.1:
            self.restart()
        pause(self._rng.choice([0.0, 0.02, 0.1, 0.3]))
