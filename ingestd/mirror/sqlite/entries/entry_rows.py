"""Writes rows of the table of entries, many in one statement."""

from __future__ import annotations

import sqlite3
from itertools import chain, islice

import polars as pl

from ingestd.mirror.sqlite.sql import SQL

ROW_COLUMNS = ("key", "value", "data_type", "row_hash", "position")

_ROWS = 100
"""Number of rows in one statement; according to measurements, more rows are not faster (decision record 0026)."""

_ROW = "(?1, ?2, ?3, ?4, ?5, ?, ?, ?, ?, ?)"
_INSERT, _WRITE = (
    (SQL[name], SQL[name].replace(_ROW, ", ".join([_ROW] * _ROWS))) for name in ("entries_insert", "entries_write")
)


def write_rows(
    connection: sqlite3.Connection,
    entries: pl.DataFrame,
    *,
    sink: int,
    segment: int,
    removed: bool,
    partition: int,
    run: int,
    is_new: bool = False,
) -> None:
    """Insert or replace rows: key, value, data_type, row_hash (Int64), position. ``is_new``: insert only.

    Raises:
        sqlite3.IntegrityError: a key that should be new has a row.
    """
    columns = [entries[name].to_list() for name in ROW_COLUMNS]
    fixed = (sink, segment, int(removed), partition, run)
    one, many = _INSERT if is_new else _WRITE
    whole = entries.height - entries.height % _ROWS
    values = chain.from_iterable(zip(*columns, strict=False))
    for _ in range(0, whole, _ROWS):
        connection.execute(many, [*fixed, *islice(values, _ROWS * len(columns))])
    connection.executemany(one, [fixed + row for row in zip(*(column[whole:] for column in columns), strict=False)])
