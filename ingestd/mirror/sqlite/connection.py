"""The state file: opened once, locked against a second daemon, migrated forward, its failures named.

Constraints first. Values of a company stand in this file, so it is readable by its owner only. Two processes writing one
mirror would each believe in their own claims, so a lock file beside it admits one. A commit that was reported must survive a
power cut, so ``synchronous=FULL``. A newer program may have changed the layout, so an older one refuses the file.
"""

from __future__ import annotations

import fcntl
import os
import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.resources import files
from pathlib import Path

from ingestd.core.errors import MirrorBusy, MirrorCorrupt, MirrorError, MirrorFull, MirrorNewer

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

    ``factory`` makes connections; the crash sweep hands in one that fails at a chosen statement.
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
        self._guard = threading.RLock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = _lock(path)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise MirrorError(
                f"the state file {path} can't be opened: {error.strerror or error}. Check the folder's owner and mode."
            ) from error
        with ExitStack() as undo:
            undo.callback(os.close, self._lock)
            self._writer = self._connect(f"file:{_quoted(path)}")
            undo.callback(self._writer.close)
            with _named_errors(path):
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

        Raises:
            MirrorFull: the disk is full; nothing of the transaction remains.
            MirrorCorrupt: the file is damaged.
        """
        with self._guard, _named_errors(self.path):
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise

    def reader(self) -> sqlite3.Connection:
        """A connection of its own that can only read; the caller closes it."""
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
        MirrorError: there is no such file.
        MirrorNewer, MirrorCorrupt: as in `StateFile`.
    """
    if not path.exists():
        raise MirrorError(f"there is no state file {path} yet; it is made by the first 'ingestd run' or 'ingestd sync'")
    connection = _read_only(path, sqlite3.Connection)
    try:
        with _named_errors(path):
            _refuse_foreign(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _read_only(path: Path, factory: type[sqlite3.Connection]) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{_quoted(path)}?mode=ro", uri=True, isolation_level=None, check_same_thread=False, factory=factory
    )
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


def _migrate(connection: sqlite3.Connection, version: int) -> None:
    for number, script in _migrations():
        if number > version:
            # executescript commits by itself what stands before it, so the transaction is part of the script.
            marks = f"PRAGMA application_id = {_APPLICATION_ID};\nPRAGMA user_version = {number};"
            connection.executescript(f"BEGIN IMMEDIATE;\n{script}\n{marks}\nCOMMIT;")


@contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            raise MirrorFull(f"the disk that holds {path} is full. Free some room; nothing was lost.") from error
        if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
            raise MirrorCorrupt(
                f"{path} is damaged ({error}). Keep it aside and start with a new state file: the sources are read again "
                "and compared with the sinks."
            ) from error
        raise
