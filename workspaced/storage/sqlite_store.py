"""`workspaced.storage.store.Store` on one SQLite file, shared with other processes of the same host."""

from __future__ import annotations

import asyncio
import fcntl
import sqlite3
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar, Unpack

from ingestd.process.database_files import DatabaseFiles
from workspaced.core.problems import UnavailableProblem
from workspaced.storage import migrations, schema
from workspaced.storage.batchable import Outcome, Work
from workspaced.storage.disk import make_private_file, make_private_folder
from workspaced.storage.port import ReadTransaction, StorageUnusable, Transaction
from workspaced.storage.sqlite import BUSY_SECONDS, SqliteTransaction, connect, transaction
from workspaced.storage.sqlite_group import SqliteGroup
from workspaced.storage.store import BRIEF_READERS, Store, StoreOptions

T = TypeVar("T")
_PAUSE_SECONDS = 0.05
_MODE_OFFSET, _ROLLBACK_MODE = 18, b"\x01"  # of SQLite's file header; 2 is WAL mode


@contextmanager
def open_database(path: Path, *, busy_seconds: float = BUSY_SECONDS) -> Iterator[sqlite3.Connection]:
    """Open a database in WAL mode with the newest schema, or create it. Until the context ends, no other process migrates it.

    Raises:
        StorageUnusable: the folder or file can't be used; the message has the reason and what to do.
    """
    with ExitStack() as stack:
        try:
            connection = _open(path, stack, busy_seconds)
        except OSError as error:
            raise StorageUnusable(
                f"The data folder {path.parent} can't be used ({error.strerror or error}). "
                "Give a folder that this user may write to."
            ) from error
        except sqlite3.Error as error:
            raise _unusable(path, error) from error
        yield connection


def _open(path: Path, stack: ExitStack, busy_seconds: float) -> sqlite3.Connection:
    """Migrate the database, and return the connection, which ``stack`` closes."""
    make_private_folder(path.parent)
    lock_path, use_path = (path.parent / f"{path.name}.{name}" for name in ("lock", "use"))
    make_private_file(lock_path)
    make_private_file(use_path)
    # Several processes may start at once, and a change of the journal mode does not wait for SQLite's own locks.
    with lock_path.open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        require_own_log(path)
        use = stack.enter_context(use_path.open("ab"))
        fcntl.flock(use, fcntl.LOCK_SH)
        make_private_file(path)  # before SQLite opens it, because SQLite's log gets the mode of the database file
        connection = stack.enter_context(closing(connect(path, busy_seconds=busy_seconds)))
        connection.execute("PRAGMA journal_mode = WAL")
        if missing := _missing_steps(connection, path):
            _use_alone(use, path, busy_seconds)
            for step in missing:
                _run_step(connection, step)
            fcntl.flock(use, fcntl.LOCK_SH)
        return connection


def require_own_log(path: Path) -> None:
    """Check that a log beside a database that no process uses belongs to it, because SQLite writes any valid log into the file.

    A backup is not in WAL mode, and a database with a log is. If a process uses the database, its log is in use, too, and the
    file is not opened: closing it would release the locks of SQLite if that process is this process.

    Raises:
        StorageUnusable: the file is a restored backup, and a killed service has left the log of the database before.
        OSError: the folder can't be read.
    """
    log, use_path = (path.with_name(f"{path.name}{end}") for end in ("-wal", ".use"))
    if not (path.exists() and log.exists() and log.stat().st_size):
        return
    with ExitStack() as stack:
        if use_path.exists():
            use = stack.enter_context(use_path.open("rb"))
            try:
                fcntl.flock(use, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
        with path.open("rb") as file:
            file.seek(_MODE_OFFSET)
            if file.read(1) != _ROLLBACK_MODE:
                return
    raise StorageUnusable(
        f"The database {path} is a restored backup, but {log} is the log of the database that was there before. Together "
        f"they would be damaged. Delete {log.name} and {path.name}-shm in {path.parent}, and start again."
    )


def _use_alone(use: BinaryIO, path: Path, seconds: float) -> None:
    """Wait until no other process uses the database; raise StorageUnusable after ``seconds``."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(use, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise StorageUnusable(
                    f"The database {path} needs schema {migrations.head()}, but another workspaced uses it. Stop that "
                    "service or command, and try again."
                ) from None
            time.sleep(_PAUSE_SECONDS)
        else:
            return


def _unusable(path: Path, error: sqlite3.Error) -> StorageUnusable:
    # Readers do not block a migration in WAL mode, but another writer does.
    remedy = "Restore it from a backup."
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        remedy = "Another program writes to it: end that program, or wait until it has finished, and try again."
    return StorageUnusable(f"The database {path} can't be used ({error}). {remedy}")


def migrate(path: Path) -> tuple[int, int]:
    """Migrate a file, which need not exist, to the newest schema. Return the number of the last step before and after.

    Raises:
        StorageUnusable: the folder or file can't be used.
    """
    before = 0
    if path.exists():
        require_own_log(path)
        with closing(connect(path, readonly=True)) as connection:
            try:
                before = schema.reached(SqliteTransaction(connection)).number
            except sqlite3.Error as error:
                raise _unusable(path, error) from error
    with open_database(path):
        return before, max(before, migrations.head())


def transact(path: Path, work: Callable[[Transaction], T]) -> T:
    """Run one transaction, for commands and tests, which have no running store.

    Raises:
        StorageUnusable: the folder or file can't be used.
        UnavailableProblem: the database is busy.
    """
    with open_database(path) as connection, transaction(connection, write=True) as tx:
        return work(tx)


class SqliteStore(Store):
    """The SQLite file as one process uses it: a writer, a few readers, and a connection for each long response.

    Listeners are not notified of the commits of other processes.
    """

    def __init__(self, path: Path, **options: Unpack[StoreOptions]) -> None:
        """Use the file ``path`` in the data folder."""
        super().__init__(path.parent, f"The database {path}", **options)
        self._path = path
        self._reader_count = options["readers"] + BRIEF_READERS
        self._idle: list[sqlite3.Connection] = []
        self._connected = ExitStack()
        self._files: DatabaseFiles  # from `start` on

    async def start(self) -> None:
        """Open the file, and migrate its schema. Raises StorageUnusable: the file can't be used."""
        opening = open_database(self._path, busy_seconds=self._busy_seconds)
        connection = await asyncio.to_thread(self._connected.enter_context, opening)
        self._idle = [connect(self._path, readonly=True) for _ in range(self._reader_count)]
        group = SqliteGroup(connection, announce=self._announce)
        self._files = DatabaseFiles(self._path)

        def perform(works: Sequence[Work]) -> list[Outcome]:
            self._require_place()
            return group.perform(works)

        self._start_writer(perform)

    async def require_room(self) -> None:
        """Do nothing: a file permits any number of connections. See `Store.require_room`."""

    async def stop(self) -> None:
        """Finish all accepted work and close the file."""
        await self._stop_threads()
        self._connected.close()
        while self._idle:
            self._idle.pop().close()

    def _require_place(self) -> None:
        """Refuse to use files that were moved.

        Raises:
            UnavailableProblem: the file or its log was moved, replaced or removed, or can't be examined.
        """
        try:
            in_place = self._files.are_in_place()
        except OSError:
            in_place = False
        if not in_place:
            raise UnavailableProblem(
                "storage_moved",
                "The service's database or its log was moved, replaced or removed while the service uses it. Put it back as it "
                "was, or stop the service, restore a backup, and start the service.",
                retry_seconds=30,
            )

    def _query(self, query: Callable[[ReadTransaction], T]) -> T:
        self._require_place()
        connection = self._idle.pop()  # there is a connection for each thread
        try:
            with transaction(connection, write=False) as view:
                return query(view)
        finally:
            self._idle.append(connection)

    def _steps(self, query: Callable[[ReadTransaction], Iterator[T]]) -> Generator[T, None, None]:
        self._require_place()
        with (
            closing(connect(self._path, readonly=True)) as connection,
            transaction(connection, write=False) as view,
        ):
            yield from query(view)

    @staticmethod
    def _check_writable(tx: Transaction) -> None:
        tx.one("SELECT 1")  # the transaction itself takes the write lock


def _missing_steps(connection: sqlite3.Connection, path: Path) -> list[migrations.MigrationStep]:
    """Return the steps that were not done; raise StorageUnusable if this program is too old for the file."""
    reached = schema.reached(SqliteTransaction(connection))
    if sentence := schema.too_new(f"The database {path}", reached):
        raise StorageUnusable(sentence)
    return [step for step in migrations.steps("sqlite") if step.number > reached.number]


def _run_step(connection: sqlite3.Connection, step: migrations.MigrationStep) -> None:
    """Run a step in an exclusive transaction."""
    connection.execute("BEGIN EXCLUSIVE")
    try:
        for statement in _statements(step.sql):
            connection.execute(statement)
        schema.record(SqliteTransaction(connection), step)
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
