"""The row index: positions and hashes of the rows of the last reading, in a private SQLite file next to the state file.

The file only saves work. It stores the id of its reading, and is used only with the durable cursor of this reading. A reading
writes its rows into the index as changes before it yields them. The changes become valid when the reading's cursor is durable.
If the reading ends early, its rows count as unknown, because the intake may have stored some of them. So after a crash, or if
the file is old, foreign or missing, rows are read again, and no change is missed.

Memory is limited, because SQLite sorts in temporary files. A hash has 128 bits of SHA-256, so it identifies a row's text.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

_SCHEMA = """
CREATE TABLE IF NOT EXISTS content (
  id INTEGER PRIMARY KEY, definition TEXT NOT NULL, reading TEXT, pending TEXT, is_whole INTEGER NOT NULL DEFAULT 0);
INSERT OR IGNORE INTO content (id, definition) VALUES (1, '');
CREATE TABLE IF NOT EXISTS known (position TEXT PRIMARY KEY, hash BLOB) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS whole (position TEXT PRIMARY KEY, hash BLOB) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS change (position TEXT PRIMARY KEY, hash BLOB, removed INTEGER NOT NULL) WITHOUT ROWID;
CREATE TEMP TABLE listed (position TEXT NOT NULL, hash BLOB);
CREATE TEMP TABLE present (position TEXT PRIMARY KEY) WITHOUT ROWID;
"""
_CACHE_KIB = 32 * 1024

_Result = TypeVar("_Result")


class RowIndex:
    """The index of the rows of one source. Its methods raise no error of the file.

    ``locate`` returns the path of the file, or None if the index is not kept after `close`. ``report`` logs a sentence.
    A file that can't be used is deleted. Then all rows are unknown until the next whole reading.
    """

    def __init__(self, locate: Callable[[], Path | None], report: Callable[[str], None]) -> None:
        self._locate = locate
        self._path: Path | None = None
        self._reported = ""
        self._report = report
        self._connection: sqlite3.Connection | None = None
        self.is_valid = False
        """True if the index has all rows up to the reading that `begin` named, and all changes since this reading."""

    def begin(self, reading: str, definition: str) -> None:
        """Begin a reading of changes. ``reading``: the id of the last durable reading. ``definition``: see `HashedRows`."""
        self.is_valid = False
        self.is_valid = self._attempt(lambda connection: _begin(connection, reading, definition), default=False)

    def select_new(self, positions: pl.Series, hashes: pl.Series) -> pl.Series:
        """Return a mask that is true for each row with an unknown position or hash. ``hashes`` are of type ``pl.Binary``."""
        everything = pl.repeat(value=True, n=positions.len(), dtype=pl.Boolean, eager=True)
        if not self.is_valid:
            return everything
        return self._attempt(lambda connection: _select_new(connection, positions, hashes), default=everything)

    def add_changes(self, positions: pl.Series, hashes: pl.Series) -> None:
        """Store the positions and hashes of changed rows. Call this before the rows are yielded."""
        if self.is_valid and positions.len():
            rows = [(position, hash_, 0) for position, hash_ in zip(positions, hashes, strict=True)]
            self._attempt(lambda connection: _insert(connection, "change", rows), default=None)

    def begin_whole(self, definition: str) -> None:
        """Begin a whole reading. Until it is complete, all rows are unknown."""
        self.is_valid = False
        self.is_valid = self._attempt(lambda connection: _begin_whole(connection, definition), default=False)

    def add_listed(self, positions: pl.Series, hashes: pl.Series | None = None) -> None:
        """Add the rows of a whole reading, or the positions that a sweep listed."""
        if self.is_valid:
            rows = [*zip(positions, hashes if hashes is not None else [None] * positions.len(), strict=True)]
            self._attempt(lambda connection: _insert(connection, "temp.listed", rows), default=None)

    def end_whole(self, reading: str) -> None:
        """Complete a whole reading. Its rows become valid when its cursor is durable."""
        if self.is_valid:
            self._attempt(lambda connection: _end_whole(connection, reading), default=None)

    def end_changes(self, reading: str, removed: Sequence[str] = ()) -> None:
        """Complete a reading of changes. ``removed``: the positions of removed rows."""
        if self.is_valid:
            self._attempt(lambda connection: _end_changes(connection, reading, removed), default=None)

    def begin_list(self) -> None:
        """Begin a sweep, which lists the positions of all rows."""
        self._attempt(lambda connection: _clear(connection, "temp.listed"), default=None)

    def missing(self, most: int) -> list[str] | None:
        """Return the known positions that the sweep did not list. None: they are more than ``most``, or a position repeats."""
        if not self.is_valid:
            return None
        return self._attempt(lambda connection: _missing(connection, most), default=None)

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
        self._connection, self.is_valid = None, False

    def _attempt(self, work: Callable[[sqlite3.Connection], _Result], *, default: _Result) -> _Result:
        """Perform ``work`` in a transaction. If the file can't be used, delete the file and return ``default``."""
        try:
            connection = self._opened()
            connection.execute("BEGIN IMMEDIATE")
            result = work(connection)
            connection.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            self.close()
            if self._path is not None:
                with suppress(OSError):
                    self._path.with_name(f"{self._path.name}-journal").unlink(missing_ok=True)
                    self._path.unlink(missing_ok=True)
            where = f" in {self._path}" if self._path is not None else ""
            sentence = f"The row hashes{where} can't be used ({error}). The next sweep reads every row."
            if sentence != self._reported:
                self._report(sentence)
            self._reported = sentence
            return default
        return result

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._path = self._locate()
            self._connection = _connect(self._path)
            self._connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            self._connection.executescript(_SCHEMA)
        return self._connection


def _connect(path: Path | None) -> sqlite3.Connection:
    return sqlite3.connect(path or "", isolation_level=None, check_same_thread=False)


def _begin(connection: sqlite3.Connection, reading: str, definition: str) -> bool:
    known, stored, pending, is_whole = connection.execute(
        "SELECT definition, reading, pending, is_whole FROM content"
    ).fetchone()
    if known != definition:
        stored = pending = None
    if pending == reading:
        _apply(connection, is_whole=bool(is_whole))
        stored = reading
    elif stored == reading:
        # The last reading ended early. The intake may have stored some of its rows, so their hashes count as unknown.
        connection.execute("UPDATE known SET hash = NULL WHERE position IN (SELECT position FROM change)")
        connection.execute("INSERT OR IGNORE INTO known SELECT position, NULL FROM change WHERE NOT removed")
    is_valid = bool(stored == reading)
    connection.execute("UPDATE content SET reading = ?, pending = NULL", (reading if is_valid else None,))
    connection.execute("DELETE FROM change")
    return is_valid


def _apply(connection: sqlite3.Connection, *, is_whole: bool) -> None:
    if is_whole:
        connection.execute("DROP TABLE known")
        connection.execute("ALTER TABLE whole RENAME TO known")
        connection.execute("CREATE TABLE whole (position TEXT PRIMARY KEY, hash BLOB) WITHOUT ROWID")
        return
    connection.execute("DELETE FROM known WHERE position IN (SELECT position FROM change WHERE removed)")
    connection.execute("INSERT OR REPLACE INTO known SELECT position, hash FROM change WHERE NOT removed")


def _select_new(connection: sqlite3.Connection, positions: pl.Series, hashes: pl.Series) -> pl.Series:
    rows = connection.execute(
        "SELECT k.position, k.hash FROM json_each(?) j CROSS JOIN known k ON k.position = j.value",
        (json.dumps(positions.unique().to_list()),),
    ).fetchall()
    known = pl.DataFrame(rows, schema={"position": pl.String, "known": pl.Binary}, orient="row")
    read = pl.DataFrame([positions.alias("position"), hashes.alias("hash")])
    joined = read.join(known, on="position", how="left", maintain_order="left")
    return joined.select((pl.col("hash") == pl.col("known")).fill_null(value=False).not_())["hash"]


def _insert(connection: sqlite3.Connection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    if rows:
        connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)


def _clear(connection: sqlite3.Connection, *tables: str) -> None:
    for table in tables:
        connection.execute(f"DELETE FROM {table}")


def _begin_whole(connection: sqlite3.Connection, definition: str) -> bool:
    connection.execute("UPDATE content SET definition = ?, reading = NULL, pending = NULL", (definition,))
    _clear(connection, "change", "whole", "temp.listed")
    return True


def _end_whole(connection: sqlite3.Connection, reading: str) -> None:
    """Store the listed rows. If a position occurs twice, positions do not identify rows, so the index is not valid."""
    inserted = connection.execute(
        "INSERT OR IGNORE INTO whole SELECT position, hash FROM temp.listed ORDER BY position"
    )
    listed = connection.execute("SELECT count(*) FROM temp.listed").fetchone()[0]
    connection.execute("DELETE FROM temp.listed")
    if inserted.rowcount == listed:
        connection.execute("UPDATE content SET pending = ?, is_whole = 1", (reading,))


def _end_changes(connection: sqlite3.Connection, reading: str, removed: Sequence[str]) -> None:
    _insert(connection, "change", [(position, None, 1) for position in removed])
    connection.execute("UPDATE content SET pending = ?, is_whole = 0", (reading,))


def _missing(connection: sqlite3.Connection, most: int) -> list[str] | None:
    connection.execute("DELETE FROM temp.present")
    inserted = connection.execute(
        "INSERT OR IGNORE INTO temp.present SELECT position FROM temp.listed ORDER BY position"
    )
    listed = connection.execute("SELECT count(*) FROM temp.listed").fetchone()[0]
    rows = connection.execute(
        "SELECT k.position FROM known k WHERE NOT EXISTS (SELECT 1 FROM temp.present p WHERE p.position = k.position) LIMIT ?",
        (most + 1,),
    ).fetchall()
    _clear(connection, "temp.present", "temp.listed")
    return None if inserted.rowcount < listed or len(rows) > most else [position for (position,) in rows]
