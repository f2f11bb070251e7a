"""SQLite: a file that is not in WAL mode is copied, and the copy is read. So its owner waits only for the copy.

Without WAL mode, a reader blocks every commit of the owner. In WAL mode, a reader blocks no commit, so the file is not copied.
"""

from __future__ import annotations

import os
import re
import sqlite3
import stat
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from math import isfinite
from operator import methodcaller
from pathlib import Path
from typing import Any, ClassVar, Literal
from urllib.parse import quote

import polars as pl

from connectors.database.address import parse_table
from connectors.database.failure import existing_tables, one_line
from connectors.database.frames import BINARY, NOT_FINITE, NOT_UTF8
from connectors.database.limits import Deadline
from connectors.database.options import DatabaseOptions
from connectors.database.port import (
    ALIAS,
    Database,
    Frame,
    Parameter,
    ReadSession,
    ResultColumn,
    SqlDialect,
    TextFault,
    bind,
)
from connectors.database.sqlite_copy import copy_file, copy_table
from connectors.utf8 import is_utf8
from ingestd.sdk import SourceBroken, SourceError, SourceUnavailable

_STEPS_BETWEEN_CHECKS = 10_000
_AS_WRITTEN = methodcaller("decode", "utf-8", "surrogateescape")
_NUMBERED = re.compile(r":\d+$")
_TABLES = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY 1"
_NONE = type(None)
_BROKEN = frozenset({1, 8, 11, 20, 23, 25, 26})  # error, readonly, corrupt, mismatch, auth, range, not a database
_BUSY, _INTERRUPT, _FULL, _CANTOPEN = 5, 9, 13, 14
_HOT_JOURNAL = 776  # SQLITE_READONLY_ROLLBACK
_NO_SHARED_MEMORY = frozenset({264, 1288, 1544})  # SQLITE_READONLY_RECOVERY, _CANTINIT, _DIRECTORY


class SqliteDialect(SqlDialect):
    """SQLite's SQL. Python converts the values to text, because SQLite would write a real with only 15 digits."""

    name: ClassVar[Literal["sqlite"]] = "sqlite"
    storage_class: ClassVar[str] = "typeof({})"

    def exact_text(self, column: ResultColumn) -> str:
        """See `SqlDialect.exact_text`."""
        return column.expression or self.quote(column.name)


class SqliteDatabase(Database):
    """One SQLite file. ingestd never creates the file and never writes to it."""

    def __init__(self, options: DatabaseOptions, base: Path) -> None:
        self._options = options
        self._path = (base / options.address().database).absolute()
        self.dialect = SqliteDialect(options)

    @contextmanager
    def open(self) -> Iterator[ReadSession]:
        """Open the file or a copy of the file, and begin a transaction."""
        deadline = Deadline(self._options)
        try:
            with closing(self._connect()) as connection:
                connection.execute("BEGIN")
                if self._is_wal(connection):
                    yield from self._session(connection, deadline)
                else:
                    connection.execute("COMMIT")
                    with closing(self._copy(connection, deadline)) as copy:
                        connection.close()
                        copy.execute("PRAGMA query_only = ON")
                        copy.execute("BEGIN")
                        yield from self._session(copy, deadline)
        except sqlite3.Error as error:
            raise self._failure(error, deadline) from None

    def primary_key(self) -> tuple[str, ...]:
        """Return the columns of the table's primary key. This needs no copy of the file."""
        sql = "SELECT name FROM pragma_table_info(?) WHERE pk ORDER BY pk"
        try:
            with closing(self._connect()) as connection:
                names = connection.execute(sql, (parse_table(str(self._options.table))[-1],)).fetchall()
        except sqlite3.Error as error:
            raise self._failure(error, Deadline(self._options)) from None
        return tuple(name for (name,) in names)

    def _copy(self, connection: sqlite3.Connection, deadline: Deadline) -> sqlite3.Connection:
        """Return a temporary database that has a copy of the table or of the whole file."""
        copy = self._connect_to("file:")
        try:
            if not copy_table(self._path, copy, self._options, deadline):
                copy.close()
                copy = self._connect_to("file:")
                copy_file(connection, copy, self._options, deadline)
        except BaseException:
            copy.close()
            raise
        return copy

    def _connect(self) -> sqlite3.Connection:
        try:
            mode = self._path.stat().st_mode
        except OSError as error:
            raise SourceUnavailable(
                f"The database {self._options.address()} can't be reached: {error.strerror}."
            ) from None
        if not stat.S_ISREG(mode):  # opening a pipe would wait for a writer
            raise SourceBroken(f"The database {self._options.address()} is not a regular file. Correct url.")
        return self._connect_to(f"file:{quote(str(self._path))}?mode=ro")

    def _connect_to(self, uri: str) -> sqlite3.Connection:
        return sqlite3.connect(
            uri,
            uri=True,
            timeout=self._options.lock_timeout_seconds,
            isolation_level=None,
            check_same_thread=False,
        )

    @staticmethod
    def _is_wal(connection: sqlite3.Connection) -> bool:
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()  # fails if the file can't be read
        return str(connection.execute("PRAGMA journal_mode").fetchone()[0]) == "wal"

    def _session(self, connection: sqlite3.Connection, deadline: Deadline) -> Iterator[ReadSession]:
        connection.text_factory = _AS_WRITTEN
        connection.set_progress_handler(lambda: deadline.left() == 0, _STEPS_BETWEEN_CHECKS)
        yield SqliteSession(connection, self.dialect, deadline)

    def _failure(self, error: sqlite3.Error, deadline: Deadline) -> SourceError:  # noqa: PLR0911 - one return for each cause
        """Return the error for a failed connection or statement."""
        where, words, code = self._options.address(), one_line(error), getattr(error, "sqlite_errorcode", 1)
        if code & 0xFF == _INTERRUPT:
            return deadline.exceeded()
        if code & 0xFF == _BUSY or words == "database is locked":
            return SourceUnavailable(
                f"The database {where} can't be read because another program writes to it for longer than"
                f" {self._options.lock_timeout_seconds:g} seconds (lock_timeout_seconds)."
            )
        if code & 0xFF == _FULL:
            return SourceUnavailable(
                f"The database {where} can't be copied for the reading: the system's temporary folder is full (TMPDIR)."
            )
        if code == _HOT_JOURNAL:
            return SourceBroken(
                f"The database {where} was left in the middle of a write: {self._path.name}-journal holds what must be"
                " undone, and ingestd never writes to the file. Open the file once with the program that owns it, or with"
                f" sqlite3 {self._path.name} 'SELECT count(*) FROM sqlite_master' by a user that may write it."
            )
        if code in _NO_SHARED_MEMORY or (code & 0xFF == _CANTOPEN and os.access(self._path, os.R_OK)):
            return SourceBroken(
                f"The database {where} is in WAL mode, and ingestd may not write to its folder, where SQLite needs the file"
                f" {self._path.name}-shm. Let the user of ingestd write to the folder, keep the program that owns the file"
                " running, or let it set PRAGMA journal_mode = DELETE."
            )
        if code & 0xFF not in _BROKEN:
            return SourceUnavailable(f"The database {where} can't be reached: {words}.")
        return SourceBroken(f"The database {where} refuses the reading: {words}.")


class SqliteSession(ReadSession):
    """A transaction of one connection. The values of a column can have different types."""

    def __init__(self, connection: sqlite3.Connection, dialect: SqlDialect, deadline: Deadline) -> None:
        self._connection = connection
        self._options = dialect.options
        self._dialect = dialect
        self._deadline = deadline

    def columns(self, source: str) -> list[ResultColumn]:
        """See `ReadSession.columns`. The type of a column is the empty text, because each value has its own type."""
        self._deadline.restart()
        try:
            names = self._names(f"SELECT * FROM {source} LIMIT 0")
            is_renamed = any(_NUMBERED.sub("", name) in names for name in names if _NUMBERED.search(name))
            if is_renamed and source.startswith("("):
                # In a subquery, SQLite renames a second column ``a`` to ``a:1``. So the query is run without the outer SELECT.
                names = self._names(source.removeprefix("(").removesuffix(f") AS {ALIAS}"))
        except sqlite3.OperationalError as error:
            if "no such table" not in str(error):
                raise
            listed = self._connection.execute(_TABLES).fetchall()
            raise SourceBroken(
                f"The database {self._options.address()} refuses the reading: {error}.{existing_tables([n for (n,) in listed])}"
            ) from None
        return [ResultColumn(name=name, type="") for name in names]

    def _names(self, sql: str) -> list[str]:
        with closing(self._connection.execute(sql)) as cursor:
            return [field[0] for field in cursor.description]

    def frames(
        self, columns: Sequence[ResultColumn], source: str, rest: str = "", parameters: Sequence[Parameter] = ()
    ) -> Iterator[Frame]:
        """See `ReadSession.frames`."""
        sql = bind(self._dialect.select(columns, source, rest), ["?"] * len(parameters), str)
        names = [column.name for column in columns]
        self._deadline.restart()
        with closing(self._connection.execute(sql, tuple(parameters))) as cursor:
            while True:
                frame, more = self._next_frame(cursor, names)
                yield frame
                if not more:
                    return

    def scalar(self, sql: str, parameters: Sequence[Parameter] = ()) -> str | None:
        """See `ReadSession.scalar`."""
        self._deadline.restart()
        row = self._connection.execute(bind(sql, ["?"] * len(parameters), str), tuple(parameters)).fetchone()
        return None if row is None or row[0] is None else str(row[0])

    def _next_frame(self, cursor: sqlite3.Cursor, names: Sequence[str]) -> tuple[Frame, bool]:
        """Return the next rows within ``batch_rows`` and ``batch_bytes``, and whether there may be more rows."""
        self._deadline.restart()
        parts: list[Frame] = []
        rows = size = 0
        step, more = 1, True  # the size of the first rows shows how many rows fit
        while more and rows < self._options.batch_rows and size < self._options.batch_bytes:
            fetched = cursor.fetchmany(min(step, self._options.batch_rows - rows))
            more = bool(fetched)
            if more or not parts:
                parts.append(self._frame(fetched, names, first=rows))
                rows += len(fetched)
                size += int(parts[-1].records.estimated_size())
                average = size // max(1, rows) + 1
                step = max(1, min(2 * step, (self._options.batch_bytes - size) // average))
        records = pl.concat([part.records for part in parts], rechunk=True)
        return Frame(records=records, faults={at: fault for part in parts for at, fault in part.faults.items()}), more

    def _frame(self, rows: list[tuple[Any, ...]], names: Sequence[str], *, first: int) -> Frame:
        """Return the frame of ``rows``. ``first``: the index of the first row."""
        faults: dict[int, TextFault] = {}
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
        series = [
            pl.Series(name, self._texts(values, name, faults, first), dtype=pl.String)
            for name, values in zip(names, columns, strict=True)
        ]
        return Frame(records=pl.DataFrame(series), faults=faults)

    def _texts(
        self, values: Sequence[Any], name: str, faults: dict[int, TextFault], first: int
    ) -> Sequence[str | None]:
        types = set(map(type, values))
        if types == {int}:
            return list(map(str, values))
        if types == {float} and self._options.nan == "keep":
            return list(map(repr, values))
        if types <= {str, _NONE} and is_utf8("".join(filter(None, values))):
            return values
        texts: list[str | None] = []
        for at, value in enumerate(values, start=first):
            text, fault = self._text(value)
            texts.append(text)
            if fault:
                faults.setdefault(at, TextFault(name, f"Column {name} {fault}."))
        return texts

    def _text(self, value: object) -> tuple[str | None, str]:
        """Return the text of one value, and an empty text; if the value can't be used, None and the reason."""
        match value:
            case str():
                return (value, "") if is_utf8(value) else (None, NOT_UTF8)
            case float() if self._options.nan != "keep" and not isfinite(value):
                return None, NOT_FINITE if self._options.nan == "reject" else ""
            case float():
                return repr(value), ""
            case bytes():
                texts = {"hex": value.hex(), "base64": b64encode(value).decode()}
                text = texts.get(self._options.binary)
                return text, "" if text is not None else BINARY
            case _:
                return None if value is None else str(value), ""
