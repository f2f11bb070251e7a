"""A copy of a SQLite file, made in steps so that its owner can write between any two of them."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from connectors.database.limits import Deadline
from connectors.database.options import DatabaseOptions
from ingestd.sdk import SourceBroken, SourceUnavailable

_STEP_BYTES = 16 * 1024 * 1024
"""Copied at a time while the file is locked: some milliseconds if the system has it in memory."""
RESTARTS = 3
"""After this number of writes during a copy, it is copied without a break if that takes less than `LOCK_SECONDS`."""
LOCK_SECONDS = 0.5
"""The longest time for which a copy locks the file. Owners often wait for a second, or for five."""
_MOST_RESTARTS = 30


def copy_file(
    connection: sqlite3.Connection, copy: sqlite3.Connection, options: DatabaseOptions, deadline: Deadline
) -> None:
    """Copy the whole file to an empty database.

    Raises:
        SourceBroken: the file is larger than ``spool_bytes``.
        SourceUnavailable: a time limit is exceeded, or the file is written too often.
    """
    page_size = int(connection.execute("PRAGMA page_size").fetchone()[0])
    copy.execute("PRAGMA synchronous = OFF")
    progress = CopyProgress(options, page_size=page_size, deadline=deadline)
    pages = _STEP_BYTES // page_size
    while True:
        try:
            return connection.backup(copy, pages=pages, progress=progress.after_step)
        except WrittenMeanwhile:
            with suppress(LockedTooLong), _transaction(connection):
                return connection.backup(copy, pages=pages, progress=progress.at_once())


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Lock the file for reading, so that the steps of a copy are of one state."""
    connection.execute("BEGIN")
    try:
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
        yield
    finally:
        connection.execute("COMMIT")


class LockedTooLong(Exception):
    """A copy without a break took `LOCK_SECONDS`."""


class WrittenMeanwhile(Exception):
    """The file was written too often while it was copied in steps, and copying it at once takes little time."""


class CopyProgress:
    """Ends a copy that is too large, takes too long, or would lock the file for too long."""

    def __init__(
        self,
        options: DatabaseOptions,
        *,
        page_size: int,
        deadline: Deadline,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._page_size = page_size
        self._deadline = deadline
        self._clock = clock
        self._started = clock()
        self._copied = 0
        self._restarts = 0
        self._remaining: int | None = None

    def check(self, status: int, _remaining: int, total: int) -> None:
        """Raise an error if the copy must end."""
        where, size = self._options.address(), total * self._page_size
        if size > self._options.spool_bytes:
            raise SourceBroken(
                f"The database {where} has {size} bytes, more than spool_bytes ({self._options.spool_bytes}) allows to copy."
                " Increase spool_bytes, or let its owner set PRAGMA journal_mode = WAL, with which it is read without a copy."
            )
        if status == sqlite3.SQLITE_BUSY:
            raise sqlite3.OperationalError("database is locked")
        self._deadline.check()
        self._deadline.restart()

    def after_step(self, status: int, remaining: int, total: int) -> None:
        """Check, and count the restarts: SQLite copies from the start if another program wrote to the file."""
        self.check(status, remaining, total)
        self._copied += _STEP_BYTES
        if self._remaining is not None and remaining >= self._remaining:
            self._restarts += 1
        self._remaining = remaining
        if not remaining or self._restarts < RESTARTS:
            return
        if self._restarts >= _MOST_RESTARTS:
            raise SourceUnavailable(
                f"The database {self._options.address()} was written {self._restarts} times while it was copied, and copying it"
                f" at once would lock it for more than {LOCK_SECONDS:g} seconds. It is tried again. Let its owner set PRAGMA"
                " journal_mode = WAL, with which it is read without a copy."
            )
        speed = self._copied / (self._clock() - self._started)
        if total * self._page_size / speed < LOCK_SECONDS:
            raise WrittenMeanwhile

    def at_once(self) -> Callable[[int, int, int], None]:
        """Return what checks a copy without a break: it raises `LockedTooLong` when the time is over."""
        started = self._clock()
        self._remaining = None
        self._restarts += 1

        def after_step(status: int, remaining: int, total: int) -> None:
            self.check(status, remaining, total)
            if remaining and self._clock() - started > LOCK_SECONDS:
                raise LockedTooLong

        return after_step
