"""The database as one process uses it: the threads for queries, streams and the writer, for SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Collection, Generator, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Required, TypedDict, TypeVar, cast

from workspaced.core.clock import Clock
from workspaced.core.problems import UnavailableProblem
from workspaced.storage import schema
from workspaced.storage.disk import try_disk
from workspaced.storage.group_commit import GROUP_CALLERS, CommitObserver, GroupCommit, Perform
from workspaced.storage.port import ReadTransaction, Transaction, no_response

T = TypeVar("T")
_END = object()
BRIEF_READERS = 2
"""How many queries of `Store.read_brief` run at once."""
CHECK_SECONDS = 3.0
"""The time limit of `Store.check`."""
STREAM_THREADS = 4
"""How many streams read rows at the same time. Further streams wait before they read their next rows."""


class StoreOptions(TypedDict, total=False):
    """Options of the SQLite store and the PostgreSQL store.

    At most ``readers`` queries and ``streams`` streams run at once. ``busy_seconds``: the longest wait for a lock.
    ``group_callers``: the largest number of callers that share a commit.
    """

    readers: Required[int]
    streams: Required[int]
    busy_seconds: float
    group_callers: int
    observer: CommitObserver


class Store(ABC):
    """A database, which is started once and stopped once. A subclass implements the blocking operations."""

    def __init__(
        self,
        folder: Path,
        name: str,
        *,
        readers: int,
        streams: int,
        busy_seconds: float = 5.0,
        group_callers: int = GROUP_CALLERS,
        observer: CommitObserver = lambda _callers, _seconds: None,
    ) -> None:
        """``folder``: the data folder, which `check` tests. ``name``: the database in messages. Options: `StoreOptions`."""
        self.clock = Clock()
        """The clock of stored times. For a shared database it is the clock of the database, so that all hosts agree."""
        self._folder = folder
        self._name = name
        self._busy_seconds = busy_seconds
        self._group_callers = group_callers
        self._observer = observer
        self._lists = _ReaderThreads(readers, "reader")
        self._brief = _ReaderThreads(BRIEF_READERS, "brief-reader")
        self._streams = asyncio.Semaphore(streams)
        self._stream_threads = ThreadPoolExecutor(max_workers=STREAM_THREADS, thread_name_prefix="stream")
        self._listeners: list[tuple[str, asyncio.AbstractEventLoop, Callable[[], None]]] = []
        self._writer: GroupCommit | None = None

    @abstractmethod
    async def start(self) -> None:
        """Begin to accept work. Raises StorageUnusable: the store can never start."""

    @abstractmethod
    async def stop(self) -> None:
        """Finish all accepted work, then disconnect from the database."""

    async def read(self, query: Callable[[ReadTransaction], T]) -> T:
        """Run a query in one consistent view, on another thread.

        Raises:
            UnavailableProblem: the database is busy or can't be reached.
        """
        return await self._lists.run(lambda: self._query(query))

    async def read_brief(self, query: Callable[[ReadTransaction], T]) -> T:
        """Run a query like `read`, without waiting for the queries of `read`. The query must find only a few rows, by index.

        These queries have their own connections and threads, so concurrent lists do not delay authentication.

        Raises:
            UnavailableProblem: the database is busy or can't be reached.
        """
        return await self._brief.run(lambda: self._query(query))

    async def stream(self, query: Callable[[ReadTransaction], Iterator[T]]) -> AsyncGenerator[T, None]:
        """Yield the rows of the query from one consistent view, which stays open until the iterator ends or is closed.

        Each stream has its own connection, so a slow client takes no reader from other callers.
        """
        async with self._streams:
            steps = _iterate_on_threads(self._stream_threads, self._steps(query))
            try:
                async for item in steps:
                    yield item
            finally:
                await steps.aclose()

    async def write(self, work: Callable[[Transaction], T], *, weight: int = 1) -> T:
        """Do work in a transaction, on the writer's thread. When this method returns, the changes survive a loss of power.

        The work of several callers may share a transaction. If the work of one caller raises an exception, only its changes are
        undone, and only that caller gets the exception. ``weight`` is the approximate number of rows. The work must not block.
        It may be undone and run again, so it must have no effect outside of its transaction, except its result.

        Raises:
            UnavailableProblem: the database is busy, full or can't be reached; the message says if the outcome is unknown.
        """
        if self._writer is None:
            raise UnavailableProblem("starting", "The service is starting.")
        return await self._writer.write(work, weight=weight)

    def listen(self, channel: str, wake: Callable[[], None]) -> None:
        """Call ``wake`` on this event loop after each commit that notifies the channel.

        Commits of this process are always reported. Commits of other processes may be missed, so a listener must also check
        for changes periodically.
        """
        self._listeners.append((channel, asyncio.get_running_loop(), wake))

    async def check(self) -> None:
        """Check that the database can be read and written, has a usable schema, and that the folder is writable (readiness).

        Raises:
            UnavailableProblem: a check fails; the message says which.
        """
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                await self.read_brief(lambda reader: schema.require_usable(reader, self._name))
                await asyncio.to_thread(try_disk, self._folder)
                await self.write(self._check_writable)
        except TimeoutError:
            raise no_response(CHECK_SECONDS) from None

    @abstractmethod
    async def require_room(self) -> None:
        """Check that the database permits the connections of this process.

        Raises:
            StorageUnusable: the database permits fewer connections than this process needs.
            UnavailableProblem: other hosts hold too many connections, or the database can't be reached.
        """

    def _announce(self, channels: Collection[str] | None) -> None:
        """Call the callbacks of the channels, or (None) all callbacks. May be called from any thread."""
        for channel, loop, wake in self._listeners:
            if channels is not None and channel not in channels:
                continue
            try:
                loop.call_soon_threadsafe(wake)
            except RuntimeError:  # the loop was closed: its callbacks are gone
                continue

    def _start_writer(self, perform: Perform) -> None:
        self._writer = GroupCommit(perform, callers=self._group_callers, observer=self._observer)
        self._writer.start()

    async def _stop_threads(self) -> None:
        """Finish all accepted work, and end the threads."""
        if self._writer:
            await asyncio.to_thread(self._writer.stop)
        for threads in (self._lists.threads, self._brief.threads, self._stream_threads):
            await asyncio.to_thread(threads.shutdown)

    @abstractmethod
    def _query(self, query: Callable[[ReadTransaction], T]) -> T:
        """Run a query in a transaction."""

    @abstractmethod
    def _steps(self, query: Callable[[ReadTransaction], Iterator[T]]) -> Generator[T, None, None]:
        """Yield the rows of a query, in a transaction on a separate connection."""

    @staticmethod
    @abstractmethod
    def _check_writable(tx: Transaction) -> None:
        """Raise UnavailableProblem if the database accepts no writes."""


class _ReaderThreads:
    """Threads for queries. While all threads are in use, further queries wait in the event loop."""

    def __init__(self, count: int, name: str) -> None:
        self.threads = ThreadPoolExecutor(max_workers=count, thread_name_prefix=name)
        self._free = asyncio.Semaphore(count)

    async def run(self, query: Callable[[], T]) -> T:
        await self._free.acquire()
        running = asyncio.get_running_loop().run_in_executor(self.threads, query)
        # The thread is free when the query has ended, even if the caller was cancelled meanwhile.
        running.add_done_callback(lambda _: self._free.release())
        return await asyncio.shield(running)


async def _iterate_on_threads(threads: Executor, steps: Generator[T, None, None]) -> AsyncGenerator[T, None]:
    """Yield the items of the generator, and close it at the end, even if the caller stops early."""
    loop = asyncio.get_running_loop()
    step: asyncio.Future[T | object] = loop.run_in_executor(threads, next, steps, _END)
    try:
        while (item := await asyncio.shield(step)) is not _END:
            yield cast("T", item)
            step = loop.run_in_executor(threads, next, steps, _END)
    finally:
        await asyncio.shield(loop.create_task(_close(threads, step, steps)))


async def _close(threads: Executor, step: asyncio.Future[T | object], steps: Generator[T, None, None]) -> None:
    """Wait for the last step, then close the generator. A generator can't be closed while a thread runs it."""
    await asyncio.wait([step])
    await asyncio.get_running_loop().run_in_executor(threads, steps.close)
