"""Keys that a reading names with different values. Two values of the first such key are kept with their locations.

All records of one reading are compared with each other. Records of one commit are compared in memory; earlier records are in
the staging table or in the entries. Records are also compared with entries of other partitions that the source still has.
"""

from __future__ import annotations

import json
import sqlite3

import msgspec
import polars as pl

from ingestd.core.record import NOTICE, Position, location_text
from ingestd.mirror.sqlite.sql import SQL

_COUNTED = 1000
"""Maximum number of keys that are counted, so that a file with only repeated keys needs little memory."""


class _Version(msgspec.Struct, frozen=True, kw_only=True):
    """A value of a key.

    ``partition``: the name of the other partition from which it comes; empty: the partition that is read.
    """

    value: str | None
    data_type: str
    position: Position | None
    partition: str = ""


class RepeatedKeys(msgspec.Struct):
    """The keys with different values in a reading of a partition. The sentence names the first such key."""

    partition: int
    _keys: set[str] = msgspec.field(default_factory=set)
    _first: tuple[str, _Version, _Version] | None = None

    def __bool__(self) -> bool:
        return self._first is not None

    def note_commit(self, ordered: pl.DataFrame) -> None:
        """Compare the entries of one commit. They are ``ordered`` by key, and equal keys by the order of the records."""
        ordered = ordered.filter(pl.col("value").is_not_null())
        former = {name: pl.col(name).shift(1) for name in ("key", "value", "data_type", "position")}
        differs = pl.col("value").ne_missing(former["value"]) | pl.col("data_type").ne_missing(former["data_type"])
        renamed = [former[name].alias(f"former_{name}") for name in ("value", "data_type", "position")]
        found = ordered.with_columns(renamed).filter((pl.col("key") == former["key"]) & differs)
        for key, *versions in found.select(
            "key", "former_value", "former_data_type", "former_position", "value", "data_type", "position"
        ).iter_rows():
            self._note(key, _version(versions[:3]), _version(versions[3:]))

    def note_staged(self, connection: sqlite3.Connection, run: int, entries: pl.DataFrame) -> None:
        """Compare entries (unique keys) with entries that the run has staged before."""
        entries = entries.filter(pl.col("value").is_not_null())
        rows = connection.execute(SQL["staging_of_keys"], (json.dumps(entries["key"].to_list()), run)).fetchall()
        staged = {key: _version(version) for key, *version in rows}
        columns = entries.filter(pl.col("key").is_in(list(staged))) if staged else entries.clear()
        for key, *version in columns.select("key", "value", "data_type", "position").iter_rows():
            self._note(key, staged[key], _version(version))

    def note_changed(self, connection: sqlite3.Connection, run: int, sink: int, changed: pl.DataFrame) -> None:
        """Compare changed entries with the rows that they will replace.

        ``changed``: existing entries with their new values, and the columns ``partition`` and ``old_run`` of the rows. Only
        values of this run, and of partitions that the pipeline's source still has, count as different values of a key.
        """
        others = changed.filter(pl.col("partition") != self.partition)["partition"].unique().to_list()
        present = {}
        if others:
            present = dict(
                connection.execute(SQL["partitions_present"], (self.partition, json.dumps(others))).fetchall()
            )
        own = (pl.col("partition") == self.partition) & (pl.col("old_run") == run)
        found = changed.filter(own | pl.col("partition").is_in(list(present)))
        for key, partition, *version in found.select("key", "partition", "value", "data_type", "position").iter_rows():
            if self._is_reported(key):
                value, data_type, position = connection.execute(SQL["entry_location"], (sink, key)).fetchone()
                former = _Version(
                    value=value, data_type=data_type, position=position, partition=present.get(partition, "")
                )
                self._note(key, former, _version(version))
            else:
                self._count(key)

    def store_notice(self, connection: sqlite3.Connection, run: int) -> None:
        """Add the sentence to the notice of the run."""
        if self:
            ((_, _, _, name),) = connection.execute(SQL["partition_owners"], (json.dumps([self.partition]),))
            row = {"run": run, "path": f'$."{NOTICE}"', "sentence": self.sentence(name)}
            connection.execute(SQL["run_add_notice"], row)

    def sentence(self, partition: str) -> str:
        """Return a sentence about one key with both locations; empty if no key has different values.

        ``partition``: the name of the partition that is read.
        """
        if self._first is None:
            return ""
        key, former, last = self._first
        count = len(self._keys) - 1
        number = f"More than {count - 1}" if count == _COUNTED else str(count)
        others = f" {number} other key{' is' if count == 1 else 's are'} repeated, too." if count else ""
        typed = former.value == last.value
        return (
            f"'{key}' has different {'types' if typed else 'values'}: {_described(former, partition, typed=typed)} "
            f"and {_described(last, partition, typed=typed)}; the last one is delivered.{others}"
        )

    def _is_reported(self, key: str) -> bool:
        return self._first is None or self._first[0] == key

    def _count(self, key: str) -> None:
        if len(self._keys) <= _COUNTED:
            self._keys.add(key)

    def _note(self, key: str, former: _Version, last: _Version) -> None:
        if (former.value, former.data_type) == (last.value, last.data_type):
            return
        if self._is_reported(key):
            self._first = (key, former, last)
        self._count(key)


def describe_location(partition: str, position: Position | None) -> str:
    """Return the location of a record for people."""
    return f"{partition}, {'an unknown row' if position is None else location_text(position)}"


def _version(columns: list[object] | tuple[object, ...]) -> _Version:
    value, data_type, position = columns
    return _Version(value=value, data_type=data_type, position=position)  # type: ignore[arg-type]


def _described(version: _Version, partition: str, *, typed: bool) -> str:
    suffix = f" ({version.data_type})" if typed else ""
    return f"'{version.value}'{suffix} at {describe_location(version.partition or partition, version.position)}"
