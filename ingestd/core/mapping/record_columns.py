"""The columns of records that a mapping uses, as expressions and as texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import polars as pl

from ingestd.core.mapping.child_fields import OBJECT
from ingestd.core.mapping.column import column_named
from ingestd.core.mapping.rule_group import UNITS


def list_column(records: pl.DataFrame, name: str) -> pl.Expr:
    """Return a column with the texts of lists.

    If a record has an object instead of a list, the text is `OBJECT`; the fields of this object are separate columns.
    """
    column = column_named(name) if name in records.columns else pl.lit(None, dtype=pl.String)
    inner = [column_named(one).is_not_null() for one in records.columns if one.startswith(f"{name}.")]
    return pl.coalesce(column, pl.when(pl.any_horizontal(inner)).then(pl.lit(OBJECT))) if inner else column


def column_expressions(records: pl.DataFrame, names: Iterable[str], facts: Mapping[str, str]) -> list[pl.Expr]:
    """Return the named columns. A missing column contains the fact with its name, such as ``units.mass``, or null."""
    existing = set(records.columns)
    return [
        column_named(name) if name in existing else pl.lit(_missing_column(name, facts), dtype=pl.String).alias(name)
        for name in names
    ]


def column_texts(records: pl.DataFrame, names: Iterable[str], facts: Mapping[str, str]) -> Iterator[pl.Series]:
    """Yield the columns of `column_expressions`, without a query. For few records, a query takes longer than the mapping."""
    existing = set(records.columns)
    for name in names:
        if name in existing:
            yield records[name]
        else:
            missing = pl.Series(name, [_missing_column(name, facts)], dtype=pl.String)
            yield missing.new_from_index(0, records.height)


def missing_facts(height: int, names: Iterable[str], facts: Mapping[str, str]) -> Iterator[pl.Series]:
    """Yield a column of nulls for each optional fact that the source does not have."""
    for name in names:
        if name not in facts:
            yield pl.Series(name, [None], dtype=pl.String).new_from_index(0, height)


def _missing_column(name: str, facts: Mapping[str, str]) -> str | None:
    return facts.get(name) if name.startswith(UNITS) else None
