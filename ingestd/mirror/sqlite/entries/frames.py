"""Rows of a statement as polars frames of a bounded size."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

PAGE = 10_000
"""Maximum number of rows in one frame."""


def read_frames(cursor: sqlite3.Cursor, schema: Mapping[str, Any]) -> Iterator[pl.DataFrame]:
    """Yield the rows of a statement in frames of at most `PAGE` rows, because a row needs 200 bytes as Python objects."""
    while rows := cursor.fetchmany(PAGE):
        yield pl.DataFrame(rows, schema=dict(schema), orient="row")
