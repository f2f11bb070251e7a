"""What each failure of SQLite means for the state file, as an error of the mirror with a sentence for a person.

Three kinds. A file that cannot be written or read *now*: the disk is full, a quota is used up, the disk reports an I/O error,
another program has locked the file. That is `MirrorFull`, and the same call may succeed later. A file that is *damaged*:
`MirrorCorrupt`. A file that cannot be used as it is *placed* (owner, mode, moved away): `MirrorError`.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

from ingestd.core.errors import MirrorCorrupt, MirrorError, MirrorFull

T = TypeVar("T")

_ROOM_BYTES = 1 << 20
"""With less than this a file system counts as full: SQLite needs 32 KiB for its index of the log, and room for the log."""

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}
_DAMAGED_PAGES = {sqlite3.SQLITE_IOERR_CORRUPTFS, sqlite3.SQLITE_IOERR_DATA}
_NO_SUCH = ("no such table", "no such column", "has no column named", "Could not decode to UTF-8")
_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_PLACED = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_READONLY}
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}


@contextmanager
def named_errors(path: Path, *, opened: bool = True) -> Iterator[None]:
    """Raise what SQLite raises as an error of the mirror; a mistake in a statement stays what it is.

    ``opened``: the file was in use before, so that its place and mode were right once.

    Raises:
        MirrorFull: it cannot be written or read now.
        MirrorCorrupt: it is damaged.
        MirrorError: it cannot be used where it is.
    """
    try:
        yield
    except sqlite3.DatabaseError as error:
        failure = failure_of(error, path, opened=opened)
        if failure is None:
            raise
        raise failure from error
    except UnicodeDecodeError as error:  # SQLite's words quote a name of the file's own tables, which is damaged
        raise damaged(path, str(error)) from error


def failure_of(error: sqlite3.DatabaseError, path: Path, *, opened: bool) -> MirrorError | None:
    """The error of the mirror; None: a mistake of ours."""
    extended = getattr(error, "sqlite_errorcode", 0)
    code, name = extended & 0xFF, getattr(error, "sqlite_errorname", "")
    found: MirrorError | None = None
    if code in _DAMAGED or extended in _DAMAGED_PAGES or any(words in str(error) for words in _NO_SUCH):
        found = damaged(path, str(error))
    elif code == sqlite3.SQLITE_FULL:
        found = _full(path)
    elif code in _LOCKED:
        found = MirrorFull(
            f"{path} is locked by another program ({error}). Close the program that has it open, such as sqlite3 or a "
            "backup of the file; ingestd tries again."
        )
    elif extended == sqlite3.SQLITE_READONLY_DBMOVED:
        found = MirrorError(
            f"{path} was moved, replaced or removed while ingestd was using it. Put it back, or start with a new one."
        )
    elif code in {sqlite3.SQLITE_IOERR, *_PLACED}:
        found = _of_the_disk(f"{error} ({name})", path, passing=opened or code == sqlite3.SQLITE_IOERR)
    elif isinstance(error, sqlite3.OperationalError) and code not in {0, sqlite3.SQLITE_ERROR}:
        found = MirrorError(f"{path} cannot be used: {error} ({name}). 'ingestd check' says whether it is damaged.")
    return found


def _of_the_disk(reason: str, path: Path, *, passing: bool) -> MirrorError:
    """``passing``: the file was in use, or the disk itself failed; else it is not for this process."""
    if not _has_room(path):
        return _full(path)
    if passing:
        return MirrorFull(
            f"{path} cannot be used at the moment: {reason}. Look at the disk and at the kernel's log; nothing that was "
            "stored is lost, and ingestd tries again."
        )
    return MirrorError(f"the state file {path} can't be opened: {reason}. {_check_account(path)}")


def damaged(path: Path, found: str) -> MirrorCorrupt:
    """The error for a file that is damaged; ``found`` says how that shows."""
    return MirrorCorrupt(
        f"{path} is damaged ({found}). Keep it aside and start with a new state file: the sources are read again "
        "and compared with the sinks."
    )


def state_exists(path: Path) -> bool:
    """Whether there is a state file.

    Raises:
        MirrorError: the system refuses to say so, because the way there is no folder, or not for this account.
    """
    try:
        path.stat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise unopenable(error, path) from error
    return True


def unopenable(error: OSError, path: Path) -> MirrorError:
    """The error for a state file, or its folder, that the system refuses."""
    if error.errno in _NO_ROOM:
        return _full(path)
    if error.errno == errno.EISDIR or path.is_dir():
        return MirrorError(f"{path} is a folder. Name a file under 'state', or remove the folder.")
    if error.errno in {errno.ENOTDIR, errno.EEXIST}:
        return MirrorError(f"the state file {path} can't be made: {path.parent} is not a folder. Correct 'state'.")
    if error.errno == errno.EROFS:
        return MirrorError(
            f"the state file {path} can't be written: its file system is mounted read-only. Mount it for writing, or name "
            "another place under 'state'."
        )
    return MirrorError(f"the state file {path} can't be opened: {error.strerror or error}. {_check_account(path)}")


def _full(path: Path) -> MirrorFull:
    return MirrorFull(f"the disk that holds {path} is full. Free some room (ingestd needs a few MB); nothing was lost.")


def _check_account(path: Path) -> str:
    return (
        f"Check the owner and mode of {path.parent} and of the files in it whose names begin with {path.name}; "
        f"this process runs as user {os.geteuid()}."
    )


def _has_room(path: Path) -> bool:
    """False where a file system has next to no room, or no more files; True where that can't be found out."""
    try:
        found = os.statvfs(path.parent)
    except OSError:
        return True
    return found.f_bavail * found.f_frsize >= _ROOM_BYTES and (not found.f_files or found.f_favail > 0)


# ----------------------------------------------------------------------------------------------- reading connections


class _ReadingCursor(sqlite3.Cursor):
    connection: ReadingConnection

    def execute(self, sql: str, parameters: Any = (), /) -> Self:
        return _named(self.connection.path, super().execute, sql, parameters)

    def executemany(self, sql: str, parameters: Any, /) -> Self:
        return _named(self.connection.path, super().executemany, sql, parameters)

    def fetchone(self) -> Any:
        return _named(self.connection.path, super().fetchone)

    def fetchall(self) -> list[Any]:
        return _named(self.connection.path, super().fetchall)

    def __next__(self) -> Any:
        return _named(self.connection.path, super().__next__)


class ReadingConnection(sqlite3.Connection):
    """A connection of which statements, and the rows read from them, raise errors of the mirror."""

    path = Path()
    """The file; set by whoever opens it."""

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """As `sqlite3.Connection.execute`."""
        return _ReadingCursor(self).execute(sql, parameters)

    def executemany(self, sql: str, parameters: Any, /) -> sqlite3.Cursor:
        """As `sqlite3.Connection.executemany`."""
        return _ReadingCursor(self).executemany(sql, parameters)


def _named(path: Path, call: Callable[..., T], *args: Any) -> T:
    try:
        return call(*args)
    except sqlite3.DatabaseError as error:
        failure = failure_of(error, path, opened=True)
        if failure is None:
            raise
        raise failure from error
    except UnicodeDecodeError as error:
        raise damaged(path, str(error)) from error
