"""`workspaced.storage.port.Store` on one SQLite file, shared with other processes of the same host."""

from __future__ import annotations

import asyncio
import fcntl
import sqlite3
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from workspaced.core.problems import UnavailableProblem
from workspaced.storage import migrations, sqlite_schema
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
from workspaced.storage.sqlite import BUSY_SECONDS, connect, transaction
from workspaced.storage.sqlite_group import SqliteGroup
from workspaced.storage.threaded_generator import iterate_on_threads

T = TypeVar("T")


def open_database(path: Path, *, busy_seconds: float = BUSY_SECONDS) -> sqlite3.Connection:
    """A connection to a database that exists, is in WAL mode and has the newest schema; makes what is missing.

    Raises:
        StorageUnusable: the folder or file can't be used; the sentence says why and what to do.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Several processes may start at once, and changing the journal mode does not wait for SQLite's own locks.
        with (path.parent / f"{path.name}.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            connection = connect(path, busy_seconds=busy_seconds)
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                sqlite_schema.migrate(connection, name=str(path))
            except BaseException:
                connection.close()
                raise
            path.chmod(0o600)
            return connection
    except OSError as error:
        raise StorageUnusable(
            f"The data folder {path.parent} can't be used ({error.strerror or error}). "
            "Give a folder that this user may write to."
        ) from error
    except sqlite3.Error as error:
        raise StorageUnusable(f"The database {path} can't be used ({error}). Restore it from a backup.") from error


def migrate(path: Path) -> tuple[int, int]:
    """Bring a file, which need not be there yet, to the newest schema; from which step to which.

    Raises:
        StorageUnusable: the folder or file can't be used.
    """
    before = 0
    if path.exists():
        with _opened(path) as connection:
            try:
                before = sqlite_schema.reached(connection)
            except sqlite3.Error as error:
                raise StorageUnusable(
                    f"The database {path} can't be used ({error}). Restore it from a backup."
                ) from error
    open_database(path).close()
    return before, migrations.head()


def transact(path: Path, work: Callable[[Transaction], T]) -> T:
    """One transaction of somebody who is no server: a command, a test.

    Raises:
        StorageUnusable: the folder or file can't be used.
        UnavailableProblem: the database is busy.
    """
    connection = open_database(path)
    try:
        with transaction(connection, write=True) as tx:
            return work(tx)
    finally:
        connection.close()


class SqliteStore:
    """One process's use of the file: a writer thread, a few readers, and a connection for each long answer."""

    def __init__(
        self,
        path: Path,
        *,
        readers: int,
        streams: int,
        busy_seconds: float = BUSY_SECONDS,
        group_callers: int = GROUP_CALLERS,
        observer: CommitObserver = lambda _callers, _seconds: None,
    ) -> None:
        self._path = path
        self._busy_seconds = busy_seconds
        self._group_callers = group_callers
        self._observer = observer
        self._streams = asyncio.Semaphore(streams)
        self._lists = _Readers(readers, "reader")
        self._brief = _Readers(BRIEF_READERS, "brief-reader")
        self._connections: list[sqlite3.Connection] = []
        self._stream_threads = ThreadPoolExecutor(max_workers=STREAM_THREADS, thread_name_prefix="stream")
        self._writer: GroupCommit | None = None
        self._waking = NotificationListeners()

    async def start(self) -> None:
        """Open the file, bringing its schema up to date.

        Raises:
            StorageUnusable: it can't be used.
        """
        connection = await asyncio.to_thread(open_database, self._path, busy_seconds=self._busy_seconds)
        self._connections.append(connection)
        for readers in (self._lists, self._brief):
            self._connections += readers.open(self._path)
        self._writer = GroupCommit(
            SqliteGroup(connection, announce=self._waking.announce).perform,
            callers=self._group_callers,
            observer=self._observer,
        )
        self._writer.start()

    async def stop(self) -> None:
        """Finish what was handed in and close the file."""
        if self._writer:
            await asyncio.to_thread(self._writer.stop)
        for threads in (self._lists.threads, self._brief.threads, self._stream_threads):
            await asyncio.to_thread(threads.shutdown)
        while self._connections:
            self._connections.pop().close()

    async def read(self, question: Callable[[ReadTransaction], T]) -> T:
        """As the port says."""
        return await self._lists.read(question)

    async def read_brief(self, question: Callable[[ReadTransaction], T]) -> T:
        """As the port says."""
        return await self._brief.read(question)

    async def stream(self, question: Callable[[ReadTransaction], Iterator[T]]) -> AsyncGenerator[T, None]:
        """As the port says; a connection of its own, so that a slow client keeps no reader from the others."""
        async with self._streams:
            steps = iterate_on_threads(self._stream_threads, _steps(self._path, question))
            try:
                async for item in steps:
                    yield item
            finally:
                await steps.aclose()

    async def write(self, work: Callable[[Transaction], T], *, weight: int = 1) -> T:
        """As the port says."""
        if self._writer is None:
            raise UnavailableProblem("starting", "The service is starting.")
        return await self._writer.write(work, weight=weight)

    def listen(self, channel: str, wake: Callable[[], None]) -> None:
        """As the port says; other processes on the same file are not heard."""
        self._waking.listen(channel, wake)

    async def check(self) -> None:
        """As the port says."""
        reached = await self.read_brief(lambda reader: reader.one("PRAGMA user_version"))
        if reached is None or reached[0] != migrations.head():
            raise UnavailableProblem(
                "schema_behind", "The database does not have the schema of this program.", retry_seconds=5
            )
        await asyncio.to_thread(try_disk, self._path.parent)
        await self.write(lambda tx: tx.one("SELECT 1"))


class _Readers:
    """Connections that only read, each used by one question at a time, and their threads."""

    def __init__(self, count: int, name: str) -> None:
        self.threads = ThreadPoolExecutor(max_workers=count, thread_name_prefix=name)
        self._count = count
        self._idle: asyncio.LifoQueue[sqlite3.Connection] = asyncio.LifoQueue()

    def open(self, path: Path) -> list[sqlite3.Connection]:
        """Connect; the connections, for the caller to close."""
        opened = [connect(path, readonly=True) for _ in range(self._count)]
        for connection in opened:
            self._idle.put_nowait(connection)
        return opened

    async def read(self, question: Callable[[ReadTransaction], T]) -> T:
        """Ask within one consistent view."""
        connection = await self._idle.get()
        asked = asyncio.get_running_loop().run_in_executor(self.threads, _ask, connection, question)
        # The connection goes back when the thread is done with it, even where the caller has been cancelled meanwhile.
        asked.add_done_callback(lambda _: self._idle.put_nowait(connection))
        return await asyncio.shield(asked)


def _ask(connection: sqlite3.Connection, question: Callable[[ReadTransaction], T]) -> T:
    with transaction(connection, write=False) as view:
        return question(view)


def _steps(path: Path, question: Callable[[ReadTransaction], Iterator[T]]) -> Generator[T, None, None]:
    with _opened(path) as connection, transaction(connection, write=False) as view:
        yield from question(view)


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    connection = connect(path, readonly=True)
    try:
        yield connection
    finally:
        connection.close()
