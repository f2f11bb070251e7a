"""What a rollback does with each key: which value the key had before the runs, and whether it still has theirs.

The former values of a key are a chain: each was ended by the run that gave the next one. The newest `KEPT` of them have no gap.
The oldest one is deleted only beyond the limits of a key or of the state file.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator
from typing import Literal, TypeAlias

import msgspec

from ingestd.core.errors import NotRolledBack
from ingestd.core.record import Position
from ingestd.mirror.rollback import LeftKey, Rollback, RunSelection, UndoneKey, UndoneRun
from ingestd.mirror.sqlite.entries.former_values import AT_MOST, KEPT, MOST
from ingestd.mirror.sqlite.rows import from_row
from ingestd.mirror.sqlite.runs.run_effect import PAGE
from ingestd.mirror.sqlite.sql import SQL

Undoing: TypeAlias = Literal["restore", "remove", "create"]

_SHOWN = 20
"""Keys that a plan shows: the first of those that change, and of those that are left."""


class SelectedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is rolled back, with its partition. ``is_gone``: the source no longer has the partition."""

    run: int
    pipeline: str
    name: str
    started: float
    partition: int
    is_snapshot: bool
    is_gone: bool


class Undoable(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of a rollback, and the sinks (id, name, workspace) in which it looks for their values.

    ``complete``: no former value since the first of them was deleted because the state file had too many.
    """

    runs: tuple[SelectedRun, ...]
    sinks: tuple[tuple[int, str, str], ...]
    complete: bool

    @property
    def ids(self) -> str:
        """The runs as a JSON list."""
        return json.dumps([one.run for one in self.runs])


class Former(msgspec.Struct, frozen=True, kw_only=True):
    """The value that a key had before the runs, with the record that it came from. ``id``: of the former value."""

    id: int
    value: str | None
    data_type: str
    partition: int
    run: int
    position: Position | None


class KeyUndo(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to a key. ``partition``: that of the present entry; None: there is none.

    ``is_passed``: the runs only no longer named the key, so the entry has the value of another partition that does.
    ``former`` is None if the key had no entry before the runs. ``left``: why the key is left as it is; empty if it is not.
    """

    key: str
    value: str | None
    data_type: str | None
    partition: int | None
    former: Former | None
    is_passed: bool = False
    left: str = ""

    @property
    def doing(self) -> Undoing:
        """What is done with the entry."""
        if self.former is None:
            return "remove"
        return "create" if self.data_type is None else "restore"


def select(connection: sqlite3.Connection, selection: RunSelection) -> Undoable:
    """Return the runs of a selection that can be rolled back.

    Raises:
        NotRolledBack: there is no such run or sink, or the run has delivered nothing.
    """
    sinks = tuple(connection.execute(SQL["rollback_sinks"], {"name": selection.sink}).fetchall())
    if not sinks and selection.sink:
        raise NotRolledBack(
            f"No pipeline has written a data sink '{selection.sink}'. 'ingestd status' lists the sinks."
        )
    parameters = {
        "run": selection.run,
        "since": selection.since,
        "pipeline": selection.pipeline,
        "sinks": json.dumps([identity for identity, *_ in sinks]) if selection.sink else None,
    }
    rows = connection.execute(SQL["rollback_runs"], parameters).fetchall()
    if not rows and selection.run is not None:
        raise NotRolledBack(_why_not(connection, selection.run))
    runs = tuple(from_row(SelectedRun, row, is_snapshot=bool(row[5]), is_gone=bool(row[6])) for row in rows)
    newest, oldest_at = connection.execute(SQL["rollback_horizon"]).fetchone()
    complete = newest <= AT_MOST or not runs or min(run.started for run in runs) > oldest_at
    return Undoable(runs=runs, sinks=sinks, complete=complete)


def plan_rollback(connection: sqlite3.Connection, selection: RunSelection) -> Rollback:
    """Return what a rollback would change now.

    Raises:
        NotRolledBack: see `select`.
    """
    undoable = select(connection, selection)
    tally = Tally()
    for sink, name, _ in undoable.sinks:
        for keys in key_pages(connection, sink, undoable.ids):
            tally.add(name, undo_of(connection, sink, keys, undoable.ids, complete=undoable.complete))
    return tally.result(undoable.runs)


def key_pages(connection: sqlite3.Connection, sink: int, runs: str) -> Iterator[list[str]]:
    """Yield the keys of a sink that the runs have changed, in pages."""
    after = ""
    while True:
        page = {"sink": sink, "runs": runs, "after": after, "limit": PAGE}
        keys = [key for (key,) in connection.execute(SQL["rollback_keys"], page)]
        if keys:
            yield keys
        if len(keys) < PAGE:
            return
        after = keys[-1]


def undo_of(
    connection: sqlite3.Connection, sink: int, keys: Collection[str], runs: str, *, complete: bool
) -> list[KeyUndo]:
    """Return what happens to each of the keys, sorted by key; none for a key that has its former value already."""
    undone = set(json.loads(runs))
    rows = connection.execute(SQL["rollback_details"], {"sink": sink, "keys": json.dumps(list(keys)), "runs": runs})
    found = (_undo_of_row(row, undone, complete=complete) for row in rows.fetchall())
    return [one for one in found if one is not None]


class Tally:
    """Counts what happens to the keys of a rollback, and keeps the first ones."""

    def __init__(self) -> None:
        self._counts: dict[Undoing, int] = {"restore": 0, "remove": 0, "create": 0}
        self._left = 0
        self._keys: list[UndoneKey] = []
        self._first_left: list[LeftKey] = []

    def add(self, sink: str, undos: Collection[KeyUndo]) -> None:
        """Count keys of a sink with this name."""
        for one in undos:
            if one.left:
                self._left += 1
                if len(self._first_left) < _SHOWN:
                    self._first_left.append(LeftKey(sink=sink, key=one.key, reason=one.left))
                continue
            self._counts[one.doing] += 1
            if len(self._keys) < _SHOWN:
                restored = (one.former.value, one.former.data_type) if one.former is not None else (None, None)
                self._keys.append(
                    UndoneKey(
                        sink=sink, key=one.key, now=one.value, now_type=one.data_type, restored=restored[0],
                        restored_type=restored[1],
                    )
                )  # fmt: skip

    def result(self, runs: Collection[SelectedRun]) -> Rollback:
        """Return the numbers and the first keys."""
        return Rollback(
            runs=tuple(
                UndoneRun(
                    run=one.run, pipeline=one.pipeline, partition=one.name, started=one.started,
                    is_held=one.is_snapshot and not one.is_gone,
                )
                for one in runs
            ),
            restored=self._counts["restore"],
            removed=self._counts["remove"],
            created=self._counts["create"],
            left_count=self._left,
            keys=tuple(self._keys),
            left=tuple(self._first_left),
        )  # fmt: skip


def _why_not(connection: sqlite3.Connection, run: int) -> str:
    row = connection.execute(SQL["rollback_run"], (run,)).fetchone()
    if row is None:
        return f"There is no run {run}. The page of a pipeline and the log name the runs; old ones are deleted."
    ended, state = row
    if state in {"held", "discarded"}:
        return f"Run {run} is {state}: nothing of it is delivered, so there is nothing to roll back."
    if ended is None:
        return f"Run {run} has not ended. Roll it back when its reading has ended."
    return f"Run {run} has changed no entry of this pipeline and sink, so there is nothing to roll back."


def _undo_of_row(row: tuple[object, ...], undone: set[int], *, complete: bool) -> KeyUndo | None:
    (
        key, value, data_type, partition, run, removed, ended_by, ended_run,
        former, before, before_type, of_partition, of_run, position, before_ended_by, before_ending,
        place, kept, drift,
    ) = row  # fmt: skip
    exists = data_type is not None and not removed
    known = {
        "key": key,
        "value": value if exists else None,
        "data_type": data_type if exists else None,
        "partition": partition if exists else None,
    }

    def left(reason: str) -> KeyUndo:
        return msgspec.convert({**known, "former": None, "left": reason}, KeyUndo)

    # An entry without a run follows the service. Another partition's value may have replaced a removed one: the run is older.
    is_theirs = (run in undone or (run != 0 and ended_by in undone)) if exists else ended_by in undone
    if not is_theirs:
        gave = run in undone or ended_run in undone or ended_by in undone
        return left(_changed_since(run if exists else None, ended_by)) if gave else None
    is_before = former is not None and before_ended_by in undone
    if not is_before and not _is_created(former, before_ending, place, kept, complete=complete):
        return left("its value before the runs is not stored any more")
    if drift:
        return left("another program has changed it in the service")
    if not is_before:
        return msgspec.convert({**known, "former": None}, KeyUndo) if exists else None
    if before is None:
        return left("the service had it without a value (null), which only a person can write")
    if exists and (value, data_type) == (before, before_type):
        return None
    known["is_passed"] = exists and run not in undone
    earlier = {
        "id": former,
        "value": before,
        "data_type": before_type,
        "partition": of_partition,
        "run": of_run,
        "position": position,
    }
    return msgspec.convert({**known, "former": earlier}, KeyUndo)


def _is_created(former: object, ending: object, place: object, kept: object, *, complete: bool) -> bool:
    """Return True if the runs created the entry: it had no former value, or another run had removed it before.

    Only if no value between is missing, because an entry with an unknown former value must not be removed.
    """
    if former is None:
        return complete and int(str(kept)) < MOST
    return ending == "removed" and int(str(place)) < KEPT


def _changed_since(run: object, ended_by: object) -> str:
    if run is None:
        return f"run {ended_by} has removed it since" if ended_by else "it was removed since"
    return f"run {run} has changed it since" if run else "it has the service's value since then"
