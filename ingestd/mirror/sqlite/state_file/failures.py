"""Conversion of SQLite errors to errors of the mirror, with sentences for people.

There are three kinds. `MirrorFull`: the file cannot be written or read *now* (full disk, quota, I/O error, lock of another
program), and the same call may succeed later. `MirrorCorrupt`: the file is *damaged*. `MirrorError`: the file cannot be used
because of its owner, mode or path.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar, cast

from ingestd.core.errors import MirrorCorrupt, MirrorError, MirrorFull

T = TypeVar("T")

_ROOM_BYTES = 1 << 20
"""A file system with less free space counts as full: SQLite needs 32 KiB for the WAL index, and space for the WAL."""

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}
_DAMAGED_PAGES = {sqlite3.SQLITE_IOERR_CORRUPTFS, sqlite3.SQLITE_IOERR_DATA}
_NO_SUCH = (
    "no such table",
    "no such column",
    "has no column named",
    "no such index",
    "no query solution",
    "Could not decode to UTF-8",
)
_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_PLACED = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_READONLY}
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
_REFUSED = {
    errno.ELOOP: "a symbolic link", errno.EMLINK: "a file with several names (hard links)", errno.EINVAL: "no regular file",
    errno.ENXIO: "no regular file",
}  # fmt: skip


@contextmanager
def named_errors(path: Path, *, opened: bool = True) -> Iterator[None]:
    """Convert errors of SQLite to errors of the mirror; errors in a statement are raised unchanged.

    ``opened``: the file was opened before, so its path and mode were correct then.

    Raises:
        MirrorFull: the file cannot be written or read now.
        MirrorCorrupt: the file is damaged.
        MirrorError: the file cannot be used because of its owner, mode or path.
    """
    try:
        yield
    except sqlite3.DatabaseError as error:
        failure = failure_of(error, path, opened=opened)
        if failure is None:
            raise
        raise failure from error
    except UnicodeDecodeError as error:  # SQLite's message contains a damaged table name
        raise damaged(path, str(error)) from error


def failure_of(error: sqlite3.DatabaseError, path: Path, *, opened: bool) -> MirrorError | None:
    """Return the error of the mirror for an error of SQLite; None if a statement has a bug."""
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
            "backup. ingestd tries again."
        )
    elif extended == sqlite3.SQLITE_READONLY_DBMOVED:
        found = moved(path)
    elif code in {sqlite3.SQLITE_IOERR, *_PLACED}:
        found = _of_the_disk(f"{error} ({name})", path, temporary=opened or code == sqlite3.SQLITE_IOERR)
    elif isinstance(error, sqlite3.OperationalError) and code not in {0, sqlite3.SQLITE_ERROR}:
        found = MirrorError(f"{path} cannot be used: {error} ({name}). 'ingestd check' shows whether it is damaged.")
    return found


def moved(path: Path) -> MirrorFull:
    """Return the error for a file that was moved while it was in use; it can be used again when it is put back."""
    return MirrorFull(
        f"{path} was moved, replaced or removed while ingestd was using it. Put it back with its log {path.name}-wal. If it is"
        " lost, stop ingestd, use 'ingestd restore' with a backup, and start it again."
    )


def unreachable(error: OSError, path: Path) -> MirrorError:
    """Return the error for a file in use that can't be examined, for example because its folder may not be read any more."""
    return _of_the_disk(error.strerror or str(error), path, temporary=True)


def _of_the_disk(reason: str, path: Path, *, temporary: bool) -> MirrorError:
    """Return the error for an I/O failure. ``temporary``: the file was in use, or the disk failed; else access is denied."""
    if not _has_room(path):
        return _full(path)
    if temporary:
        return MirrorFull(
            f"{path} cannot be used at the moment: {reason}. Check the disk and the kernel's log. No stored data is lost, and "
            "ingestd tries again."
        )
    return MirrorError(f"the state file {path} can't be opened: {reason}. {_check_account(path)}")


def damaged(path: Path, found: str) -> MirrorCorrupt:
    """Return the error for a damaged file; ``found`` describes the damage."""
    return MirrorCorrupt(
        f"{path} is damaged ({found}).",
        "Move it away and start with a new state file: the sources are read again and compared with the sinks.",
    )


def state_exists(path: Path) -> bool:
    """Return True if there is a state file.

    Raises:
        MirrorError: a parent of the path is no folder, or this account has no access.
    """
    try:
        path.stat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise unopenable(error, path) from error
    return True


def unopenable(error: OSError, path: Path) -> MirrorError:
    """Return the error for a state file, another file in its folder, or a folder that can't be opened."""
    if error.errno in _NO_ROOM:
        return _full(path)
    if planted := planted_file(error, path):
        return planted
    if error.errno == errno.EISDIR or path.is_dir():
        return MirrorError(f"{path} is a folder. Configure a file in 'state', or remove the folder.")
    if error.errno in {errno.ENOTDIR, errno.EEXIST}:
        return MirrorError(f"the state file {path} can't be created: {path.parent} is not a folder. Correct 'state'.")
    if error.errno == errno.EROFS:
        return MirrorError(
            f"the state file {path} can't be written: its file system is mounted read-only. Mount it for writing, or "
            "configure another path in 'state'."
        )
    return MirrorError(f"the state file {path} can't be opened: {error.strerror or error}. {_check_account(path)}")


def planted_file(error: OSError, path: Path) -> MirrorError | None:
    """Return the error for a link or another file that `open_state_file` refuses; None for any other failure."""
    if error.errno not in _REFUSED:
        return None
    return MirrorError(
        f"{error.filename or path} is {_REFUSED[error.errno]}. ingestd does not open it, because another account may have "
        "created it. Find out which account created it, and remove it or correct 'state'."
    )


def _full(path: Path) -> MirrorFull:
    return MirrorFull(f"the disk of {path} is full. Free some space (ingestd needs a few MB). Nothing was lost.")


def _check_account(path: Path) -> str:
    return (
        f"Check the owner and mode of {path.parent} and of its files {path.name}*. "
        f"This process runs as user {os.geteuid()}."
    )


def _has_room(path: Path) -> bool:
    """Return False if the file system has too little space or no inodes; True if that is unknown."""
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
    """A connection that raises errors of the mirror from statements and from their rows."""

    path = Path()
    """The file; set after the connection is opened."""

    def cursor(self, factory: Any = _ReadingCursor) -> Any:
        """Return a cursor from `sqlite3.Connection.cursor`: no other call removes the references to dead cursors."""
        return super().cursor(factory)

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Do the same as `sqlite3.Connection.execute`."""
        return cast("sqlite3.Cursor", self.cursor().execute(sql, parameters))

    def executemany(self, sql: str, parameters: Any, /) -> sqlite3.Cursor:
        """Do the same as `sqlite3.Connection.executemany`."""
        return cast("sqlite3.Cursor", self.cursor().executemany(sql, parameters))


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
