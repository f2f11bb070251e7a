"""Finds the mirror's entries of given keys, and compares read entries with them."""

from __future__ import annotations

import json
import sqlite3

import polars as pl

from ingestd.core.deadband import is_within_band
from ingestd.mirror.sqlite.sql import SQL

_KNOWN = {
    "key": str,
    "old_value": str,
    "old_type": str,
    "segment": int,
    "removed": int,
    "partition": int,
    "old_run": int,
    "old_hash": int,
    "old_position": str,
    "kind": str,
    "last_read": str,
}


def known_entries(connection: sqlite3.Connection, sink: int, keys: list[str]) -> pl.DataFrame:
    """Return the mirror's rows of ``keys``, with the columns of ``_KNOWN``. ``kind`` is null if the entry is not pending."""
    rows = connection.execute(SQL["entries_of_keys"], (json.dumps(keys), sink)).fetchall()
    return pl.DataFrame(rows, schema=_KNOWN, orient="row")


def find_kept(connection: sqlite3.Connection, entries: pl.DataFrame, *, sink: int, partition: int) -> pl.DataFrame:
    """Return the ``entries`` without a value that the mirror has from another record of the partition.

    The result has the columns of ``_KNOWN``. ``moves``: positions are keys, and the other record has another position.
    """
    named = entries.filter(pl.col("value").is_null())
    known = known_entries(connection, sink, named["key"].to_list())
    has_keys = named["position"].dtype == pl.String  # and not row numbers
    moves = pl.col("old_position").ne_missing(pl.col("position")) if has_keys else pl.lit(value=False)
    joined = named.join(known, on="key", how="inner").with_columns(moves.alias("moves"))
    own = (pl.col("partition") == partition) & (pl.col("removed") == 0)
    return joined.filter(own & ((pl.col("old_hash") != pl.col("row_hash")) | pl.col("moves")))


def compare_with_known(connection: sqlite3.Connection, sink: int, joined: pl.DataFrame) -> pl.DataFrame:
    """Add two columns to ``joined``: entries that are joined with `known_entries`.

    ``equal``: the entry need not be sent. ``within``: the value of the entry, if it differs from the mirror's value but is
    within the dead-band; else null.
    """
    exists = (pl.col("partition").is_not_null() & (pl.col("removed") == 0)).fill_null(value=False)
    alike = (exists & (pl.col("old_type") == pl.col("data_type"))).fill_null(value=False)
    equal = (alike & (pl.col("old_value") == pl.col("value"))).fill_null(value=False)
    joined = joined.with_columns(equal.alias("equal"), pl.lit(None, dtype=pl.String).alias("within"))
    if "deadband" not in joined.columns:
        return joined
    near = {
        key: value
        for key, value, sent, band in joined.filter(alike & ~pl.col("equal") & pl.col("deadband").is_not_null())
        .select("key", "value", "old_value", "deadband")
        .iter_rows()
        if sent is not None and value is not None and is_within_band(sent, value, band)
    }
    if near and connection.execute(SQL["rejected_any_entry"], (sink,)).fetchone():
        # The service does not have the mirror's value of an entry that it rejected.
        for (key,) in connection.execute(SQL["rejected_entries_of_keys"], (sink, json.dumps(list(near)))):
            near.pop(key, None)
    if not near:
        return joined
    within = pl.col("key").replace_strict(near, default=None, return_dtype=pl.String)
    return joined.with_columns(within.alias("within")).with_columns(
        (pl.col("equal") | pl.col("within").is_not_null()).alias("equal")
    )
