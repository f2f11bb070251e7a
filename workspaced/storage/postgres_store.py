"""`workspaced.storage.port.Store` on a PostgreSQL database, shared with other processes and hosts."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import psycopg
import structlog

from workspaced.core.problems import UnavailableProblem
from workspaced.storage.address import PostgresAddress
from workspaced.storage.disk import try_disk
from workspaced.storage.group_commit import GROUP_CALLERS, GroupCommit
from workspaced.storage.notifications import NotificationListeners
from workspaced.storage.port import (
    BRIEF_READERS,
    STREAM_THREADS,
    CommitObserver,
    ReadTransaction,
    StorageUnusable,
    Transaction,
)
from workspaced.storage.postgres import (
    CHANNEL,
    LOCK_SECONDS,
    Connection,
    Undone,
    as_problem,
    connect,
    connect_to_listen,
    transaction,
)
from workspaced.storage.postgres_group import PostgresGroup
from workspaced.storage.postgres_schema import require_head
from workspaced.storage.threaded_generator import iterate_on_threads

T = TypeVar("T")
_LISTEN_AGAIN_SECONDS = 1.0


def transact(address: PostgresAddress, work: Callable[[Transaction], T]) -> T:
    """One transaction of somebody who is no server: a command, a test.

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


class PostgresStore:
    """One process's use of the database: a writer, some readers, one connection that listens. Each reconnects by itself."""

    def __init__(
        self,
        address: PostgresAddress,
        *,
        folder: Path,
        readers: int,
        streams: int,
        lock_seconds: float = LOCK_SECONDS,
        jitter: Callable[[], float] = random.random,
        group_callers: int = GROUP_CALLERS,
        observer: CommitObserver = lambda _callers, _seconds: None,
    ) -> None:
        """``folder`` is the data folder, which `check` tries."""
        self._address = address
        self._folder = folder
        self._lock_seconds = lock_seconds
        self._jitter = jitter
        self._reading = asyncio.Semaphore(readers)
        self._reading_briefly = asyncio.Semaphore(BRIEF_READERS)
        self._streaming = asyncio.Semaphore(streams)
        self._keep = readers + BRIEF_READERS
        self._idle: list[Connection] = []
        self._idle_lock = threading.Lock()
        self._threads = ThreadPoolExecutor(max_workers=readers, thread_name_prefix="reader")
        self._brief_threads = ThreadPoolExecutor(max_workers=BRIEF_READERS, thread_name_prefix="brief-reader")
        self._stream_threads = ThreadPoolExecutor(max_workers=STREAM_THREADS, thread_name_prefix="stream")
        self._group = PostgresGroup(self._connect, jitter=jitter)
        self._writer = GroupCommit(self._group.perform, callers=group_callers, observer=observer)
        self._waking = NotificationListeners()
        self._listening: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to take work. The server is called when there is some, so it may come later than this process.

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
        self._writer.start()
        self._listening = asyncio.create_task(self._listen())

    async def stop(self) -> None:
        """Finish what was handed in and hang up."""
        if self._listening:
            self._listening.cancel()
            await asyncio.wait([self._listening])
        await asyncio.to_thread(self._writer.stop)
        for threads in (self._threads, self._brief_threads, self._stream_threads):
            await asyncio.to_thread(threads.shutdown)
        self._group.close()
        while self._idle:
            self._idle.pop().close()

    async def read(self, question: Callable[[ReadTransaction], T]) -> T:
        """As the port says."""
        return await self._read(question, self._reading, self._threads)

    async def read_brief(self, question: Callable[[ReadTransaction], T]) -> T:
        """As the port says."""
        return await self._read(question, self._reading_briefly, self._brief_threads)

    async def stream(self, question: Callable[[ReadTransaction], Iterator[T]]) -> AsyncGenerator[T, None]:
        """As the port says; a connection of its own, so that a slow client keeps no reader from the others."""
        async with self._streaming:
            steps = iterate_on_threads(self._stream_threads, self._steps(question))
            try:
                async for item in steps:
                    yield item
            finally:
                await steps.aclose()

    async def write(self, work: Callable[[Transaction], T], *, weight: int = 1) -> T:
        """As the port says."""
        return await self._writer.write(work, weight=weight)

    def listen(self, channel: str, wake: Callable[[], None]) -> None:
        """As the port says; every process on the database is heard, except while the connection is away."""
        self._waking.listen(channel, wake)

    async def check(self) -> None:
        """As the port says."""
        await asyncio.get_running_loop().run_in_executor(self._brief_threads, self._check_schema)
        await asyncio.to_thread(try_disk, self._folder)
        await self.write(_require_writable)

    async def _read(
        self, question: Callable[[ReadTransaction], T], places: asyncio.Semaphore, threads: ThreadPoolExecutor
    ) -> T:
        await places.acquire()
        asked = asyncio.get_running_loop().run_in_executor(threads, self._ask, question)
        # The place is free when the thread is done, even where the caller has been cancelled meanwhile.
        asked.add_done_callback(lambda _: places.release())
        return await asyncio.shield(asked)

    def _ask(self, question: Callable[[ReadTransaction], T]) -> T:
        try:
            return self._asked(question)
        except Undone as undone:
            if not isinstance(undone.reason, psycopg.OperationalError):
                raise as_problem(undone.reason) from undone
        self._drop_idle()  # the server went away and may be back: the others will be dead, too
        try:
            return self._asked(question)
        except Undone as undone:
            raise as_problem(undone.reason) from undone

    def _asked(self, question: Callable[[ReadTransaction], T]) -> T:
        with self._borrowed() as connection, transaction(connection, write=False) as view:
            return question(view)

    def _steps(self, question: Callable[[ReadTransaction], Iterator[T]]) -> Generator[T, None, None]:
        try:
            with self._borrowed() as connection, transaction(connection, write=False) as view:
                yield from question(view)
        except Undone as undone:
            self._drop_idle()
            raise as_problem(undone.reason) from undone

    def _check_schema(self) -> None:
        with self._borrowed() as connection:
            try:
                require_head(connection, self._address)
            except psycopg.Error as error:
                raise as_problem(error) from error

    @contextmanager
    def _borrowed(self) -> Iterator[Connection]:
        with self._idle_lock:
            connection = self._idle.pop() if self._idle else None
        connection = connection or self._connect()
        try:
            yield connection
        finally:
            with self._idle_lock:
                kept = not connection.closed and len(self._idle) < self._keep
                if kept:
                    self._idle.append(connection)
            if not kept:
                connection.close()

    def _drop_idle(self) -> None:
        with self._idle_lock:
            dropped, self._idle = self._idle, []
        for connection in dropped:
            connection.close()

    def _connect(self) -> Connection:
        return _connect(self._address, lock_seconds=self._lock_seconds)

    async def _listen(self) -> None:
        """Hear what is committed, until cancelled; after a gap everybody looks."""
        log = structlog.get_logger()
        heard = True
        while True:
            try:
                async with await connect_to_listen(self._address) as connection:
                    await connection.execute(f"LISTEN {CHANNEL}")
                    if not heard:
                        log.info("storage_heard_again")
                    heard = True
                    self._waking.announce(None)
                    async for said in connection.notifies():
                        self._waking.announce((said.payload,))
            except UnavailableProblem as problem:
                if heard:
                    log.warning("storage_not_heard", reason=problem.detail)
                heard = False
            except psycopg.Error:
                log.warning("storage_not_heard", reason="the connection was lost")
                heard = False
            await asyncio.sleep(_LISTEN_AGAIN_SECONDS * (0.5 + self._jitter()))


def _connect(address: PostgresAddress, *, lock_seconds: float) -> Connection:
    connection = connect(address, lock_seconds=lock_seconds)
    try:
        require_head(connection, address)
    except BaseException:
        connection.close()
        raise
    return connection


def _require_writable(tx: Transaction) -> None:
    if tx.one("SHOW transaction_read_only") != ("off",):
        raise UnavailableProblem("storage_failed", "The database takes no writes: it is a standby.", retry_seconds=5)
