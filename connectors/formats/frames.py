"""Records as columns of text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import polars as pl


def rows_to_frame(rows: Sequence[Sequence[str | None]], names: Sequence[str]) -> pl.DataFrame:
    """Rows of fields, each as long as ``names``."""
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    # From a list, polars would give a name of its own to a field without one.
    return pl.DataFrame(
        {name: pl.Series(name, column, dtype=pl.String) for name, column in zip(names, columns, strict=True)}
    )


def field_names(records: Iterable[Mapping[str, str | None]]) -> Sequence[str]:
    """The names of all fields, in the order of their first appearance."""
    return tuple(dict.fromkeys(chain.from_iterable(records)))


def records_to_frame(records: Sequence[Mapping[str, str | None]], names: Sequence[str]) -> pl.DataFrame:
    """Records by name; a field that a record has not is null."""
    return pl.DataFrame(
        {name: pl.Series(name, [record.get(name) for record in records], dtype=pl.String) for name in names}
    )
