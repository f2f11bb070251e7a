"""A copy of a SQLite file or of one table, made in steps, so that the owner of the file can write between two steps.

If a table is a small part of a file, only the table is copied, in ranges of rowids. All ranges show one state of the file if
``data_version`` is the same in all ranges. Otherwise the copy begins again. After some attempts the copy is made in one
transaction, if that takes less than `LOCK_SECONDS`.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from connectors.database.address import parse_table
from connectors.database.limits import Deadline
from connectors.database.options import DatabaseOptions
from ingestd.sdk import SourceBroken, SourceUnavailable

_STEP_BYTES = 16 * 1024 * 1024
"""The number of bytes of one step. If the system has cached the file, a step locks the file for some milliseconds."""
RESTARTS = 3
"""After this number of writes during a copy, the copy is made in one transaction, if that takes less than `LOCK_SECONDS`."""
LOCK_SECONDS = 0.5
"""The maximum time for which a copy locks the file. Many programs wait only one or five seconds for a lock."""
_MOST_RESTARTS = 30
_FIRST_ROWS = 500
_RANGE_SECONDS = 0.05
"""The approximate time for which the copy of a range locks the file."""
_LARGEST_SHARE = 0.3
"""If a table is a larger share of the file, the whole file is copied, because copying pages is faster than copying rows."""
_STEPS_BETWEEN_CHECKS = 1_000
_IDENTITIES = ("rowid", "_rowid_", "oid")
_IS_TABLE = (
    "SELECT count(*) FROM source.sqlite_master"
    " WHERE type = 'table' AND name = ? COLLATE NOCASE AND sql NOT LIKE 'CREATE VIRTUAL%'"
)
_ERROR, _INTERRUPT = 1, 9


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
    """Lock the file for reading, so that all steps of a copy see one state."""
    connection.execute("BEGIN")
    try:
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
        yield
    finally:
        connection.execute("COMMIT")


class LockedTooLong(Exception):
    """A copy in one transaction took longer than `LOCK_SECONDS`."""


class WrittenMeanwhile(Exception):
    """The file was written too often during a copy in steps. One transaction would probably take less than `LOCK_SECONDS`."""


class CopyProgress:
    """Checks a copy after each step. Ends the copy if it is too large, takes too long, or locks the file for too long."""

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
        """Raise an error if the copy is too large, the file is locked, or a time limit is exceeded."""
        where, size = self._options.address(), total * self._page_size
        if size > self._options.spool_bytes:
            raise SourceBroken(
                f"The database {where} has {size} bytes, more than spool_bytes ({self._options.spool_bytes}) allows to copy."
                " Increase spool_bytes, or let its owner set PRAGMA journal_mode = WAL: then it is read without a copy."
            )
        if status == sqlite3.SQLITE_BUSY:
            raise sqlite3.OperationalError("database is locked")
        self._deadline.check()
        self._deadline.restart()

    def after_step(self, status: int, remaining: int, total: int) -> None:
        """Check the copy, and count the restarts. SQLite restarts a copy if another program has written to the file."""
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
                f" at once would lock it for more than {LOCK_SECONDS:g} seconds. The reading is tried again. Let the owner of"
                " the file set PRAGMA journal_mode = WAL: then it is read without a copy."
            )
        speed = self._copied / (self._clock() - self._started)
        if total * self._page_size / speed < LOCK_SECONDS:
            raise WrittenMeanwhile

    def at_once(self) -> Callable[[int, int, int], None]:
        """Return the check for a copy in one transaction. The check raises `LockedTooLong` after `LOCK_SECONDS`."""
        started = self._clock()
        self._remaining = None
        self._restarts += 1

        def after_step(status: int, remaining: int, total: int) -> None:
            self.check(status, remaining, total)
            if remaining and self._clock() - started > LOCK_SECONDS:
                raise LockedTooLong

        return after_step


def copy_table(path: Path, copy: sqlite3.Connection, options: DatabaseOptions, deadline: Deadline) -> bool:
    """Copy the table to ``copy``, an empty database that accepts URIs. Return False if the whole file must be copied.

    Raises:
        SourceUnavailable: a time limit is exceeded.
        sqlite3.Error: the file can't be read.
    """
    if options.table is None or len(parse_table(options.table)) != 1:
        return False
    try:
        copy.execute("PRAGMA synchronous = OFF")
        copy.execute("ATTACH ? AS source", (f"file:{quote(str(path))}?mode=ro",))
        made = any(
            _TableCopy(copy, options, deadline).run(at_once=attempt == RESTARTS) for attempt in range(RESTARTS + 1)
        )
        copy.set_progress_handler(None, 0)
        copy.execute("DETACH source")
    except _MustBeWhole:
        return False
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in {_ERROR, _INTERRUPT}:
            raise
        return False  # the table is unknown or has no rowid, or a range takes too long
    return made


class _MustBeWhole(Exception):
    """The table can't be copied alone, or copying the whole file is faster."""


class _TableCopy:
    """One attempt to copy a table."""

    def __init__(self, copy: sqlite3.Connection, options: DatabaseOptions, deadline: Deadline) -> None:
        self._copy = copy
        self._options = options
        self._deadline = deadline
        (self._name,) = parse_table(str(options.table))
        self._table = _quote(self._name)

    def run(self, *, at_once: bool) -> bool:
        """Copy the table. Return False if another program wrote to the file during the copy."""
        with self._transaction() as version:
            most_rows = self._create()
            if at_once:
                self._insert(most_rows)
        step, copied = _FIRST_ROWS, 0
        while not at_once:
            with self._transaction() as now:
                if now != version:
                    return False
                started = time.monotonic()
                copied = self._insert(step)
                spent = time.monotonic() - started
            if copied < step:
                break
            self._check(most_rows / step if step == _FIRST_ROWS else 1.0)
            step = max(1, min(round(step * _RANGE_SECONDS / max(spent, 0.001)), 4 * step))
        if self._size("main") > self._options.spool_bytes:
            raise _MustBeWhole
        return True

    @contextmanager
    def _transaction(self) -> Iterator[int]:
        """Open a transaction and yield the version of the file. A statement is interrupted after `LOCK_SECONDS`."""
        self._deadline.restart()
        self._copy.set_progress_handler(None, 0)
        self._copy.execute("BEGIN")
        try:
            version = self._number("PRAGMA source.data_version")
            self._number("SELECT count(*) FROM source.sqlite_master")  # the file is locked from here on
            end = time.monotonic() + min(LOCK_SECONDS, self._deadline.left())
            self._copy.set_progress_handler(lambda: time.monotonic() > end, _STEPS_BETWEEN_CHECKS)
            yield version
        finally:
            self._copy.execute("COMMIT")

    def _create(self) -> int:
        """Create an empty table in the copy. Return an upper limit for the number of rows of the source table."""
        if not self._number(_IS_TABLE, self._name):
            raise _MustBeWhole
        described = self._copy.execute(f"SELECT * FROM source.{self._table} LIMIT 0").description
        names = [field[0] for field in described]
        free = [name for name in _IDENTITIES if name not in {name.lower() for name in names}]
        if not free:
            raise _MustBeWhole
        self._identity, self._columns = free[0], ", ".join(map(_quote, names))
        # A column without a type stores each value unchanged.
        self._copy.execute(f"DROP TABLE IF EXISTS main.{self._table}")
        self._copy.execute(f"CREATE TABLE main.{self._table} ({self._columns})")
        identity = self._identity
        return self._number(f"SELECT coalesce(max({identity}) - min({identity}) + 1, 0) FROM source.{self._table}")

    def _insert(self, rows: int) -> int:
        """Copy at most ``rows`` further rows. Return the number of copied rows."""
        identity, columns, table = self._identity, self._columns, self._table
        last = self._copy.execute(f"SELECT max({identity}) FROM main.{table}").fetchone()[0]
        return self._copy.execute(
            f"INSERT INTO main.{table} ({identity}, {columns}) SELECT {identity}, {columns} FROM source.{table}"
            f" {'' if last is None else f'WHERE {identity} > {last}'} ORDER BY {identity} LIMIT {rows}"
        ).rowcount

    def _check(self, times: float) -> None:
        """Check the limits. ``times``: how many times larger than now the complete copy will be, as an estimate."""
        size = self._size("main")
        if size > self._options.spool_bytes or size * times > _LARGEST_SHARE * self._size("source"):
            raise _MustBeWhole
        self._deadline.check()

    def _size(self, schema: str) -> int:
        return self._number(f"PRAGMA {schema}.page_count") * self._number(f"PRAGMA {schema}.page_size")

    def _number(self, sql: str, *parameters: str) -> int:
        return int(self._copy.execute(sql, parameters).fetchone()[0])


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
