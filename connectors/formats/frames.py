"""Data frames: records as columns of text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import polars as pl


def rows_to_frame(rows: Sequence[Sequence[str | None]], names: Sequence[str]) -> pl.DataFrame:
    """Return rows of fields as a frame; each row is as long as ``names``."""
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    # In a frame made from a list of columns, polars would give a column with an empty name another name.
    return pl.DataFrame(
        {name: pl.Series(name, column, dtype=pl.String) for name, column in zip(names, columns, strict=True)}
    )


def field_names(records: Iterable[Mapping[str, str | None]]) -> Sequence[str]:
    """Return the names of all fields, in the order of their first occurrence."""
    return tuple(dict.fromkeys(chain.from_iterable(records)))


def records_to_frame(records: Sequence[Mapping[str, str | None]], names: Sequence[str]) -> pl.DataFrame:
    """Return records as a frame; a field that a record lacks is null."""
    return pl.DataFrame(
        {name: pl.Series(name, [record.get(name) for record in records], dtype=pl.String) for name in names}
    )
