"""Writes desired entries: new, changed and equal entries, and the owner of each key."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby, repeat

import msgspec
import polars as pl
from msgspec.structs import replace

from ingestd.mirror.port import Kind
from ingestd.mirror.reports import Ending
from ingestd.mirror.sqlite.entries.entry_rows import ROW_COLUMNS, write_rows
from ingestd.mirror.sqlite.entries.former_values import AT_MOST, KEPT, keep_former
from ingestd.mirror.sqlite.entries.known_entries import compare_with_known, find_kept, known_entries
from ingestd.mirror.sqlite.entries.ownership import Owners, owners_of
from ingestd.mirror.sqlite.entries.repeated_keys import RepeatedKeys
from ingestd.mirror.sqlite.entries.segments import leave, queue
from ingestd.mirror.sqlite.entries.shared_keys import (
    Name,
    add_names,
    by_reading,
    describe_conflicts,
    drop_conflicts,
    drop_names,
    keep_names,
    keys_lacking,
    names_of,
)
from ingestd.mirror.sqlite.entries.target import WriteTarget
from ingestd.mirror.sqlite.sql import SQL

ADOPTED = 0
"""The partition of entries that were found in the service and that no source has named yet."""


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """The result of writing some entries.

    ``replaced``: former row hashes of entries that now come from another record of the same partition. ``replaced_before``: the
    hashes in ``replaced`` that an earlier run has written. ``moved``: an entry of the partition now comes from a record with
    another key in the source. ``took_over``: the partition has taken over an entry of another partition. ``foreign``: pairs of
    key and pipeline, for entries that were not written because the pipeline is active and owns them.
    """

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    replaced: pl.Series = msgspec.field(default_factory=lambda: pl.Series("old_hash", [], dtype=pl.Int64))
    replaced_before: pl.Series = msgspec.field(default_factory=lambda: pl.Series("old_hash", [], dtype=pl.Int64))
    moved: bool = False
    took_over: bool = False
    foreign: tuple[tuple[str, str], ...] = ()

    @property
    def changed(self) -> int:
        """The number of entries that became pending."""
        return self.created + self.updated


def write_entries(
    target: WriteTarget,
    entries: pl.DataFrame,
    *,
    pipeline: str,
    ending: Ending = "replaced",
    repeated: RepeatedKeys | None = None,
    fresh: bool = False,
    dated: bool = False,
    succeeds: bool = False,
    ended_by: int | None = None,
) -> Written:
    """Write desired values: unique keys, sorted; columns key, value, data_type, row_hash (Int64), position.

    If there is a column ``deadband``, a value within this band around the mirror's value is not sent. The entry keeps its value,
    and ``last_read`` stores the new value.

    ``ending``: why values are replaced. ``dated``: equal entries get the new run and position, which then show the last record
    of the key. ``repeated`` notes the keys with different values. ``fresh``: the keys are probably new, so they are inserted
    without a search. ``succeeds``: the present owners no longer name the entries. ``ended_by``: the run that is stored as the
    end of former values; None: the target's run.
    """
    connection, sink, partition, run = target.connection, target.sink, target.partition, target.run
    inserted = fresh and _insert(target, entries)
    known = None if inserted else _known(connection, sink, entries)
    if known is None:
        if not inserted:
            _store(target, entries, "create")
        _resolve(target, entries)  # a key without a row may have a rejected removal
        return Written(created=entries.height)
    target.claimed.keep_unclaimed(_pending_segments(known))
    joined = entries.join(known, on="key", how="left", maintain_order="left")
    own = pl.col("partition") == partition
    exists = (pl.col("removed") == 0).fill_null(value=False)
    has_others = bool(known.filter((pl.col("removed") == 0) & (pl.col("partition") != partition)).height)
    others = joined.filter(exists & ~own) if has_others else joined.clear()
    owners = owners_of(connection, others, sink=sink, pipeline=pipeline, succeeds=succeeds)
    if owners.theirs.height:
        joined = joined.join(owners.theirs.select("key"), on="key", how="anti", maintain_order="left")
    joined = compare_with_known(connection, sink, joined)
    is_taken = exists & pl.col("partition").is_in(owners.unexplained)
    lacking: list[str] = []
    if owners.unexplained and (taken := joined.filter(is_taken & pl.col("equal"))["key"].to_list()):
        lacking = keys_lacking(connection, sink, taken)
        joined = joined.with_columns(pl.col("equal") & ~pl.col("key").is_in(lacking))
    same, changed = joined.filter("equal"), joined.filter(~pl.col("equal"))
    if repeated is not None:
        repeated.note_changed(connection, run, sink, changed.filter(exists))
    has_keys = joined["position"].dtype == pl.String  # and not row numbers
    moves = pl.col("old_position").ne_missing(pl.col("position")) if has_keys else pl.lit(value=False)
    touched = same.filter(own & ((pl.col("old_hash") != pl.col("row_hash")) | moves))
    _set_records(connection, sink, touched, same.filter(pl.col("last_read").ne_missing(pl.col("within"))))
    if not succeeds:
        _begin_again(connection, sink, owners.unexplained)
    named = None
    if has_others:
        named = _share(target, owners, same.filter(exists & ~own), changed.filter(exists & ~own))
    if has_others or dated:
        # If no source explained an equal entry, it now belongs to the source that names its key.
        _set_owner(target, same.filter(is_taken | (own & pl.lit(dated))))
    elsewhere = same.filter((pl.col("partition") != partition) & pl.col("kind").is_not_null())
    connection.executemany(
        SQL["wait_add"], [(partition, segment) for segment in elsewhere["segment"].unique().to_list()]
    )
    ended = changed.filter(pl.col("partition").is_not_null() & ~pl.col("key").is_in(lacking))["key"].to_list()
    keep_former(target if ended_by is None else replace(target, run=ended_by), ended, ending)
    _store_changed(target, changed)
    _resolve(target, changed)
    hashes = ["old_hash", "old_run", "row_hash"]
    of_partition = [one[hashes] for one in (touched, changed.filter(exists & own), named) if one is not None]
    replaced = pl.concat(of_partition).filter(pl.col("old_hash") != pl.col("row_hash"))
    created = changed.filter(pl.col("partition").is_null()).height
    return Written(
        created=created,
        updated=changed.height - created,
        unchanged=same.height,
        replaced=replaced["old_hash"],
        replaced_before=replaced.filter(pl.col("old_run") != run)["old_hash"],
        moved=bool(joined.filter(exists & own & moves).height or (named is not None and named.filter(moves).height)),
        took_over=has_others and bool(changed.filter(exists & ~own).height),
        foreign=owners.conflicts(),
    )


def keep_entries(target: WriteTarget, named: pl.DataFrame) -> Written:
    """Note that rejected records name entries: entries of the partition keep their values and now come from these records.

    If an entry belongs to another partition, the name that this partition has stored for the key now comes from these records.
    """
    connection, sink, partition = target.connection, target.sink, target.partition
    rejected = named.filter(pl.col("value").is_null())
    records = (rejected[name] for name in ("row_hash", "position"))
    rows = zip(*records, repeat(sink), rejected["key"], repeat(partition), strict=False)
    connection.executemany(SQL["also_named_set_record"], rows)
    kept = find_kept(connection, named, sink=sink, partition=partition)
    columns = (kept[name] for name in ("row_hash", "position"))
    connection.executemany(SQL["entries_set_record"], zip(*columns, repeat(sink), kept["key"], strict=False))
    replaced = kept.filter(pl.col("old_hash") != pl.col("row_hash"))
    return Written(
        replaced=replaced["old_hash"],
        replaced_before=replaced.filter(pl.col("old_run") != target.run)["old_hash"],
        moved=bool(kept["moves"].any()),
    )


class Removed(msgspec.Struct, frozen=True, kw_only=True):
    """The number of entries with a pending removal, and of entries that got the value of another partition."""

    removed: int
    updated: int


def remove_entries(
    target: WriteTarget, keys: list[str], *, any_partition: bool = False, ending: Ending = "removed"
) -> Removed:
    """Make the removal of those ``keys`` (sorted) pending that belong to the partition and that no other partition names.

    An entry that the service never had, because it has refused every value, is deleted with its rejection, and not counted.
    ``any_partition``: also remove keys of other partitions. ``ending``: why the values of the keys end.
    """
    known = known_entries(target.connection, target.sink, keys)
    target.claimed.keep_unclaimed(_pending_segments(known))
    if any_partition:
        _begin_again(target.connection, target.sink, set(known.filter(pl.col("removed") == 0)["partition"]))
    gone = (
        known.filter((pl.lit(any_partition) | (pl.col("partition") == target.partition)) & (pl.col("removed") == 0))
        .select(
            "key",
            pl.lit(None, dtype=pl.String).alias("value"),
            pl.col("old_type").alias("data_type"),
            pl.col("old_hash").alias("row_hash"),
            pl.lit(None, dtype=pl.Int64).alias("position"),
            pl.when(pl.col("kind").is_not_null()).then("segment").alias("segment"),
        )
        .sort("key")
    )
    passed, updated = pass_on(target, gone["key"].to_list())
    if passed:
        gone = gone.filter(~pl.col("key").is_in(passed))
    never_stored = _never_stored(target, gone.filter(pl.col("segment").is_null())["key"].to_list())
    keep_former(target, gone["key"].to_list(), ending)
    _store(target, gone.filter(~pl.col("key").is_in(never_stored)), "delete")
    target.connection.execute(SQL["entries_delete"], (target.sink, json.dumps(never_stored)))
    _resolve(target, gone)
    return Removed(removed=gone.height - len(never_stored), updated=updated)


def _never_stored(target: WriteTarget, keys: list[str]) -> list[str]:
    if not target.connection.execute(SQL["rejected_any_entry"], (target.sink,)).fetchone():
        return []
    listed = {"sink": target.sink, "keys": json.dumps(keys), "kept": KEPT, "at_most": AT_MOST}
    return [key for (key,) in target.connection.execute(SQL["keys_never_stored"], listed)]


def pass_on(target: WriteTarget, keys: Sequence[str]) -> tuple[list[str], int]:
    """Pass entries that their partition no longer names to other partitions that name them.

    ``keys``: the sorted keys of these entries. If the target's partition is `ADOPTED`, no source explains the entries.
    Partitions of the same pipeline precede other partitions; then the partition that was read last precedes. Return the keys
    that were passed, and the number of entries that became pending. A pipeline that is not configured now gets no entry; if it
    is configured again, its partitions are read from their start.
    """
    connection, sink, partition = target.connection, target.sink, target.partition
    names = names_of(connection, sink, keys, partition) if keys else []
    if not names:
        return [], 0
    chosen: dict[str, Name] = {}
    for name in names:
        if name.is_read and name.partition != partition:
            chosen.setdefault(name.key, name)
    unread = [name for name in names if name.key not in chosen]
    _begin_again(connection, sink, {name.partition for name in unread if name.partition != partition})
    for name, entries in by_reading([*chosen.values(), *unread]):
        drop_names(connection, sink, name.partition, entries["key"].to_list())
    # Partitions of one pipeline do not conflict.
    owned = [name for name in names if name.key in chosen and name.pipeline == chosen[name.key].pipeline]
    for name, entries in by_reading(owned):
        drop_conflicts(connection, sink, name.partition, entries["key"].to_list())
    updated = 0
    for name, entries in by_reading(list(chosen.values())):
        written = write_entries(
            replace(target, partition=name.partition, run=name.run),
            entries,
            pipeline=name.pipeline,
            succeeds=partition != ADOPTED,
            ended_by=target.run,
        )
        updated += written.changed
    describe_conflicts(connection, sink, sorted(chosen))
    return sorted(chosen), updated


def end_inactive_conflicts(connection: sqlite3.Connection) -> None:
    """Delete the conflicts of partitions that are not read now.

    If their pipeline is not configured, delete the names that they stored for these keys, too. A pipeline that reads another
    source may use the partition again, and some sources do not name the keys again.
    """
    found = connection.execute(SQL["conflicts_of_inactive"]).fetchall()
    for (sink, partition, is_active), rows in groupby(found, key=lambda row: row[:3]):
        keys = [key for *_, key in rows]
        (drop_conflicts if is_active else drop_names)(connection, sink, partition, keys)
        _begin_again(connection, sink, {partition})


def _begin_again(connection: sqlite3.Connection, sink: int, partitions: Iterable[int]) -> None:
    """Mark partitions that lost entries: if they are configured again, they are read from their start.

    Only a whole reading takes the entries back, because the records may be unchanged.
    """
    connection.executemany(SQL["partition_lost_entries"], [(partition, sink) for partition in sorted(partitions)])


def _insert(target: WriteTarget, entries: pl.DataFrame) -> bool:
    """Insert and queue entries. If the mirror already has one of the keys, change nothing and return False."""
    connection, location = target.connection, {"sink": target.sink, "partition": target.partition, "run": target.run}
    connection.execute("SAVEPOINT fresh")
    try:
        for segment, piece in queue(connection, **location, kind="create", entries=entries, over={}):
            write_rows(connection, piece, **location, segment=segment, removed=False, is_new=True)
    except sqlite3.IntegrityError:
        connection.execute("ROLLBACK TO fresh")
        connection.execute("RELEASE fresh")
        return False
    connection.execute("RELEASE fresh")
    return True


def _known(connection: sqlite3.Connection, sink: int, entries: pl.DataFrame) -> pl.DataFrame | None:
    """Return the mirror's rows of the keys; None if there are no rows. At a first load, one range query finds no row."""
    keys = entries["key"]
    if not connection.execute(SQL["keys_in_range"], (sink, keys[0], keys[-1])).fetchone():
        return None
    known = known_entries(connection, sink, keys.to_list())
    return known if known.height else None


def _pending_segments(known: pl.DataFrame) -> set[int]:
    kinds, segments = known["kind"].to_list(), known["segment"].to_list()
    return {segment for segment, kind in zip(segments, kinds, strict=True) if kind is not None}


def _share(target: WriteTarget, owners: Owners, same: pl.DataFrame, changed: pl.DataFrame) -> pl.DataFrame:
    """Store which partitions name the keys that more than one partition names.

    ``same``: equal entries of other owners; an owner keeps an entry that it still names. ``changed``: entries of other owners
    that the partition will own. Return the equal entries that the partition had already named; see `add_names`.
    """
    connection, sink, partition = target.connection, target.sink, target.partition
    named, left = pl.col("partition").is_in(owners.removes), pl.col("partition").is_in(owners.unexplained)
    if kept := changed.filter(named)["key"].to_list():
        keep_names(connection, sink, kept)
    if owned := [*kept, *same.filter(left)["key"], *changed.filter(left)["key"]]:
        drop_names(connection, sink, partition, owned)
    added = pl.concat([one.select(ROW_COLUMNS) for one in (owners.theirs, same.filter(named))])
    return add_names(connection, added, sink=sink, partition=partition, run=target.run)


def _set_records(connection: sqlite3.Connection, sink: int, touched: pl.DataFrame, reread: pl.DataFrame) -> None:
    """Store the new records of equal entries (``touched``), and the read values within the dead-band (``reread``)."""
    if touched.height:
        columns = (touched[name] for name in ("row_hash", "position"))
        connection.executemany(SQL["entries_set_record"], zip(*columns, repeat(sink), touched["key"], strict=False))
    connection.executemany(SQL["entries_set_read"], zip(reread["within"], repeat(sink), reread["key"], strict=False))


def _set_owner(target: WriteTarget, entries: pl.DataFrame) -> None:
    """Assign equal entries to the partition, the run and their records."""
    columns = (entries[name] for name in ("row_hash", "position"))
    fixed = (repeat(target.partition), repeat(target.run), repeat(target.sink))
    target.connection.executemany(SQL["entries_set_owner"], zip(*columns, *fixed, entries["key"], strict=False))


def _store_changed(target: WriteTarget, changed: pl.DataFrame) -> None:
    """Write and queue entries that must be sent; ``changed`` are joined with `known_entries`."""
    # A pending create remains a create. The service knows every other entry that has a row in the mirror.
    is_new = pl.col("partition").is_null() | (pl.col("kind") == "create").fill_null(value=False)
    pending = changed.with_columns(
        pl.when(pl.col("kind").is_not_null()).then("segment").alias("segment"), is_new.alias("new")
    )
    parts: dict[Kind, pl.DataFrame] = {"create": pending.filter("new"), "update": pending.filter(~pl.col("new"))}
    for kind, part in parts.items():
        if part.height:
            _store(target, part, kind)


def _store(target: WriteTarget, entries: pl.DataFrame, kind: Kind) -> None:
    """Write rows and queue them; remove pending entries from their older segments."""
    connection, location = target.connection, {"sink": target.sink, "partition": target.partition, "run": target.run}
    lost = Counter(entries["segment"].drop_nulls().to_list()) if "segment" in entries.columns else Counter[int]()
    over: dict[int, list[int]] = {}
    if lost:
        rows = connection.execute(SQL["segments_over"], (json.dumps(list(lost)),))
        for segment, text in rows:
            older = json.loads(text)
            # The oldest segment is kept, because a request with its entries may still take effect (`ClaimPart.oldest`).
            over[segment] = [one for one in older if one in target.claimed or one == min(older)]
    for segment, piece in queue(connection, **location, kind=kind, entries=entries, over=over):
        write_rows(connection, piece, **location, segment=segment, removed=kind == "delete", is_new=False)
    leave(connection, lost)


def _resolve(target: WriteTarget, changed: pl.DataFrame) -> None:
    """Delete the rejections of changed entries: the service has not seen their new values yet. Key conflicts remain."""
    if changed.height and target.connection.execute(SQL["rejected_any_entry"], (target.sink,)).fetchone():
        row = {"sink": target.sink, "partition": target.partition, "keys": json.dumps(changed["key"].to_list())}
        target.connection.execute(SQL["rejected_keys"], row)
