"""Keys that more than one partition names.

An entry has the value of one partition, which owns it. The table ``also_named`` has a value for each other partition that names
the key. Partitions of the same pipeline have rows only if vanished records are removed. A key that only one partition names has
no row. The functions run inside the transactions of their callers.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec
import polars as pl

from ingestd.core.record import Position
from ingestd.mirror.sqlite.entries.repeated_keys import describe_location
from ingestd.mirror.sqlite.sql import SQL

_NAMED = {"key": str, "value": str, "data_type": str, "row_hash": int, "position": None}
_FORMER = {"key": str, "old_hash": int, "old_run": int, "old_position": str}


class Name(msgspec.Struct, frozen=True, kw_only=True):
    """A value that a partition names for a key, and its record. ``is_read``: the partition is still read for the sink."""

    key: str
    value: str | None
    data_type: str
    row_hash: int
    position: Position | None
    partition: int
    run: int
    pipeline: str
    is_read: bool


def add_names(
    connection: sqlite3.Connection, entries: pl.DataFrame, *, sink: int, partition: int, run: int
) -> pl.DataFrame:
    """Store that the partition names these entries (key, value, data_type, row_hash (Int64), position) of other owners.

    Return the entries that the partition has named before, with the columns ``old_hash``, ``old_run`` and ``old_position``.
    """
    rows: list[tuple[object, ...]] = []
    if entries.height:
        parameters = {"keys": json.dumps(entries["key"].to_list()), "sink": sink, "partition": partition}
        rows = connection.execute(SQL["also_named_by_partition"], parameters).fetchall()
        connection.executemany(
            SQL["also_named_add"], ((sink, key, partition, run, *rest) for key, *rest in entries.iter_rows())
        )
    return entries.join(pl.DataFrame(rows, schema=_FORMER, orient="row"), on="key")


def keep_names(connection: sqlite3.Connection, sink: int, keys: Sequence[str]) -> None:
    """Store the present values of ``keys`` as names by their owners, before other partitions become the owners."""
    connection.execute(SQL["also_named_keep"], {"sink": sink, "keys": json.dumps(list(keys))})


def drop_names(connection: sqlite3.Connection, sink: int, partition: int, keys: Sequence[str]) -> None:
    """Delete a partition's names and conflicts for ``keys``, because it owns their entries now, or no longer names them."""
    connection.execute(SQL["also_named_drop"], (sink, partition, json.dumps(list(keys))))
    drop_conflicts(connection, sink, partition, keys)


def drop_conflicts(connection: sqlite3.Connection, sink: int, partition: int, keys: Sequence[str]) -> None:
    """Delete the conflicts of a partition about these keys."""
    connection.execute(SQL["rejected_conflicts_before"], (sink, partition, json.dumps(list(keys)))).fetchall()


def names_of(connection: sqlite3.Connection, sink: int, keys: Sequence[str], partition: int) -> list[Name]:
    """Return all names that partitions other than the owners have stored for the sorted ``keys``.

    The names are ordered by key. For each key, names by the pipeline of ``partition`` come first, then the newest names.
    """
    parameters = {"sink": sink, "keys": json.dumps(list(keys)), "partition": partition}
    rows = connection.execute(SQL["also_named_of_keys"], parameters)
    return [
        Name(
            key=key, value=value, data_type=data_type, row_hash=row_hash, position=position, partition=partition, run=run,
            pipeline=pipeline, is_read=bool(is_read),
        )
        for key, value, data_type, row_hash, position, partition, run, pipeline, is_read in rows
    ]  # fmt: skip


def by_reading(names: Sequence[Name]) -> Iterator[tuple[Name, pl.DataFrame]]:
    """Group names by partition and run. Yield the first name of each group, and the group as entries sorted by key."""

    def reading(name: Name) -> tuple[int, int]:
        return name.partition, name.run

    for _, group in groupby(sorted(names, key=lambda name: (*reading(name), name.key)), key=reading):
        found = list(group)
        rows = [(name.key, name.value, name.data_type, name.row_hash, name.position) for name in found]
        yield found[0], pl.DataFrame(rows, schema=_NAMED, orient="row", infer_schema_length=None)


def left_over_names(connection: sqlite3.Connection, *, sink: int, partition: int, run: int) -> list[str]:
    """Return the keys that a partition has named but a run, which is staged completely, does not produce."""
    parameters = {"sink": sink, "partition": partition, "run": run}
    return sorted(key for (key,) in connection.execute(SQL["also_named_left_over"], parameters))


def freed_keys(connection: sqlite3.Connection) -> Iterator[tuple[int, list[str]]]:
    """Yield, by sink, the sorted keys with an entry that no source explains, although another partition names the key."""
    yield from _by_sink(connection.execute(SQL["also_named_freed"]).fetchall())


def keys_in_conflict(connection: sqlite3.Connection) -> Iterator[tuple[int, list[str]]]:
    """Yield, by sink, the sorted keys with conflicts."""
    yield from _by_sink(connection.execute(SQL["conflicts_all"]).fetchall())


def describe_conflicts(connection: sqlite3.Connection, sink: int, keys: Sequence[str]) -> None:
    """Rewrite the sentences of the conflicts about ``keys``, after another partition owns a key or a pipeline was renamed."""
    listed = json.dumps(list(keys))
    conflicts = connection.execute(SQL["conflicts_of_keys"], {"sink": sink, "keys": listed}).fetchall()
    if not conflicts:
        return
    owners = {key: rest for key, *rest in connection.execute(SQL["entry_locations"], (listed, sink))}
    partitions = {row[0] for row in conflicts} | {partition for partition, _ in owners.values()}
    known = {
        partition: (pipeline, name)
        for partition, pipeline, _, name in connection.execute(SQL["partition_owners"], (json.dumps([*partitions]),))
    }
    for partition, pipeline, key, position in conflicts:
        owner, at = owners.get(key, (None, None))
        if owner in known:
            sentence = conflict_sentence(
                key,
                (known[owner][0], describe_location(known[owner][1], at)),
                (pipeline, describe_location(known[partition][1], position)),
            )
            connection.execute(SQL["conflict_describe"], (sentence, sink, partition, key))


def keys_lacking(connection: sqlite3.Connection, sink: int, keys: Sequence[str]) -> list[str]:
    """Return the ``keys`` that the service lacks: it refused the value, or another program removed the entry."""
    parameters = {"sink": sink, "keys": json.dumps(list(keys))}
    return [key for (key,) in connection.execute(SQL["keys_lacking"], parameters)]


def _by_sink(rows: list[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    for sink, group in groupby(rows, key=lambda row: row[0]):
        yield sink, [key for _, key in group]


def conflict_sentence(key: str, owner: tuple[str, str], other: tuple[str, str]) -> str:
    """Return the reason of a conflict. ``owner`` and ``other``: a pipeline, and the location of its record."""
    return (
        f"Pipelines '{owner[0]}' and '{other[0]}' both write the key '{key}' of this sink: '{owner[0]}' at {owner[1]}, "
        f"'{other[0]}' at {other[1]}. The value of '{owner[0]}' is kept. Give one of the pipelines another key or sink."
    )
