"""The state file: opening, locking, migration, and error sentences.

Constraints: the file contains a company's data, so only its owner can read it. Two writing processes would ignore each other's
claims, so a lock file permits only one. A reported commit must survive a power failure, so ``synchronous=FULL``. A newer
version may have changed the layout, so an older version refuses the file.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from importlib.resources import files
from pathlib import Path

from ingestd.core.errors import MirrorBusy, MirrorCorrupt, MirrorError, MirrorFull, MirrorNewer, MirrorOutdated
from ingestd.mirror.port import WriteBatch
from ingestd.mirror.sqlite.state_file.failures import (
    ReadingConnection,
    moved,
    named_errors,
    state_exists,
    unopenable,
    unreachable,
)
from ingestd.mirror.sqlite.state_file.file_owner import open_state_file
from ingestd.mirror.sqlite.state_file.write_lock import WriteLock
from ingestd.process.database_files import DatabaseFiles
from ingestd.process.progress import note_progress

_APPLICATION_ID = 0x494E4744  # "INGD"
_PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA busy_timeout = 5000",
    "PRAGMA cache_size = -24576",  # KiB: the upper pages of a B-tree of some million keys
    "PRAGMA wal_autocheckpoint = 4000",
    "PRAGMA journal_size_limit = 67108864",
    "PRAGMA temp_store = MEMORY",
)


class StateFile:
    """One write connection with a lock, and new read connections for callers.

    ``factory`` creates connections; crash tests pass a class that fails at a given statement. The first write that fails for
    lack of space calls ``on_unwritable`` with a sentence. The next successful write calls ``on_writable``. Between both calls,
    ``unwritable`` is this sentence.
    """

    def __init__(self, path: Path, *, factory: type[sqlite3.Connection] = sqlite3.Connection) -> None:
        """Open or create the state file.

        Raises:
            MirrorBusy: another process holds it.
            MirrorNewer: a newer program wrote it.
            MirrorCorrupt: SQLite can't read it, or it is not a state file.
            MirrorError: the folder can't be written.
        """
        self.path = path
        self._factory = factory
        self._guard = WriteLock()
        self._batch_thread: int | None = None
        self._committed = False
        self.unwritable = ""
        self.on_unwritable: Callable[[str], None] = lambda _: None
        self.on_writable: Callable[[], None] = lambda: None
        with ExitStack() as undo:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._lock = lock_state(path)
                undo.callback(os.close, self._lock)
                os.close(open_state_file(path))
            except OSError as error:
                raise unopenable(error, path) from error
            with named_errors(path, opened=False):
                self._writer = self._connect(f"file:{_quoted(path)}")
                undo.callback(self._writer.close)
                # This precedes any change: another program's file must keep its journal mode.
                version = _refuse_foreign(self._writer, path)
                if self._writer.execute("PRAGMA page_count").fetchone()[0] == 0:
                    self._writer.execute("PRAGMA page_size = 8192")
                for pragma in _PRAGMAS:
                    self._writer.execute(pragma)
                _migrate(self._writer, version)
                self._writer.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # a reading creates a missing log
            self._files = DatabaseFiles(path)
            undo.pop_all()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Open a write transaction: commit it at the end, roll it back on any exception.

        One thread writes at a time, in the order of the calls. Split long work into several transactions. In a `batch` of this
        thread, the transaction is a savepoint.

        Raises:
            MirrorFull: the file cannot be written now; the transaction was rolled back and can be repeated.
            MirrorCorrupt: the file is damaged.
        """
        if self.in_batch:
            with self._savepoint():
                yield self._writer
            return
        with self._transaction() as connection:
            try:
                yield connection
                connection.execute("COMMIT")
                self._committed = True
            except BaseException:
                self._roll_back()
                raise

    @property
    def changes(self) -> int:
        """The number of rows that were changed since the file was opened.

        While the number is unchanged, the content is unchanged, because no other process writes to the file. Exception:
        `replace_by` is not counted.
        """
        return self._writer.total_changes

    @contextmanager
    def batch(self) -> Iterator[WriteBatch]:
        """Make one transaction of all writes of this thread in the context. The context must be short, without waiting.

        Each `writing` in the batch is completed or undone separately, as without the batch. So the transaction is committed
        after an exception, too. Only if the state file itself fails, the whole transaction is rolled back.

        Raises:
            MirrorFull, MirrorCorrupt: as in `writing`.
        """
        found = WriteBatch()
        with self._transaction() as connection:
            self._batch_thread = threading.get_ident()
            try:
                yield found
            finally:
                self._batch_thread = None
                if connection.in_transaction:  # else a failure of the file has ended the transaction
                    try:
                        connection.execute("COMMIT")
                    except BaseException:
                        self._roll_back()
                        raise
                    found.is_durable = self._committed = True

    @property
    def in_batch(self) -> bool:
        """Whether the calling thread is in a `batch`."""
        return self._batch_thread == threading.get_ident()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Begin a transaction that the caller ends; note whether the file can be written."""
        with self._guard:
            note_progress()
            self._committed = False
            try:
                with named_errors(self.path):
                    self._check_place()
                    if self._writer.in_transaction:  # an earlier rollback failed, too
                        self._writer.execute("ROLLBACK")
                    before = self._writer.total_changes
                    self._writer.execute("BEGIN IMMEDIATE")
                    yield self._writer
            except MirrorFull as error:
                self._note_full(error)
                raise
            # A transaction without changes needed no space, and a transaction that was rolled back has written nothing.
            if self.unwritable and self._committed and self._writer.total_changes > before:
                self.unwritable = ""
                self.on_writable()

    @contextmanager
    def _savepoint(self) -> Iterator[None]:
        try:
            # The failure of the file ends the batch: later writes could rely on writes that were rolled back.
            with named_errors(self.path):
                self._writer.execute("SAVEPOINT part_of_batch")
                try:
                    yield
                except BaseException:
                    if self._writer.in_transaction:
                        self._writer.execute("ROLLBACK TO part_of_batch")
                        self._writer.execute("RELEASE part_of_batch")
                    raise
                self._writer.execute("RELEASE part_of_batch")
        except MirrorError as error:
            self._roll_back()
            if isinstance(error, MirrorFull):  # the caller may catch the error, so `_transaction` may not see it
                self._note_full(error)
            raise

    def _check_place(self) -> None:
        """Refuse to use files that were moved.

        Raises:
            MirrorFull: the file or its log was moved, replaced or removed, or can't be examined.
        """
        try:
            in_place = self._files.are_in_place()
        except OSError as error:
            raise unreachable(error, self.path) from error
        if not in_place:
            raise moved(self.path)

    def _note_full(self, error: MirrorFull) -> None:
        if not self.unwritable:
            self.unwritable = str(error)
            self.on_unwritable(self.unwritable)

    def _roll_back(self) -> None:
        if self._writer.in_transaction:
            with suppress(sqlite3.Error):
                self._writer.execute("ROLLBACK")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Open a connection for reading, which does not delay writers.

        In a `batch` of this thread, it is the write connection.
        """
        if self.in_batch:
            yield self._writer  # a separate connection would not see the writes of the batch
            return
        note_progress()
        with closing(self.reader()) as connection:
            yield connection

    def reader(self) -> sqlite3.Connection:
        """Return a new read connection; the caller closes it."""
        with named_errors(self.path):
            self._check_place()
            return _read_only(self.path, self._factory)

    def copy_to(self, target: Path) -> None:
        """Copy the content to the empty file ``target``."""
        with closing(self.reader()) as reader:
            _copy(reader, target)

    def replace_by(self, source: Path) -> None:
        """Replace the whole content by the content of another state file, in one durable transaction.

        After a crash the file has either the former or the new content. Read connections see the new content.
        """
        with self._guard, named_errors(self.path), closing(_read_only(source, sqlite3.Connection)) as other:
            other.backup(self._writer)

    def close(self) -> None:
        """Close the file and release its lock. Without this call, no data is lost, but the next start is slower."""
        with self._guard:
            self._writer.close()
            os.close(self._lock)

    def _connect(self, uri: str) -> sqlite3.Connection:
        return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, factory=self._factory)


def open_read_only(path: Path) -> sqlite3.Connection:
    """Return a read connection to a state file that another process may use.

    Raises:
        MirrorError: there is no such file, or an older version wrote it.
        MirrorNewer, MirrorCorrupt, MirrorFull: as in `StateFile`.
    """
    if not state_exists(path):
        raise MirrorError(f"there is no state file {path} yet; the first 'ingestd run' or 'ingestd sync' creates it")
    _refuse_folder(path)
    with ExitStack() as undo, named_errors(path, opened=False):
        connection = _read_only(path, sqlite3.Connection)
        undo.callback(connection.close)
        _refuse_older(_refuse_foreign(connection, path), path)
        undo.pop_all()
    return connection


def _refuse_folder(path: Path) -> None:
    """Raise if the path is a folder. SQLite would open it, and the first read would fail with an I/O error."""
    if path.is_dir():
        raise unopenable(IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR)), path)


def copy_unlocked(path: Path, target: Path) -> None:
    """Copy a state file, which another process may use, to the empty file ``target``; copy nothing if it does not exist.

    The copy is one consistent state. Writers are not delayed.

    Raises:
        MirrorNewer, MirrorCorrupt, MirrorFull, MirrorError: as in `StateFile`.
    """
    if not state_exists(path):
        return
    _refuse_folder(path)
    with named_errors(path, opened=False), closing(_read_only(path, sqlite3.Connection)) as connection:
        _refuse_foreign(connection, path)
        _copy(connection, target)


def _copy(connection: sqlite3.Connection, target: Path) -> None:
    with named_errors(target), closing(sqlite3.connect(target)) as copy:
        copy.execute("PRAGMA synchronous = OFF")
        connection.backup(copy)


def _read_only(path: Path, factory: type[sqlite3.Connection]) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{_quoted(path)}?mode=ro",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        factory=ReadingConnection if factory is sqlite3.Connection else factory,
    )
    if isinstance(connection, ReadingConnection):
        connection.path = path
    connection.execute("PRAGMA busy_timeout = 5000")
    return connection


def _quoted(path: Path) -> str:
    return re.sub(r"[%?#]", lambda match: f"%{ord(match[0]):02X}", str(path))


def lock_state(path: Path) -> int:
    """Lock ``<path>.lock`` and return its descriptor. The lock ends when the descriptor is closed or the process ends.

    Raises:
        MirrorBusy: another process holds the lock.
        OSError: the file can't be created.
    """
    handle = open_state_file(path.with_name(path.name + ".lock"))
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.pread(handle, 32, 0).decode(errors="replace").strip()
        os.close(handle)
        raise MirrorBusy(str(path), int(text) if text.isdigit() else None) from None
    # The pid is only for people; a full disk must not prevent the lock.
    with suppress(OSError):
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
    return handle


def migrations() -> list[tuple[int, str]]:
    """Return the number and the SQL of each migration, in order. The numbers are the layout versions of state files."""
    folder = files(__package__ or "").joinpath("migrations")
    found = [entry for entry in folder.iterdir() if entry.name.endswith(".sql")]
    return sorted((int(entry.name[:4]), entry.read_text(encoding="utf-8")) for entry in found)


def _refuse_foreign(connection: sqlite3.Connection, path: Path) -> int:
    """Return the file's layout version; raise if the file belongs to another program or a newer version."""
    application: int
    version: int
    tables: int
    # One statement reads one state of the file: another process may create its tables at this moment.
    application, version, tables = connection.execute(
        "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)"
        " FROM pragma_application_id, pragma_user_version"
    ).fetchone()
    newest = migrations()[-1][0]
    if version > newest:
        raise MirrorNewer(
            f"{path} was written by a newer ingestd (layout {version}, this version knows {newest}). Use the newer version."
        )
    if application != _APPLICATION_ID and tables:
        raise MirrorCorrupt(
            f"{path} is a database, but not a state file of ingestd.", "Configure another file in 'state'."
        )
    return version


def _refuse_older(version: int, path: Path) -> None:
    """Raise if the file needs a migration, which only a write connection can do."""
    newest = migrations()[-1][0]
    if not version:
        raise MirrorOutdated(f"{path} is empty; the next 'ingestd run' or 'ingestd sync' creates its tables")
    if version < newest:
        raise MirrorOutdated(
            f"{path} was written by an older ingestd (layout {version}, this version reads {newest}). The next start of "
            "'ingestd run' or 'ingestd sync' updates it."
        )


def _migrate(connection: sqlite3.Connection, version: int) -> None:
    """Migrate the file to the newest layout in one transaction, so that no process sees a part of the change."""
    pending = [(number, script) for number, script in migrations() if number > version]
    if not pending:
        return
    scripts = "\n".join(script for _, script in pending)
    marks = f"PRAGMA application_id = {_APPLICATION_ID};\nPRAGMA user_version = {pending[-1][0]};"
    # executescript commits an open transaction first, so BEGIN and COMMIT are part of the script.
    connection.executescript(f"BEGIN IMMEDIATE;\n{scripts}\n{marks}\nCOMMIT;")
