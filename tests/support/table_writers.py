"""Several writers that change a table at the same time, in ways that are difficult for a reader of changes.

They set the column ``at`` as applications do: to the time of the transaction (PostgreSQL) or of the statement (MariaDB), by the
server's clock or by a clock that differs by at most `SKEW_SECONDS`. They commit out of order, with savepoints, after a while
without a transaction id, as prepared transactions, and under table locks. If the server ends a transaction, because of a
deadlock or a restart, it is not repeated. The column does not show some changes (deletes, changed keys, back-dated and missing
times); the keys of these changes are in ``unsigned``.
"""

from __future__ import annotations

import random
import threading

from tests.support.changing_table import DISTURBANCES, Client
from tests.support.database_scene import DatabaseScene

WRITERS = 8
SKEW_SECONDS = 0.4
_ROWS_OF_A_WRITER = 40
_KINDS = [
    "one", "one", "several", "savepoint", "slow", "without id", "prepared", "ties", "rollback", "unsigned", "lock",
]  # fmt: skip


class Writers:
    """Threads that change table ``p`` until `stop`."""

    def __init__(self, scene: DatabaseScene, *, seed: int) -> None:
        self._scene = scene
        self._stopped = threading.Event()
        self._failures: list[BaseException] = []
        self.unsigned: set[str] = set()
        self.commits = self.disturbed = 0
        self._seed = seed
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        for number in range(WRITERS):
            arguments = (self._scene.client(), random.Random(self._seed * 100 + number), number)
            self._threads.append(threading.Thread(target=self._write, args=arguments))
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop the threads after their current transactions. Raise the first failure."""
        self._stopped.set()
        for thread in self._threads:
            thread.join(120)
        if self._failures:
            raise self._failures[0]

    def _write(self, client: Client, rng: random.Random, number: int) -> None:
        try:
            for turn in range(10**6):
                if self._stopped.is_set():
                    return
                name = f"t{self._seed}_{number}_{turn}"
                try:
                    self._transaction(client, rng, number, name)
                    self.commits += 1
                except DISTURBANCES:
                    self.disturbed += 1
                    self._recover(client, name)
        except BaseException as error:  # noqa: BLE001 - reported by `stop`
            self._failures.append(error)
        finally:
            client.close()

    def _recover(self, client: Client, name: str) -> None:
        """Connect again, and commit the transaction if it was prepared before the disturbance."""
        while True:
            try:
                client.recover()
                if client.is_prepared(name):
                    client.finish(name)
            except DISTURBANCES:
                continue
            return

    def _transaction(self, client: Client, rng: random.Random, number: int, name: str) -> None:
        kind = rng.choice(_KINDS)
        if kind == "lock":
            self._locked(client, rng, number, name)
            return
        if kind in {"one", "unsigned"}:
            client.do("BEGIN")
            self._unsigned(client, rng, number) if kind == "unsigned" else self._upsert(client, rng, number, name)
            client.do("COMMIT")
            return
        client.do(f"XA BEGIN '{name}'" if kind == "prepared" and self._scene.kind == "mariadb" else "BEGIN")
        if kind == "without id":
            client.do("SELECT count(*) FROM p" if rng.random() < 0.5 else "SELECT 1")
            self._pause(rng)
        for _ in range(rng.randrange(1, 4)):
            if kind == "savepoint":
                client.do("SAVEPOINT s")
                self._upsert(client, rng, number, name)
                client.do("ROLLBACK TO SAVEPOINT s" if rng.random() < 0.3 else "RELEASE SAVEPOINT s")
            elif kind == "ties":
                low = number * 1000
                client.do(
                    f"UPDATE p SET v = '{name}', at = {self._time(rng)} WHERE id BETWEEN {low} AND {low + 999}"
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

    def _locked(self, client: Client, rng: random.Random, number: int, name: str) -> None:
        """Write under a lock of the whole table, so that statements of other writers and of the reader wait."""
        if self._scene.kind == "mariadb":
            client.do("LOCK TABLES p WRITE")
        elif self._scene.kind == "postgresql":
            client.do("BEGIN")
            client.do("LOCK TABLE p IN ACCESS EXCLUSIVE MODE")
        else:
            client.do("BEGIN EXCLUSIVE")
        self._pause(rng)
        self._upsert(client, rng, number, name)
        client.do("UNLOCK TABLES" if self._scene.kind == "mariadb" else "COMMIT")

    def _upsert(self, client: Client, rng: random.Random, number: int, name: str) -> None:
        identity = number * 1000 + rng.randrange(_ROWS_OF_A_WRITER)
        client.do(f"DELETE FROM p WHERE id = {identity}")
        client.do(f"INSERT INTO p VALUES ({identity}, '{name}', {self._time(rng)})")
        if rng.random() < 0.5:
            client.do(f"UPDATE p SET v = '{name}b', at = {self._time(rng)} WHERE id = {identity}")

    def _unsigned(self, client: Client, rng: random.Random, number: int) -> None:
        identity, other = (number * 1000 + rng.randrange(500, 500 + _ROWS_OF_A_WRITER) for _ in range(2))
        self.unsigned |= {str(identity), str(other)}
        client.do(f"DELETE FROM p WHERE id IN ({identity}, {other})")
        at = rng.choice(["NULL", "'2001-02-03 04:05:06'", "'2300-01-01 00:00:00'"])
        client.do(f"INSERT INTO p VALUES ({identity}, 'u{rng.random()}', {at})")
        if rng.random() < 0.5:
            client.do(f"UPDATE p SET id = {other} WHERE id = {identity}")

    def _time(self, rng: random.Random) -> str:
        """Return an SQL expression of the time, by the server's clock or a client's clock."""
        return self._scene.skewed(rng.choice([0.0, 0.0, round(rng.uniform(-SKEW_SECONDS, SKEW_SECONDS), 3)]))

    def _pause(self, rng: random.Random) -> None:
        self._stopped.wait(rng.choice([0.0, 0.01, 0.05, 0.2, 0.6]))
