"""Examination of a state file and its folder, without changes: whether it is usable and undamaged."""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from ingestd.core.errors import MirrorError, MirrorOutdated
from ingestd.mirror.sqlite.state_file.connection import open_read_only
from ingestd.mirror.sqlite.state_file.failures import damaged, named_errors, unopenable

_LOOK_SECONDS = 5.0
_STEPS = 100_000
"""SQLite VM instructions between two checks of the time limit."""


class StateFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check. ``error`` is None unless the file can't be used.

    ``outdated``: the next start changes the layout, so the content can't be read before that.
    """

    sentence: str
    error: MirrorError | None = None
    outdated: bool = False


def examine(path: Path, *, seconds: float) -> Iterator[StateFinding]:
    """Check the folder, then the file's structure for at most ``seconds``. Stop at the first failure."""
    try:
        _usable(path)
    except OSError as error:
        failure = unopenable(error, path)
        yield StateFinding(sentence=str(failure), error=failure)
        return
    if not path.exists():
        yield StateFinding(sentence=f"{path} does not exist yet; the first run can create it.")
        return
    try:
        yield StateFinding(sentence=_structure(path, seconds))
    except MirrorOutdated as notice:
        yield StateFinding(sentence=str(notice), outdated=True)
    except MirrorError as failure:
        yield StateFinding(sentence=str(failure), error=failure)


@contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """Convert an error from the content of a damaged file, such as text in place of a number, to `MirrorCorrupt`."""
    try:
        yield
    except (
        ValueError,
        TypeError,
        AttributeError,
        LookupError,
        ArithmeticError,
        msgspec.MsgspecError,
        sqlite3.Error,
    ) as error:
        for found in examine(path, seconds=_LOOK_SECONDS):
            if found.error is not None:
                raise found.error from error
        if isinstance(error, ValueError | msgspec.MsgspecError):
            # The structure is intact, but a text that only this program writes is invalid.
            raise damaged(path, f"{type(error).__name__}: {error}") from error
        raise


def _usable(path: Path) -> None:
    """Raise the OSError that opening the file for writing would raise. Creates no file."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    nearest = path if path.exists() else next(folder for folder in path.parents if folder.exists())
    for item in {nearest, path.parent} if path.exists() else {nearest}:
        if not item.is_dir() and item != path:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(item, os.W_OK | (os.X_OK if item.is_dir() else os.R_OK)):
            code = errno.EROFS if os.statvfs(item).f_flag & os.ST_RDONLY else errno.EACCES
            raise OSError(code, os.strerror(code))


def _structure(path: Path, seconds: float) -> str:
    until = time.monotonic() + seconds
    with closing(open_read_only(path)) as connection, named_errors(path):
        connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
        try:
            # Not with the class that converts errors, because reaching the time limit is not an error.
            found = sqlite3.Cursor(connection).execute("PRAGMA quick_check(1)").fetchone()[0]
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", 0) != sqlite3.SQLITE_INTERRUPT:
                raise
            return f"{path} opens, and no damage was found within {seconds:.0f} s. It was not read completely."
    if found != "ok":
        raise damaged(path, " ".join(found.split()))
    return f"{path} is not damaged."
