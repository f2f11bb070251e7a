"""The row hashes of a whole reading, to find entries without a record, in memory that does not grow with the entries."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

PAGE = 10_000
"""Entries that are compared at a time."""


class SeenHashes:
    """The row hashes of a reading (``pl.Int64``), sorted once."""

    def __init__(self, hashes: pl.Series) -> None:
        self._sorted = hashes.sort()

    def mask_absent(self, hashes: pl.Series) -> pl.Series:
        """Return a boolean mask over ``hashes``: True if the reading had no record with the hash."""
        if not self._sorted.len():
            return pl.Series([True]).new_from_index(0, hashes.len())
        # A search, because `is_in` would make a table of all hashes of the reading for each page.
        indexes = self._sorted.search_sorted(hashes).clip(0, self._sorted.len() - 1)
        return self._sorted.gather(indexes) != hashes


def read_frames(cursor: sqlite3.Cursor, schema: Mapping[str, Any]) -> Iterator[pl.DataFrame]:
    """Yield the rows of a statement in frames of at most `PAGE` rows: a row as Python objects needs 200 bytes."""
    while rows := cursor.fetchmany(PAGE):
        yield pl.DataFrame(rows, schema=dict(schema), orient="row")
