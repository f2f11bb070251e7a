"""The owner of a SQLite file without WAL writes without a pause and waits for at most a second, and no write fails."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from connectors.database import sqlite_copy
from ingestd.sdk import SourceUnavailable

ROWS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {})"


def read(connector: Any) -> list[Any]:
    (partition,) = connector.partitions()
    return [row for batch in connector.read(partition, None) for row in batch.records.rows()]


def fill(sqlite: Any, table: str, rows: int, text: int) -> None:
    sqlite.do("PRAGMA synchronous = OFF")
    sqlite.do(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, v TEXT)")
    sqlite.do(f"INSERT INTO {table} {ROWS.format(rows)} SELECT i, hex(zeroblob({text // 2})) FROM n")


@contextmanager
def writing_owner(path: Path, statement: str) -> Iterator[list[sqlite3.Error | None]]:
    """Write without a pause; the list has None for each write, or its error."""
    stop, writes = threading.Event(), list[sqlite3.Error | None]()

    def own() -> None:
        owner = sqlite3.connect(path, timeout=1.0, isolation_level=None)
        owner.execute("PRAGMA synchronous = OFF")
        while not stop.is_set():
            try:
                owner.execute(statement)
                writes.append(None)
            except sqlite3.Error as error:
                writes.append(error)
        owner.close()

    thread = threading.Thread(target=own)
    thread.start()
    try:
        yield writes
    finally:
        stop.set()
        thread.join()


# A table that is a small part of the file is copied alone, a larger table with the file.
@pytest.mark.parametrize(("megabytes", "rows"), [(20, 40_000), (20, 2_000)])
def test_no_write_of_the_owner_fails_and_each_reading_is_of_one_state(sqlite: Any, megabytes: int, rows: int) -> None:
    fill(sqlite, "p", rows, 200)
    fill(sqlite, "other", (megabytes * 1_000_000 - rows * 200) // 20_000, 20_000)
    sqlite.do(f"UPDATE p SET v = '0' WHERE id IN (1, {rows})")
    change = f"UPDATE p SET v = v + 1 WHERE id IN (1, {rows})"
    with writing_owner(sqlite.base / "pdm.db", change) as writes:
        readings: list[dict[str, str]] = [dict(read(sqlite.connector(table="p"))) for _ in range(3)]
    assert [len(reading) for reading in readings] == [rows] * 3
    assert all(reading["1"] == reading[str(rows)] for reading in readings)
    assert [error for error in writes if error] == []
    assert writes


def test_no_write_fails_while_a_large_table_is_read_and_the_sentence_has_the_remedy(
    sqlite: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_copy, "LOCK_SECONDS", 0.02)  # the table is large for a lock of this time
    fill(sqlite, "p", 3_000, 20_000)
    with writing_owner(sqlite.base / "pdm.db", "UPDATE p SET v = v || '0' WHERE id = 1") as writes:
        try:
            result: int | str = len(read(sqlite.connector(table="p")))
        except SourceUnavailable as error:
            result = str(error)
    assert result == 3_000 or "journal_mode = WAL" in str(result)
    assert [error for error in writes if error] == []
    assert writes


TABLES: Sequence[tuple[str, str]] = [
    ("CREATE TABLE p (id INTEGER PRIMARY KEY, v NUMERIC, w REAL, x TEXT)", "1, '1.10', 3, x'ff'"),
    ("CREATE TABLE p (v, w)", "1, '1'"),
    ("CREATE TABLE p (rowid TEXT, _rowid_ TEXT)", "'a', 'b'"),
    ("CREATE TABLE p (rowid TEXT, _rowid_ TEXT, oid TEXT)", "'a', 'b', 'c'"),
    ("CREATE TABLE p (a TEXT PRIMARY KEY, b INTEGER) WITHOUT ROWID", "'a', 7"),
    ("CREATE TABLE p (a INTEGER, b INTEGER GENERATED ALWAYS AS (a + 1))", "1"),
    ("CREATE VIEW p AS SELECT 1 AS a", ""),
    ('CREATE TABLE P (a INTEGER PRIMARY KEY, "x ""y" ANY) STRICT', "-9223372036854775808, '007'"),
    ("CREATE TABLE p (a INTEGER)", ""),
]


@pytest.mark.parametrize(("definition", "values"), TABLES)
@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16"])
def test_the_copy_of_a_table_has_the_values_of_the_file(
    sqlite: Any, definition: str, values: str, encoding: str
) -> None:
    sqlite.do(f"PRAGMA encoding = '{encoding}'")
    sqlite.do(definition)
    if values:
        sqlite.do(f"INSERT INTO p VALUES ({values})")
    copied = read(sqlite.connector(table="p", binary="hex"))
    sqlite.do("PRAGMA journal_mode = WAL")  # it is then read in place
    assert copied == read(sqlite.connector(table="p", binary="hex"))
    assert len(copied) == bool(values) or "VIEW" in definition


def test_rows_with_gaps_and_negative_numbers_are_copied_in_ranges(sqlite: Any) -> None:
    fill(sqlite, "other", 2_000, 20_000)
    sqlite.do("CREATE TABLE p (id INTEGER PRIMARY KEY, v TEXT)")
    sqlite.do(f"INSERT INTO p {ROWS.format(5_000)} SELECT (i - 2500) * 3, 'v' || i FROM n")
    rows = read(sqlite.connector(table="p"))
    assert rows == [(str((i - 2500) * 3), f"v{i}") for i in range(1, 5_001)]
