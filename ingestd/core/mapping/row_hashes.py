"""Row hashes: hashes of the fields that a mapping uses, to compare a reading with the previous reading."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.metadata import version

import polars as pl

from ingestd.core.mapping.batch_rules import UsedNames
from ingestd.core.mapping.record_columns import column_expressions, list_column


def hash_rows(
    records: pl.DataFrame,
    used: UsedNames,
    facts: Mapping[str, str],
    *,
    lists: Collection[str],
    may_lack_columns: bool,
) -> pl.Series:
    """Return a 64-bit hash (``pl.UInt64``) of the used fields and facts of each record.

    ``lists``: the fields with lists. ``may_lack_columns``: batches of one partition may have different columns, so a column
    without a value must not change the hash.
    """
    if not records.height:
        return pl.Series("row_hash", [], dtype=pl.UInt64)
    columns = [
        list_column(records, name).alias(name) if name in lists else column
        for name, column in zip(used.fields, column_expressions(records, used.fields, facts), strict=True)
    ]
    constants = [pl.lit(facts.get(name), dtype=pl.String).alias(name) for name in used.facts]
    whole = constants if may_lack_columns else [*columns, *constants]
    hashed = pl.struct(whole or [pl.lit("").alias("\0")]).hash()
    if may_lack_columns:
        parts = [_hash_of_value(name, column) for name, column in zip(used.fields, columns, strict=True)]
        hashed = _combined([hashed, *parts])
    # A second column is selected, because polars returns one row if all expressions are literals, and because it runs a single
    # expression in another thread.
    return records.select_seq(pl.first().alias("\0"), hashed.alias("row_hash"))["row_hash"]


@cache
def polars_version() -> str:
    """Return the version of polars, which hashes the rows. Cached, because a file is parsed to find the version."""
    return version("polars")


def _hash_of_value(name: str, column: pl.Expr) -> pl.Expr:
    hashed = pl.struct(pl.lit(name).alias("name"), column.alias("value")).hash()
    return pl.when(column.is_not_null()).then(hashed).otherwise(pl.lit(0, dtype=pl.UInt64))


def _combined(hashes: Sequence[pl.Expr]) -> pl.Expr:
    """Return the exclusive or of all hashes, as a balanced tree: polars needs minutes for a chain of 5,000 columns."""
    if len(hashes) == 1:
        return hashes[0]
    middle = len(hashes) // 2
    return _combined(hashes[:middle]) ^ _combined(hashes[middle:])
