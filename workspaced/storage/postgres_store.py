"""`workspaced.storage.store.Store` on a PostgreSQL database, shared with other processes and hosts."""

from __future__ import annotations

import asyncio
import random
import secrets
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar, Unpack

import psycopg
import structlog

from ingestd.process.postgres_address import PostgresAddress
from workspaced.core.clock import SharedClock
from workspaced.core.problems import UnavailableProblem
from workspaced.storage.database_clock import database_now
from workspaced.storage.disk import make_private_folder
from workspaced.storage.port import ReadTransaction, StorageUnusable, Transaction
from workspaced.storage.postgres import CHANNEL, PostgresTransaction, RolledBack, as_problem, notify, transaction
from workspaced.storage.postgres_connection import (
    LOCK_SECONDS,
    PostgresConnection,
    connect,
    connect_to_listen,
    wait_for_standby,
)
from workspaced.storage.postgres_group import PostgresGroup
from workspaced.storage.postgres_room import Room
from workspaced.storage.postgres_schema import enter, migrate
from workspaced.storage.store import BRIEF_READERS, Store, StoreOptions

__all__ = ["PostgresStore", "migrate", "transact"]

T = TypeVar("T")
_LISTEN_AGAIN_SECONDS = 1.0
_MEASURE_SECONDS = 10.0
_LISTEN_CHECK_SECONDS = 5.0
_FAILED_SECONDS = 1.0
"""After a failed attempt to connect, no new attempt is made for this time. Meanwhile, work that needs a new connection fails at
once with the same problem."""
_NOTIFY_SECONDS = 0.05


def transact(address: PostgresAddress, work: Callable[[Transaction], T]) -> T:
    """Run one transaction, for commands and tests, which have no running store.

    Raises:
        UnavailableProblem: the database is busy, can't be reached, or has a schema that this program can't use.
    """
    channels: set[str] = set()
    group = PostgresGroup(lambda: _connect(address, lock_seconds=LOCK_SECONDS), announce=channels.update)
    try:
        ((result, error),) = group.perform([work])
        if error is not None:
            raise error
        with suppress(psycopg.Error):  # the work is done, and other processes also look for changes periodically
            notify(group.connection(), channels)
        done: T = result
        return done
    finally:
        group.close()


class PostgresStore(Store):
    """The database as one process uses it: a writer, some readers, and a listening connection. Lost connections are replaced.

    Listeners are notified of the commits of this process at once, and of the commits of other processes soon, except while a
    connection is lost.
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
        super().__init__(folder, f"The database {address}", **options)
        self.clock: SharedClock = SharedClock()
        self._room = Room(options["readers"] + BRIEF_READERS + options["streams"] + 2)  # the writer and the listener
        self._address = address
        self._jitter = jitter
        self._most_idle = options["readers"] + BRIEF_READERS
        self._idle: list[PostgresConnection] = []
        self._idle_lock = threading.Lock()
        self._lineage = (0, 0)
        self._failed: tuple[float, UnavailableProblem] | None = None
        self._group = PostgresGroup(self._connect_to_write, announce=self._announce_commit, jitter=jitter)
        self._name = secrets.token_hex(8)
        self._unsent: set[str] = set()
        self._unsent_lock = threading.Lock()
        self._has_unsent = asyncio.Event()
        self._wake_notifier: Callable[[], object] = self._has_unsent.set
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin to accept work. Connections are opened on demand, so the server may start later than this process.

        Raises:
            StorageUnusable: the data folder can't be used.
        """
        try:
            make_private_folder(self._folder)
        except OSError as error:
            raise StorageUnusable(
                f"The data folder {self._folder} can't be used ({error.strerror or error}). "
                "Give a folder that this user may write to."
            ) from error
        self._start_writer(self._group.perform)
        loop = asyncio.get_running_loop()
        self._wake_notifier = lambda: loop.call_soon_threadsafe(self._has_unsent.set)
        work = (self._listen(), self._notify(), self._follow_clock())
        self._tasks = [loop.create_task(one) for one in work]

    async def stop(self) -> None:
        """Finish all accepted work and disconnect."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._stop_threads()
        with suppress(UnavailableProblem, psycopg.Error):
            await asyncio.to_thread(self._send_notifications, self._unsent)
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

    @staticmethod
    def _check_writable(tx: Transaction) -> None:
        if tx.one("SHOW transaction_read_only") != ("off",):
            raise as_problem(psycopg.errors.ReadOnlySqlTransaction())

    @contextmanager
    def _borrowed(self) -> Iterator[PostgresConnection]:
        with self._idle_lock:
            connection = self._idle.pop() if self._idle else None
        connection = connection or self._connect()
        try:
            yield connection
        finally:
            with self._idle_lock:
                is_current = connection.lineage in {(0, 0), self._lineage}
                kept = not connection.closed and is_current and len(self._idle) < self._most_idle
                if kept:
                    self._idle.append(connection)
            if not kept:
                connection.close()

    def _close_idle(self) -> None:
        with self._idle_lock:
            closed, self._idle = self._idle, []
        for connection in closed:
            connection.close()

    def _connect(self) -> PostgresConnection:
        failed = self._failed
        if failed and time.monotonic() - failed[0] < _FAILED_SECONDS:
            raise failed[1].with_traceback(None)
        try:
            connection = _connect(self._address, lock_seconds=self._busy_seconds)
            with _closed_on_failure(connection):
                self._require_current(connection)
                reader = PostgresTransaction(connection, write=False, has_begun=True)
                self.clock.measure(lambda: database_now(reader))
        except UnavailableProblem as problem:
            self._failed = time.monotonic(), problem
            raise
        return connection

    def _require_current(self, connection: PostgresConnection) -> None:
        """Prefer the host of this connection from now on, unless it is a former primary (its standby was promoted).

        A former primary may respond again after it was frozen. Its data is older than the data of the new primary.

        Raises:
            UnavailableProblem: the host is a former primary.
        """
        database, timeline = connection.lineage
        is_former = database == self._lineage[0] and timeline < self._lineage[1]
        host, port = connection.info.host, connection.info.port
        connection.on_silence = partial(self._prefer, host, port, first=False)
        self._prefer(host, port, first=not is_former)
        if is_former:
            raise UnavailableProblem(
                "storage_failed",
                f"The server {host}:{port} of the database {self._address} is a former primary: its timeline is {timeline}, but "
                f"{self._lineage[1]} was used before. Stop it, or make it a standby.",
                retry_seconds=5,
            )
        if timeline and connection.lineage != self._lineage:
            self._lineage = connection.lineage
            self._close_idle()

    def _prefer(self, host: str, port: int, *, first: bool) -> None:
        self._address = self._address.preferring(host, port, first=first)

    def _connect_to_write(self) -> PostgresConnection:
        connection = self._connect()
        with _closed_on_failure(connection):
            wait_for_standby(connection)
        return connection

    async def _follow_clock(self) -> None:
        """Measure the database's clock periodically until cancelled, so that `clock` stays right if a clock is adjusted."""
        while True:
            await asyncio.sleep(_MEASURE_SECONDS)
            try:
                await self.read_brief(lambda view: self.clock.measure(lambda: database_now(view)))
            except UnavailableProblem:  # the work that needs the database reports it
                continue

    async def require_room(self) -> None:
        """See `Store.require_room`. This method waits for the first attempt to open the listening connection."""
        await self._room.require()

    def _announce_commit(self, channels: Collection[str]) -> None:
        """Wake the listeners of this process now, and the listeners of other processes soon (`_notify`)."""
        if channels:
            self._announce(channels)
            with self._unsent_lock:
                self._unsent.update(channels)
            self._wake_notifier()

    async def _notify(self) -> None:
        """Send notifications until cancelled, at most once in `_NOTIFY_SECONDS`, because a notification wakes all processes."""
        while True:
            await self._has_unsent.wait()
            self._has_unsent.clear()
            with self._unsent_lock:
                channels, self._unsent = self._unsent, set()
            try:
                await self._brief.run(partial(self._send_notifications, channels))
            except (UnavailableProblem, psycopg.Error):  # the other processes also look for changes periodically
                structlog.get_logger().debug("storage_notification_lost", channels=sorted(channels))
            await asyncio.sleep(_NOTIFY_SECONDS)

    def _send_notifications(self, channels: Collection[str]) -> None:
        if not channels:
            return
        with self._borrowed() as connection:
            notify(connection, channels, sender=self._name)

    async def _listen(self) -> None:
        """Announce the notifications of other processes until cancelled; after each connect, announce all channels."""
        log = structlog.get_logger()
        connected = True
        while True:
            try:
                async with await connect_to_listen(self._address) as connection:
                    await self._room.claim(connection)
                    await connection.execute(f"LISTEN {CHANNEL}")
                    if not connected:
                        log.info("storage_responds_again")
                    connected = True
                    self._announce(None)
                    while True:
                        async for notification in connection.notifies(timeout=_LISTEN_CHECK_SECONDS):
                            channel, _, sender = notification.payload.partition(" ")
                            if sender != self._name:
                                self._announce((channel,))
                        await connection.execute("SELECT 1")  # fails if the server no longer responds
            except UnavailableProblem as problem:
                if connected:
                    log.warning("storage_does_not_respond", reason=problem.detail)
                self._room.failed(problem)
                connected = False
            except psycopg.Error:
                self._room.failed(UnavailableProblem("storage_lost", "The connection to the database was lost."))
                log.warning("storage_does_not_respond", reason="the connection was lost")
                connected = False
            await asyncio.sleep(_LISTEN_AGAIN_SECONDS * (0.5 + self._jitter()))


def _connect(address: PostgresAddress, *, lock_seconds: float) -> PostgresConnection:
    connection = connect(address, lock_seconds=lock_seconds)
    with _closed_on_failure(connection):
        enter(connection, address)
    return connection


@contextmanager
def _closed_on_failure(connection: PostgresConnection) -> Iterator[None]:
    """Close a new connection that can't be used. An error of the driver is raised as the corresponding problem."""
    try:
        yield
    except BaseException as error:
        connection.close()
        if isinstance(error, psycopg.Error):
            raise as_problem(error) from error
        raise
