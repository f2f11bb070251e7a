"""Rows of a statement as frames, in memory that does not grow with their number."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

PAGE = 10_000
"""Rows that are in memory at a time."""


def read_frames(cursor: sqlite3.Cursor, schema: Mapping[str, Any]) -> Iterator[pl.DataFrame]:
    """Yield the rows of a statement in frames of at most `PAGE` rows: a row as Python objects needs 200 bytes."""
    while rows := cursor.fetchmany(PAGE):
        yield pl.DataFrame(rows, schema=dict(schema), orient="row")
