"""`workspaced.storage.store.Store` on one SQLite file, shared with other processes of the same host."""

from __future__ import annotations

import asyncio
import fcntl
import sqlite3
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar, Unpack

from workspaced.core.problems import UnavailableProblem
from workspaced.storage import migrations
from workspaced.storage.port import ReadTransaction, StorageUnusable, Transaction
from workspaced.storage.sqlite import BUSY_SECONDS, connect, transaction
from workspaced.storage.sqlite_group import SqliteGroup
from workspaced.storage.store import BRIEF_READERS, Store, StoreOptions

T = TypeVar("T")


def open_database(path: Path, *, busy_seconds: float = BUSY_SECONDS) -> sqlite3.Connection:
    """Return a connection to a database in WAL mode with the newest schema; create what is missing.

    Raises:
        StorageUnusable: the folder or file can't be used; the message has the reason and what to do.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Several processes may start at once, and a change of the journal mode does not wait for SQLite's own locks.
        with (path.parent / f"{path.name}.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            connection = connect(path, busy_seconds=busy_seconds)
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                run_steps(connection, name=str(path))
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
        raise _unusable(path, error) from error


def _unusable(path: Path, error: sqlite3.Error) -> StorageUnusable:
    # Readers do not block a migration in WAL mode, but another writer does.
    remedy = "Restore it from a backup."
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        remedy = "Another program writes to it: end that program, or wait until it has finished, and try again."
    return StorageUnusable(f"The database {path} can't be used ({error}). {remedy}")


def migrate(path: Path) -> tuple[int, int]:
    """Migrate a file, which need not exist, to the newest schema; return the steps before and after.

    Raises:
        StorageUnusable: the folder or file can't be used.
    """
    before = 0
    if path.exists():
        with _opened(path) as connection:
            try:
                before = reached(connection)
            except sqlite3.Error as error:
                raise _unusable(path, error) from error
    open_database(path).close()
    return before, migrations.head()


def transact(path: Path, work: Callable[[Transaction], T]) -> T:
    """Run one transaction, for commands and tests, which have no running store.

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


class SqliteStore(Store):
    """The file as one process uses it: a writer, a few readers, and a connection for each long response.

    Listeners are not notified of the commits of other processes.
    """

    def __init__(self, path: Path, **options: Unpack[StoreOptions]) -> None:
        """Use the file ``path`` in the data folder."""
        super().__init__(path.parent, **options)
        self._path = path
        self._reader_count = options["readers"] + BRIEF_READERS
        self._idle: list[sqlite3.Connection] = []
        self._write_connection: sqlite3.Connection | None = None

    async def start(self) -> None:
        """Open the file, and migrate its schema. Raises StorageUnusable: it can't be used."""
        connection = await asyncio.to_thread(open_database, self._path, busy_seconds=self._busy_seconds)
        self._write_connection = connection
        self._idle = [connect(self._path, readonly=True) for _ in range(self._reader_count)]
        self._start_writer(SqliteGroup(connection, announce=self._announce).perform)

    async def stop(self) -> None:
        """Finish all accepted work and close the file."""
        await self._stop_threads()
        if self._write_connection:
            self._write_connection.close()
        while self._idle:
            self._idle.pop().close()

    def _query(self, query: Callable[[ReadTransaction], T]) -> T:
        connection = self._idle.pop()  # there are as many as threads
        try:
            with transaction(connection, write=False) as view:
                return query(view)
        finally:
            self._idle.append(connection)

    def _steps(self, query: Callable[[ReadTransaction], Iterator[T]]) -> Generator[T, None, None]:
        with _opened(self._path) as connection, transaction(connection, write=False) as view:
            yield from query(view)

    def _check_schema(self) -> None:
        reached = self._query(lambda reader: reader.one("PRAGMA user_version"))
        if reached is None or reached[0] != migrations.head():
            raise UnavailableProblem(
                "schema_behind", "The database does not have the schema of this program.", retry_seconds=5
            )

    @staticmethod
    def _check_writable(tx: Transaction) -> None:
        tx.one("SELECT 1")  # the transaction itself takes the write lock


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    connection = connect(path, readonly=True)
    try:
        yield connection
    finally:
        connection.close()


def reached(connection: sqlite3.Connection) -> int:
    """Return the last migration step that was done; 0 for an empty database."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def run_steps(connection: sqlite3.Connection, *, name: str) -> None:
    """Run the missing steps, each in an exclusive transaction. ``name`` is the file, for error messages.

    Raises:
        StorageUnusable: a newer program wrote the file.
    """
    if (version := reached(connection)) > migrations.head():
        raise StorageUnusable(migrations.newer(name, version))
    for number, sql in migrations.steps("sqlite"):
        connection.execute("BEGIN EXCLUSIVE")
        try:
            if reached(connection) < number:  # read inside the lock: another process may have done the step meanwhile
                for statement in _statements(sql):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {number}")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")


def _statements(sql: str) -> list[str]:
    """Split a script at the semicolons at which SQLite considers a statement complete."""
    statements: list[str] = []
    pending = ""
    for part in sql.split(";"):
        pending += part
        if sqlite3.complete_statement(pending + ";"):
            statements.append(pending + ";")
            pending = ""
        else:
            pending += ";"
    return [statement for statement in statements if statement.strip(" \n;")]
