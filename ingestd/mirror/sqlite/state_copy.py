"""Two private copies of a state file. A reading is written to one copy. The difference between both copies is the plan."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from shutil import copyfile
from typing import Any, Literal, TypeAlias

import msgspec
import polars as pl

from ingestd.core.clock import Now
from ingestd.core.record import Position
from ingestd.mirror.port import HeldRun
from ingestd.mirror.reports import PipelinePause
from ingestd.mirror.row_hashes import RowHashes
from ingestd.mirror.sqlite.entries.claimed_segments import ClaimedSegments
from ingestd.mirror.sqlite.entries.known_entries import compare_with_known, known_entries
from ingestd.mirror.sqlite.entries.segments import keys_of
from ingestd.mirror.sqlite.entries.snapshots import load_held_snapshot
from ingestd.mirror.sqlite.rows import from_row
from ingestd.mirror.sqlite.runs.held_runs import held_run
from ingestd.mirror.sqlite.runs.intake_store import IntakeStore
from ingestd.mirror.sqlite.runs.run_effect import PAGE, unnamed_keys
from ingestd.mirror.sqlite.sql import SQL
from ingestd.mirror.sqlite.state_file.connection import StateFile, copy_unlocked
from ingestd.mirror.sqlite.state_file.failures import unopenable

ChangeKind: TypeAlias = Literal["created", "changed", "removed"]


class EntryDifference(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that a reading changes. ``partition``: the id of the partition that names the entry, or named it before.

    ``old`` is None for a new entry, ``new`` for a removed entry. ``position``: the position of the record of the new value.
    """

    partition: int
    kind: ChangeKind
    key: str
    old: str | None = None
    old_type: str | None = None
    new: str | None = None
    new_type: str | None = None
    position: Position | None = None


class StateVersion(msgspec.Struct, frozen=True, kw_only=True):
    """The version of a state file, which a plan depends on.

    ``changes``: by pipeline, the number of commits that changed its entries. ``pending``: a digest of the pending entries.
    """

    changes: dict[str, int]
    pending: str


class CopiedSink(msgspec.Struct, frozen=True, kw_only=True):
    """A sink in the original state file. ``adopted``: the file knows its content. ``pending``: number of pending entries."""

    id: int
    name: str
    adopted: bool
    pending: int


class CopiedPartition(msgspec.Struct, frozen=True, kw_only=True):
    """The names of a partition, of its pipeline and of its sink. ``entries``: the number of its entries after the reading."""

    pipeline: str
    name: str
    sink: str
    entries: int


_STAGED = dict.fromkeys(("key", "value", "data_type", "deadband"), str)


class StateCopy:
    """The two copies, in a ``folder`` that only this process uses. ``intake`` writes to the copy at ``path``.

    Other processes may use the original. Only one thread at a time may call the methods; call `close` at the end.
    """

    def __init__(self, original: StateFile | Path, folder: Path, *, now: Now) -> None:
        """Copy a state file; a path may name a file that does not exist yet.

        Raises:
            MirrorNewer, MirrorCorrupt, MirrorFull, MirrorError: see `StateFile`.
        """
        self.path = folder / "after.db"
        untouched = folder / "before.db"
        os.close(os.open(untouched, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        if isinstance(original, StateFile):
            original.copy_to(untouched)
        else:
            copy_unlocked(original, untouched)
        StateFile(untouched).close()  # creates or migrates the tables
        try:
            copyfile(untouched, self.path)
        except OSError as error:
            raise unopenable(error, self.path) from error
        self._state = StateFile(self.path)
        self._before = sqlite3.connect(f"file:{untouched}?mode=ro", uri=True, check_same_thread=False)
        self._newest: int = self._before.execute(SQL["newest_segment"]).fetchone()[0]
        self._first_run: int = self._before.execute(SQL["planned_newest_run"]).fetchone()[0] + 1
        self.intake = IntakeStore(
            self._state, now=now, claimed_segments=ClaimedSegments(), opened=set(), announce=lambda _: None
        )

    def sinks(self) -> list[CopiedSink]:
        """Return the sinks of the original."""
        return [
            CopiedSink(id=identity, name=f"{name} in {workspace}", adopted=bool(adopted), pending=pending)
            for identity, workspace, _, name, _, _, adopted, pending in self._before.execute(SQL["lanes"]).fetchall()
        ]

    def pauses(self) -> list[PipelinePause]:
        """Return the paused pipelines of the original."""
        return [from_row(PipelinePause, row) for row in self._before.execute(SQL["pauses"])]

    def unexplained(self, sink: int, *, every: bool) -> int:
        """Return the number of unexplained entries that a drift check of the sink would remove after the reading.

        Reads all entries of the sink. ``every``: also count entries that no configured pipeline has written.
        """
        with closing(self._state.reader()) as reader:
            count: int = reader.execute(SQL["planned_unexplained"], {"sink": sink, "all": every}).fetchone()[0]
        return count

    def version(self) -> StateVersion:
        """Return the version of the original."""
        pending = hashlib.sha256()
        for row in self._before.execute(SQL["planned_pending"]):
            pending.update(repr(row).encode())
        changes = dict(self._before.execute(SQL["planned_pipelines"]).fetchall())
        return StateVersion(changes=changes, pending=pending.hexdigest())

    def changes(self) -> Iterator[EntryDifference]:
        """Yield the entries that the reading changed, reading one segment at a time."""
        after = self._newest
        with closing(self._state.reader()) as reader:
            while (row := reader.execute(SQL["planned_segment"], (after,)).fetchone()) is not None:
                after, sink, body = row
                keys = keys_of(body)
                known = _known(self._before, sink, keys)
                parameters = (sink, json.dumps(keys), json.dumps([after]))
                for key, value, data_type, partition, _, _, position, removed in reader.execute(
                    SQL["entries_origin"], parameters
                ).fetchall():
                    wanted = None if removed else (value, data_type)
                    yield from _change(key, known.get(key), wanted, partition=partition, position=position)

    def held_changes(self, run: int) -> Iterator[EntryDifference]:
        """Yield the entries that a held run would change, reading one page at a time."""
        after = ""
        with closing(self._state.reader()) as reader:
            partition, _, sink, _, deletes, whole, _, remapped, *_ = reader.execute(
                SQL["held_context"], (run,)
            ).fetchone()
            while rows := reader.execute(SQL["staging_read"], (run, after, PAGE)).fetchall():
                after = rows[-1][0]
                known = known_entries(reader, sink, [row[0] for row in rows])
                former = {row[0]: row for row in known.iter_rows()}
                # If the run has no value for an entry, the entry keeps its present value.
                rows = [row for row in rows if row[1] is not None]
                staged = pl.DataFrame([(*row[:3], row[5]) for row in rows], schema=_STAGED, orient="row")
                compared = compare_with_known(reader, sink, staged.join(known, on="key", how="left"))
                kept = set(compared.filter("equal")["key"])  # equal, or within the dead-band
                for key, value, data_type, _, position, _ in rows:
                    if key not in kept:
                        yield from _change(
                            key, former.get(key), (value, data_type), partition=partition, position=position
                        )
            if deletes != "remove":
                return
            seen, is_every = RowHashes.of(load_held_snapshot(reader, run)), remapped and whole
            for keys in unnamed_keys(reader, seen, sink=sink, partition=partition, run=run, is_every=is_every):
                for key, present in _known(reader, sink, keys.to_list()).items():
                    yield from _change(key, present, None, partition=partition, position=None)

    def partition(self, partition: int) -> CopiedPartition:
        """Return the names of a partition and the number of its entries after the reading."""
        with closing(self._state.reader()) as reader:
            pipeline, name, workspace, sink, sink_id = reader.execute(SQL["planned_partition"], (partition,)).fetchone()
            entries = reader.execute(SQL["planned_entries"], (sink_id, partition)).fetchone()[0]
        return CopiedPartition(pipeline=pipeline, name=name, sink=f"{sink} in {workspace}", entries=entries)

    def rejections(self, partition: int, *, limit: int) -> list[tuple[Position | None, str]]:
        """Return position and reason of the first records of a partition that the reading rejected."""
        with closing(self._state.reader()) as reader:
            return reader.execute(SQL["planned_rejections"], (partition, self._first_run, limit)).fetchall()

    def held(self) -> list[tuple[int, HeldRun]]:
        """Return the runs that are held after the reading, each with its partition's id; also runs of earlier readings."""
        with closing(self._state.reader()) as reader:
            runs = [held_run(row) for row in reader.execute(SQL["held_list"]).fetchall()]
            return [(reader.execute(SQL["held_context"], (one.run,)).fetchone()[0], one) for one in runs]

    def close(self) -> None:
        """Close both copies. The owner of the folder deletes it."""
        self._before.close()
        self._state.close()


def _known(connection: sqlite3.Connection, sink: int, keys: list[str]) -> dict[str, tuple[Any, ...]]:
    return {row[0]: row for row in known_entries(connection, sink, keys).iter_rows()}


def _change(
    key: str,
    known: tuple[Any, ...] | None,
    wanted: tuple[str | None, str] | None,
    *,
    partition: int,
    position: Position | None,
) -> Iterator[EntryDifference]:
    """Yield the change from ``known`` (a row of `known_entries`) to ``wanted`` (value and type), unless both are equal."""
    former = (known[1], known[2]) if known is not None and not known[4] else None
    if former == wanted:
        return
    kind: ChangeKind = "created" if former is None else "removed" if wanted is None else "changed"
    old, old_type = former or (None, None)
    new, new_type = wanted or (None, None)
    yield EntryDifference(
        partition=partition,
        kind=kind,
        key=key,
        old=old,
        old_type=old_type,
        new=new,
        new_type=new_type,
        position=position,
    )
