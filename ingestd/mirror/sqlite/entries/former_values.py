"""Former values of entries; see `ingestd.mirror.reports`.

A value is stored when it is overwritten or removed, in the same transaction. First loads and unchanged entries store nothing.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

import polars as pl

from ingestd.mirror.reports import Ending, FormerValue
from ingestd.mirror.sqlite.entries.target import WriteTarget
from ingestd.mirror.sqlite.rows import from_row
from ingestd.mirror.sqlite.sql import SQL

KEPT = 10
"""The number of newest former values of each entry that are all kept."""

MOST = 100
"""Maximum number of former values of each entry. Of values older than the newest `KEPT`, each hour keeps only its first."""

AT_MOST = 1_000_000
"""Maximum number of former values of all entries. The oldest values are deleted first, also values of removed entries."""


def keep_former(target: WriteTarget, keys: Sequence[str], ending: Ending) -> None:
    """Store the present values of ``keys`` (unique, sorted) before they change. Keys without an entry are ignored."""
    if not keys:
        return
    listed, claimed = json.dumps(list(keys)), json.dumps(list(target.claimed))
    row = {
        "sink": target.sink,
        "keys": listed,
        "claimed": claimed,
        "run": target.run,
        "at": target.at,
        "ending": ending,
    }
    target.connection.execute(SQL["former_keep"], row)
    _drop_beyond(target.connection, target.sink, listed)


def keep_found(
    connection: sqlite3.Connection, found: pl.DataFrame, *, sink: int, at: float, ending: Ending = "overwritten"
) -> None:
    """Store values of the service (unique key, value, data_type) that the daemon overwrites or removes.

    An optional column ``ended_by`` has the run of the value that overwrites the service's value.
    """
    if not found.height:
        return
    ended_by = pl.col("ended_by") if "ended_by" in found.columns else pl.lit(0)
    rows = found.select("key", "value", pl.col("data_type").fill_null(""), ended_by).iter_rows()
    connection.executemany(SQL["former_add_found"], ((sink, *row, at, by, ending) for *row, by in rows))
    _drop_beyond(connection, sink, json.dumps(found["key"].to_list()))


def read_former(connection: sqlite3.Connection, key: str) -> list[FormerValue]:
    """Return the former values of a key; see `Observer.former_values`."""
    return [from_row(FormerValue, row) for row in connection.execute(SQL["former_of_key"], (key,))]


def _drop_beyond(connection: sqlite3.Connection, sink: int, keys: str) -> None:
    connection.execute(SQL["former_drop_beyond"], {"sink": sink, "keys": keys, "kept": KEPT, "most": MOST})
    connection.execute(SQL["former_drop_oldest"], (AT_MOST,))
