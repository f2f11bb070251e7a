"""The effect of a staged run on the mirror's entries, before it is written."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

import msgspec
import polars as pl
from msgspec.structs import replace

from ingestd.core.guard import EXAMPLES, Example, Guard, RunEffect, may_hold
from ingestd.core.unit_factors import as_numbers, find_near_factors
from ingestd.mirror.port import Removal
from ingestd.mirror.row_hashes import RowHashes
from ingestd.mirror.sqlite.entries.frames import read_frames
from ingestd.mirror.sqlite.entries.known_entries import compare_with_known, find_kept, known_entries
from ingestd.mirror.sqlite.runs.run_writer import RunState
from ingestd.mirror.sqlite.sql import SQL

PAGE = 10_000
"""Maximum number of entries in one transaction, which takes some tenths of a second."""

_COMPARED = 500_000
"""The number of former hashes that are compared with the hashes of the reading at once."""

STAGED = {
    "key": str,
    "value": str,
    "data_type": str,
    "row_hash": int,
    "position": None,
    "deadband": str,
}
"""The columns of ``staging_read``."""

_UNSTAGED = {"key": str, "row_hash": int}
_VALUES = {"value": str}
"""The column of ``entries_before``."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of a run. ``collides``: the differences of the run do not show which record owns a key."""

    effect: RunEffect
    collides: bool


class ChangeTally:
    """Counts changes of entries, and keeps the first examples of each kind; see `RunEffect`."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.near: Counter[str] = Counter()
        self.examples: defaultdict[str, list[Example]] = defaultdict(list)

    def add_updates(self, updated: pl.DataFrame) -> None:
        """Add entries that get another value; columns: key, value, data_type, old_value, old_type."""
        retyped = updated.filter(pl.col("old_type") != pl.col("data_type"))
        self.counts["updated"] += updated.height
        self.counts["retyped"] += retyped.height
        self._show("changed", updated)
        self._show("retyped", retyped)
        ratios = as_numbers(updated["value"]) / as_numbers(updated["old_value"])
        self.counts["renumbered"] += ratios.len() - ratios.null_count()
        for factor, mask in find_near_factors(ratios).items():
            self.near[factor] += int(mask.sum())
            self._show(factor, updated.filter(mask))

    def add_removals(self, reader: sqlite3.Connection, sink: int, keys: pl.Series) -> None:
        """Add entries that the run removes."""
        self.counts["removed"] += keys.len()
        if missing := keys.head(EXAMPLES - len(self.examples["removed"])).to_list():
            none = pl.lit(None, dtype=pl.String)
            known = known_entries(reader, sink, missing)
            self._show("removed", known.with_columns(none.alias("value"), none.alias("data_type")))

    def effect(self, *, before: int, numeric: int, created: int, empty: bool = False) -> RunEffect:
        """Return the effect of the added changes."""
        return RunEffect(
            before=before,
            created=created,
            updated=self.counts["updated"],
            removed=self.counts["removed"],
            retyped=self.counts["retyped"],
            numeric=numeric,
            renumbered=self.counts["renumbered"],
            near=dict(self.near),
            empty=empty,
            examples={kind: tuple(shown) for kind, shown in self.examples.items()},
        )

    def _show(self, kind: str, entries: pl.DataFrame) -> None:
        first = entries.head(EXAMPLES - len(self.examples[kind]))
        columns = ("key", "old_value", "old_type", "value", "data_type")
        self.examples[kind] += [
            Example(key=key, old=old, old_type=old_type, new=new, new_type=new_type)
            for key, old, old_type, new, new_type in first.select(columns).iter_rows()
        ]


def measure_effect(
    reader: sqlite3.Connection,
    run: RunState,
    guard: Guard,
    *,
    seen: RowHashes | None,
    deletes: Removal,
    unnamed: Iterable[str] = (),
) -> Measured:
    """Compare the staged entries of a run with the mirror, in pages.

    ``seen``: the row hashes of a whole reading. ``unnamed``: the keys that a partial reading removes. ``before`` and
    ``numeric`` of the effect need all entries; they are 0 if the decision of ``guard`` does not depend on them.
    """
    tally, created, collides, after = ChangeTally(), 0, False, ""
    former = _FormerHashes(seen) if seen is not None else None
    while rows := reader.execute(SQL["staging_read"], (run.id, after, PAGE)).fetchall():
        after = rows[-1][0]
        page = pl.DataFrame(rows, schema=STAGED, orient="row", infer_schema_length=None)
        if former is not None and not collides:
            collides = former.add(find_kept(reader, page, sink=run.sink, partition=run.partition)["old_hash"])
        page = page.filter(pl.col("value").is_not_null())
        joined = page.join(
            known_entries(reader, run.sink, page["key"].to_list()), on="key", how="left", maintain_order="left"
        )
        exists = pl.col("partition").is_not_null() & (pl.col("removed") == 0)
        joined = compare_with_known(reader, run.sink, joined)
        updated = joined.filter(exists & ~pl.col("equal"))
        created += joined.filter(~exists.fill_null(value=False)).height
        tally.add_updates(updated)
        own = pl.col("partition") == run.partition
        collides = collides or bool(updated.filter(~own).height)
        if former is not None and not collides:
            other_record = joined.filter(exists & own & (pl.col("old_hash") != pl.col("row_hash")))
            collides = former.add(other_record["old_hash"])
    collides = collides or (former is not None and former.are_read())
    if seen is not None and deletes == "remove":
        _add_removals(reader, run, seen, tally)
    tally.add_removals(reader, run.sink, pl.Series(unnamed, dtype=pl.String))
    effect = tally.effect(before=0, numeric=0, created=created, empty=seen is not None and not seen.count)
    if may_hold(guard, effect):
        effect = _with_totals(reader, run, effect)
    return Measured(effect=effect, collides=collides and not run.whole)


class _FormerHashes:
    """Collects the row hashes of former records of entries, to find out whether the reading still has one of the records."""

    def __init__(self, seen: RowHashes) -> None:
        self._seen = seen
        self._parts: list[pl.Series] = []
        self._count = 0
        self._is_any_read = False

    def add(self, hashes: pl.Series) -> bool:
        """Add hashes of former records. Return True if a comparison has already found one of the records in the reading."""
        self._parts.append(hashes)
        self._count += hashes.len()
        if self._count >= _COMPARED:
            self.are_read()
        return self._is_any_read

    def are_read(self) -> bool:
        """Return True if the reading has one of the records."""
        if self._count and not self._is_any_read:
            self._is_any_read = self._seen.has_any_of(pl.concat(self._parts))
        self._parts, self._count = [], 0
        return self._is_any_read


def _add_removals(reader: sqlite3.Connection, run: RunState, seen: RowHashes, tally: ChangeTally) -> None:
    is_every = run.remapped and run.whole
    for keys in unnamed_keys(reader, seen, sink=run.sink, partition=run.partition, run=run.id, is_every=is_every):
        tally.add_removals(reader, run.sink, keys)


def unnamed_keys(
    reader: sqlite3.Connection, seen: RowHashes, *, sink: int, partition: int, run: int, is_every: bool
) -> Iterator[pl.Series]:
    """Yield the keys of entries that a run has not staged and that no record of its reading names, in pages.

    ``seen``: the row hashes of the reading. ``is_every``: every entry that is not staged, because the mapping has changed.
    """
    for part in seen.ranges():
        parameters = {"sink": sink, "partition": partition, "run": run, **part.parameters}
        for frame in read_frames(reader.execute(SQL["entries_unstaged"], parameters), _UNSTAGED):
            yield (frame if is_every else frame.filter(part.mask_absent(frame["row_hash"])))["key"]


def _with_totals(reader: sqlite3.Connection, run: RunState, effect: RunEffect) -> RunEffect:
    """Return the effect with its totals before the run: the number of entries, and of entries with a numeric value."""
    parameters = {"sink": run.sink, "partition": run.partition, "run": run.id}
    before = numeric = 0
    for frame in read_frames(reader.execute(SQL["entries_before"], parameters), _VALUES):
        numbers = as_numbers(frame["value"])
        before, numeric = before + numbers.len(), numeric + numbers.len() - numbers.null_count()
    return replace(effect, before=before, numeric=numeric)
