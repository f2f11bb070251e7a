"""The state file: opened once, locked against a second daemon, migrated forward, its failures named.

Constraints first. Values of a company stand in this file, so it is readable by its owner only. Two processes writing one
mirror would each believe in their own claims, so a lock file beside it admits one. A commit that was reported must survive a
power cut, so ``synchronous=FULL``. A newer program may have changed the layout, so an older one refuses the file.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.resources import files
from pathlib import Path

from ingestd.core.errors import MirrorBusy, MirrorCorrupt, MirrorError, MirrorFull, MirrorNewer
from ingestd.mirror.sqlite.failures import ReadingConnection, named_errors, unopenable
from ingestd.mirror.sqlite.write_lock import WriteLock

_APPLICATION_ID = 0x494E4744  # "INGD"
_PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA busy_timeout = 5000",
    "PRAGMA cache_size = -65536",  # KiB: the upper pages of a B-tree of some million keys
    "PRAGMA wal_autocheckpoint = 4000",
    "PRAGMA journal_size_limit = 67108864",
    "PRAGMA temp_store = MEMORY",
)


class StateFile:
    """One writing connection behind a lock, and reading ones on demand.

    ``factory`` makes connections; the crash sweep hands in one that fails at a chosen statement. ``on_unwritable`` is called with
    a sentence by the first write that there is no room for, and ``on_writable`` by the first one that succeeds again.
    ``unwritable`` is that sentence until then.
    """

    def __init__(self, path: Path, *, factory: type[sqlite3.Connection] = sqlite3.Connection) -> None:
        """Open or create the state file.

        Raises:
            MirrorBusy: another process holds it.
            MirrorNewer: a newer program wrote it.
            MirrorCorrupt: SQLite can't read it, or it is no state file.
            MirrorError: the folder can't be written.
        """
        self.path = path
        self._factory = factory
        self._guard = WriteLock()
        self.unwritable = ""
        self.on_unwritable: Callable[[str], None] = lambda _: None
        self.on_writable: Callable[[], None] = lambda: None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = _lock(path)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise unopenable(error, path) from error
        with ExitStack() as undo:
            undo.callback(os.close, self._lock)
            with named_errors(path, opened=False):
                self._writer = self._connect(f"file:{_quoted(path)}")
                undo.callback(self._writer.close)
                # Before anything is set: another program's file is left as it is, its journal mode too.
                version = _refuse_foreign(self._writer, path)
                if self._writer.execute("PRAGMA page_count").fetchone()[0] == 0:
                    self._writer.execute("PRAGMA page_size = 8192")
                for pragma in _PRAGMAS:
                    self._writer.execute(pragma)
                _migrate(self._writer, version)
            undo.pop_all()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One write transaction, one thread at a time: committed at the end, rolled back on any exception.

        Threads are served in the order in which they asked. Split long work into several transactions.

        Raises:
            MirrorFull: the file cannot be written now; nothing of the transaction remains, and it may be tried again.
            MirrorCorrupt: the file is damaged.
        """
        with self._guard:
            try:
                with named_errors(self.path):
                    if self._writer.in_transaction:  # the disk failed so badly that it could not even be rolled back
                        self._writer.execute("ROLLBACK")
                    before = self._writer.total_changes
                    self._writer.execute("BEGIN IMMEDIATE")
                    try:
                        yield self._writer
                        self._writer.execute("COMMIT")
                    except BaseException:
                        if self._writer.in_transaction:
                            with suppress(sqlite3.Error):
                                self._writer.execute("ROLLBACK")
                        raise
            except MirrorFull as error:
                if not self.unwritable:
                    self.unwritable = str(error)
                    self.on_unwritable(self.unwritable)
                raise
            # A transaction that changed nothing needed no room.
            if self.unwritable and self._writer.total_changes > before:
                self.unwritable = ""
                self.on_writable()

    def reader(self) -> sqlite3.Connection:
        """A connection of its own that can only read; the caller closes it."""
        with named_errors(self.path):
            return _read_only(self.path, self._factory)

    def close(self) -> None:
        """Give the file back. Nothing is lost without it; it shortens the next start."""
        with self._guard:
            self._writer.close()
            os.close(self._lock)

    def _connect(self, uri: str) -> sqlite3.Connection:
        return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, factory=self._factory)


def open_read_only(path: Path) -> sqlite3.Connection:
    """A reading connection to a state file that another process may be using.

    Raises:
        MirrorError: there is no such file, or an older program wrote it and none has updated it since.
        MirrorNewer, MirrorCorrupt, MirrorFull: as in `StateFile`.
    """
    try:
        # Not opened here: closing it would drop the locks that SQLite holds on it in this process.
        if stat.S_ISDIR(path.stat().st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    except FileNotFoundError:
        raise MirrorError(
            f"there is no state file {path} yet; it is made by the first 'ingestd run' or 'ingestd sync'"
        ) from None
    except OSError as error:
        raise unopenable(error, path) from error
    with ExitStack() as undo, named_errors(path, opened=False):
        connection = _read_only(path, sqlite3.Connection)
        undo.callback(connection.close)
        _refuse_older(_refuse_foreign(connection, path), path)
        undo.pop_all()
    return connection


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


def _lock(path: Path) -> int:
    """Hold ``<path>.lock`` for the life of the process; the kernel lets go of it however we end."""
    handle = os.open(path.with_name(path.name + ".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.pread(handle, 32, 0).decode(errors="replace").strip()
        os.close(handle)
        raise MirrorBusy(str(path), int(text) if text.isdigit() else None) from None
    # The number is for people; on a full disk the lock holds without it.
    with suppress(OSError):
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
    return handle


def _migrations() -> list[tuple[int, str]]:
    folder = files(__package__ or "").joinpath("migrations")
    found = [entry for entry in folder.iterdir() if entry.name.endswith(".sql")]
    return sorted((int(entry.name[:4]), entry.read_text(encoding="utf-8")) for entry in found)


def _refuse_foreign(connection: sqlite3.Connection, path: Path) -> int:
    """The file's version; refuses a file of another program or of a newer one."""
    application: int = connection.execute("PRAGMA application_id").fetchone()[0]
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    newest = _migrations()[-1][0]
    if version > newest:
        raise MirrorNewer(
            f"{path} was written by a newer ingestd (layout {version}, this one knows {newest}). Use the newer program."
        )
    if application != _APPLICATION_ID and connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
        raise MirrorCorrupt(f"{path} is a database, but not a state file of ingestd. Name another file under 'state'.")
    return version


def _refuse_older(version: int, path: Path) -> None:
    """Only a writing connection may migrate; a reading one would not find the tables of its statements."""
    newest = _migrations()[-1][0]
    if not version:
        raise MirrorError(f"there is nothing in {path} yet; the next 'ingestd run' or 'ingestd sync' makes its tables")
    if version < newest:
        raise MirrorError(
            f"{path} was written by an older ingestd (layout {version}, this one reads {newest}). The next start of "
            "'ingestd run' or 'ingestd sync' updates it."
        )


def _migrate(connection: sqlite3.Connection, version: int) -> None:
    for number, script in _migrations():
        if number > version:
            # executescript commits by itself what stands before it, so the transaction is part of the script.
            marks = f"PRAGMA application_id = {_APPLICATION_ID};\nPRAGMA user_version = {number};"
            connection.executescript(f"BEGIN IMMEDIATE;\n{script}\n{marks}\nCOMMIT;")
