"""Sorts the entries of a batch by key, which is the order in which the mirror writes them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import polars as pl

from ingestd.core.record import Reject

_SMALL = 200
"""Up to this number of entries, plain Python is faster than a query of polars."""


def order_entries(entries: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return all entries sorted by key, and the entries to write: the last entry of each key, with signed row hashes.

    ``entries``: see `IntakeStore.commit`. If keys are equal, entries with a value are last.
    """
    if entries["value"].null_count():
        entries = pl.concat([entries.filter(pl.col("value").is_null()), entries.filter(pl.col("value").is_not_null())])
    ordered = sort_by_key(entries)
    unique = ordered
    if ordered["key"].n_unique() < ordered.height:
        unique = ordered.filter(pl.col("key").ne_missing(pl.col("key").shift(-1)))
    signed = unique["row_hash"].cast(pl.Int64, wrap_numerical=True)
    return ordered, unique.clone().replace_column(unique.get_column_index("row_hash"), signed)


def sort_by_key(entries: pl.DataFrame) -> pl.DataFrame:
    """Return entries sorted by key; entries with equal keys keep the order of their records."""
    if entries.height <= _SMALL:
        keys = entries["key"].to_list()
        if all(key <= following for key, following in pairwise(keys)):
            return entries
        order = sorted(range(len(keys)), key=keys.__getitem__)
        columns = [(column, column.to_list()) for column in entries.get_columns()]
        return pl.DataFrame(
            [pl.Series(column.name, [values[row] for row in order], dtype=column.dtype) for column, values in columns]
        )
    return entries.sort("key", maintain_order=True)


def last_row(entries: pl.DataFrame, rejects: Iterable[Reject]) -> int:
    """Return the highest row number of entries and rejected records; 0 if none of them has a row number."""
    numbers = [one.position for one in rejects if isinstance(one.position, int)]
    positions = entries["position"]
    if positions.dtype.is_integer() and positions.len() > positions.null_count():
        numbers.append(int(str(positions.max())))
    return max(numbers, default=0)
