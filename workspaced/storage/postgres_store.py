"""`workspaced.storage.store.Store` on a PostgreSQL database, shared with other processes and hosts."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar, Unpack

import psycopg
import structlog

from workspaced.core.problems import UnavailableProblem
from workspaced.storage.address import PostgresAddress
from workspaced.storage.port import ReadTransaction, StorageUnusable, Transaction
from workspaced.storage.postgres import (
    CHANNEL,
    LOCK_SECONDS,
    Connection,
    RolledBack,
    as_problem,
    connect,
    connect_to_listen,
    transaction,
)
from workspaced.storage.postgres_group import PostgresGroup
from workspaced.storage.postgres_schema import migrate, require_head
from workspaced.storage.store import BRIEF_READERS, Store, StoreOptions

__all__ = ["PostgresStore", "migrate", "transact"]

T = TypeVar("T")
_LISTEN_AGAIN_SECONDS = 1.0


def transact(address: PostgresAddress, work: Callable[[Transaction], T]) -> T:
    """Run one transaction, for commands and tests, which have no running store.

    Raises:
        UnavailableProblem: the database is busy, can't be reached, or has another schema than this program.
    """
    group = PostgresGroup(lambda: _connect(address, lock_seconds=LOCK_SECONDS))
    try:
        ((result, error),) = group.perform([work])
        if error is not None:
            raise error
        done: T = result
        return done
    finally:
        group.close()


class PostgresStore(Store):
    """The database as one process uses it: a writer, some readers, one connection that listens. All reconnect.

    Listeners are notified of the commits of all processes, except while the listening connection is lost.
    """

    def __init__(
        self,
        address: PostgresAddress,
        *,
        folder: Path,
        jitter: Callable[[], float] = random.random,
        **options: Unpack[StoreOptions],
    ) -> None:
        """``folder`` is the data folder; ``jitter`` returns random numbers from 0 to 1."""
        super().__init__(folder, **options)
        self._address = address
        self._jitter = jitter
        self._most_idle = options["readers"] + BRIEF_READERS
        self._idle: list[Connection] = []
        self._idle_lock = threading.Lock()
        self._group = PostgresGroup(self._connect, jitter=jitter)
        self._listening: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to accept work. Connections are opened on demand, so the server may start later than this process.

        Raises:
            StorageUnusable: the data folder can't be used.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise StorageUnusable(
                f"The data folder {self._folder} can't be used ({error.strerror or error}). "
                "Give a folder that this user may write to."
            ) from error
        self._start_writer(self._group.perform)
        self._listening = asyncio.create_task(self._listen())

    async def stop(self) -> None:
        """Finish all accepted work and disconnect."""
        if self._listening:
            self._listening.cancel()
            await asyncio.wait([self._listening])
        await self._stop_threads()
        self._group.close()
        self._close_idle()

    def _query(self, query: Callable[[ReadTransaction], T]) -> T:
        try:
            return self._query_once(query)
        except RolledBack as rolled_back:
            if not isinstance(rolled_back.reason, psycopg.OperationalError):
                raise as_problem(rolled_back.reason) from rolled_back
        self._close_idle()  # the server may have restarted, so the other connections are lost, too
        try:
            return self._query_once(query)
        except RolledBack as rolled_back:
            raise as_problem(rolled_back.reason) from rolled_back

    def _query_once(self, query: Callable[[ReadTransaction], T]) -> T:
        with self._borrowed() as connection, transaction(connection, write=False) as view:
            return query(view)

    def _steps(self, query: Callable[[ReadTransaction], Iterator[T]]) -> Generator[T, None, None]:
        try:
            with self._borrowed() as connection, transaction(connection, write=False) as view:
                yield from query(view)
        except RolledBack as rolled_back:
            self._close_idle()
            raise as_problem(rolled_back.reason) from rolled_back

    def _check_schema(self) -> None:
        with self._borrowed() as connection:
            try:
                require_head(connection, self._address)
            except psycopg.Error as error:
                raise as_problem(error) from error

    @staticmethod
    def _check_writable(tx: Transaction) -> None:
        if tx.one("SHOW transaction_read_only") != ("off",):
            raise UnavailableProblem(
                "storage_failed", "The database accepts no writes: it is a standby.", retry_seconds=5
            )

    @contextmanager
    def _borrowed(self) -> Iterator[Connection]:
        with self._idle_lock:
            connection = self._idle.pop() if self._idle else None
        connection = connection or self._connect()
        try:
            yield connection
        finally:
            with self._idle_lock:
                kept = not connection.closed and len(self._idle) < self._most_idle
                if kept:
                    self._idle.append(connection)
            if not kept:
                connection.close()

    def _close_idle(self) -> None:
        with self._idle_lock:
            closed, self._idle = self._idle, []
        for connection in closed:
            connection.close()

    def _connect(self) -> Connection:
        return _connect(self._address, lock_seconds=self._busy_seconds)

    async def _listen(self) -> None:
        """Announce the notifications of all processes until cancelled; after each connect announce all channels."""
        log = structlog.get_logger()
        connected = True
        while True:
            try:
                async with await connect_to_listen(self._address) as connection:
                    await connection.execute(f"LISTEN {CHANNEL}")
                    if not connected:
                        log.info("storage_heard_again")
                    connected = True
                    self._announce(None)
                    async for notification in connection.notifies():
                        self._announce((notification.payload,))
            except UnavailableProblem as problem:
                if connected:
                    log.warning("storage_not_heard", reason=problem.detail)
                connected = False
            except psycopg.Error:
                log.warning("storage_not_heard", reason="the connection was lost")
                connected = False
            await asyncio.sleep(_LISTEN_AGAIN_SECONDS * (0.5 + self._jitter()))


def _connect(address: PostgresAddress, *, lock_seconds: float) -> Connection:
    connection = connect(address, lock_seconds=lock_seconds)
    try:
        require_head(connection, address)
    except BaseException:
        connection.close()
        raise
    return connection
