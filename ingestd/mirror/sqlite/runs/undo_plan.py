"""The plan of a rollback for each key: its value before the runs, and whether it still has a value of the runs.

The former values of a key are a chain: each value was ended by the run that gave the next value. All of the newest `KEPT`
values are stored. The oldest value is deleted only if the key or the state file exceeds its limit of former values.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator
from collections.abc import Set as AbstractSet
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
"""Maximum number of keys in each list of a plan: the first changed keys, and the first unchanged keys."""


class SelectedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is rolled back, with its partition. ``is_gone``: the source no longer has the partition.

    ``known_hold``, ``known_state``: the run that holds the partition already, and its state ("held" or "discarded"), or None.
    """

    run: int
    pipeline: str
    name: str
    started: float
    partition: int
    is_snapshot: bool
    is_gone: bool
    known_hold: int | None
    known_state: str | None


class Undoable(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of a rollback, and the sinks (names by id) in which it searches for values of these runs.

    ``complete``: the limit of the state file has deleted no former value that ended since the first of the runs began.
    """

    runs: tuple[SelectedRun, ...]
    sinks: dict[int, str]
    complete: bool

    @property
    def ids(self) -> str:
        """The runs as a JSON list."""
        return json.dumps([one.run for one in self.runs])


class Former(msgspec.Struct, frozen=True, kw_only=True):
    """The value that a key had before the runs, with its record. ``id``: the id of the former value."""

    id: int
    value: str | None
    data_type: str
    partition: int
    run: int
    position: Position | None


class KeyUndo(msgspec.Struct, frozen=True, kw_only=True):
    """The plan for one key. ``partition``: the partition of the present entry; None: there is no entry.

    ``is_passed``: the runs no longer named the key, so the entry now has the value of another partition that names it.
    ``former`` is None if the key had no entry before the runs. ``left``: why the key is not changed; empty if it is changed.
    """

    key: str
    value: str | None
    data_type: str | None
    partition: int | None
    former: Former | None
    is_passed: bool = False
    left: str = ""

    @property
    def held_partition(self) -> int:
        """The partition with the held run that counts the change; 0: none."""
        if self.former is not None and (self.partition is None or self.is_passed):
            return self.former.partition
        return self.partition or 0

    @property
    def doing(self) -> Undoing:
        """The change of the entry."""
        if self.former is None:
            return "remove"
        return "create" if self.data_type is None else "restore"


def select(connection: sqlite3.Connection, selection: RunSelection) -> Undoable:
    """Return the runs of a selection that can be rolled back.

    Raises:
        NotRolledBack: there is no such run or sink, or the run has delivered nothing.
    """
    sinks = dict[int, str](connection.execute(SQL["rollback_sinks"], {"name": selection.sink}).fetchall())
    if not sinks and selection.sink:
        raise NotRolledBack(
            f"No pipeline has written a data sink '{selection.sink}'. 'ingestd status' lists the sinks."
        )
    parameters = {
        "run": selection.run,
        "since": selection.since,
        "pipeline": selection.pipeline,
        "sinks": json.dumps([*sinks]) if selection.sink else None,
    }
    rows = connection.execute(SQL["rollback_runs"], parameters).fetchall()
    if not rows and selection.run is not None:
        raise NotRolledBack(_why_not(connection, selection.run))
    runs = tuple(from_row(SelectedRun, row, is_snapshot=bool(row[5]), is_gone=bool(row[6])) for row in rows)
    newest, oldest_at = connection.execute(SQL["rollback_horizon"]).fetchone()
    complete = newest <= AT_MOST or not runs or min(run.started for run in runs) > oldest_at
    return Undoable(runs=runs, sinks=sinks, complete=complete)


def plan_rollback(connection: sqlite3.Connection, selection: RunSelection) -> Rollback:
    """Return the changes that a rollback would make now.

    Raises:
        NotRolledBack: see `select`.
    """
    undoable = select(connection, selection)
    tally = UndoCounts()
    for sink, name in undoable.sinks.items():
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
    """Return the plan for each key, sorted by key; keys that already have their former value are left out."""
    undone = frozenset[int | None](json.loads(runs))
    rows = connection.execute(SQL["rollback_details"], {"sink": sink, "keys": json.dumps(list(keys)), "runs": runs})
    found = (_undo_of_row(row, undone, complete=complete) for row in rows.fetchall())
    return [one for one in found if one is not None]


class UndoCounts:
    """Counts the changes of a rollback, and keeps the first changed and the first unchanged keys."""

    def __init__(self) -> None:
        self._counts: dict[Undoing, int] = {"restore": 0, "remove": 0, "create": 0}
        self._changed = set[int]()
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
            self._changed.add(one.held_partition)
            if len(self._keys) < _SHOWN:
                restored = (one.former.value, one.former.data_type) if one.former is not None else (None, None)
                self._keys.append(
                    UndoneKey(
                        sink=sink, key=one.key, now=one.value, now_type=one.data_type, restored=restored[0],
                        restored_type=restored[1],
                    )
                )  # fmt: skip

    def result(self, runs: Collection[SelectedRun]) -> Rollback:
        """Return the rollback of ``runs`` with the counts and the first keys."""
        last = {one.partition: one.run for one in runs}
        return Rollback(
            runs=tuple(self._undone_run(one, last[one.partition]) for one in runs),
            restored=self._counts["restore"],
            removed=self._counts["remove"],
            created=self._counts["create"],
            left_count=self._left,
            keys=tuple(self._keys),
            left=tuple(self._first_left),
        )  # fmt: skip

    def _undone_run(self, one: SelectedRun, last: int) -> UndoneRun:
        """Return a run of a rollback. ``last``: the last run of its partition."""
        is_changed = one.partition in self._changed
        is_held = one.is_snapshot and not one.is_gone and (is_changed or one.known_hold is not None)
        return UndoneRun(
            run=one.run, pipeline=one.pipeline, partition=one.name, started=one.started, is_held=is_held, is_changed=is_changed,
            held_run=(one.known_hold or last) if is_held and one.known_state != "discarded" else None,
        )  # fmt: skip


def _why_not(connection: sqlite3.Connection, run: int) -> str:
    row = connection.execute(SQL["rollback_run"], (run,)).fetchone()
    if row is None:
        return f"There is no run {run}. The page of a pipeline and the log name the runs; old runs are deleted."
    ended, state = row
    if state in {"held", "discarded"}:
        return f"Run {run} is {state}: nothing of it is delivered, so there is nothing to roll back."
    if ended is None:
        return f"Run {run} has not ended. Roll it back when its reading has ended."
    return f"Run {run} has changed no entry of this pipeline and sink, so there is nothing to roll back."


class _Details(msgspec.Struct, frozen=True, kw_only=True):
    """A row of ``rollback_details``. ``before`` is the id of the newest former value that none of the runs gave."""

    key: str
    value: str | None
    data_type: str | None
    partition: int | None
    run: int | None
    removed: int | None
    ended_by: int | None
    ended_run: int | None
    before: int | None
    before_value: str | None
    before_type: str
    before_partition: int
    before_run: int
    position: Position | None
    before_ended_by: int | None
    before_ending: str | None
    place: int
    kept: int
    drift: int

    @property
    def exists(self) -> bool:
        """Whether there is an entry now."""
        return self.data_type is not None and not self.removed

    def is_theirs(self, undone: AbstractSet[int | None]) -> bool:
        """Return True if the runs gave the present value, or removed the entry.

        An entry without a run has the service's value. If the runs removed a value, the entry may have got an older value of
        another partition.
        """
        if not self.exists:
            return self.ended_by in undone
        return self.run in undone or (self.run != 0 and self.ended_by in undone)

    def is_created(self, *, complete: bool) -> bool:
        """Return True if the runs created the entry: it had no former value, or another run had removed it before.

        If a later former value may be missing, the result is False, because the entry must then not be removed.
        """
        if self.before is None:
            return complete and self.kept < MOST
        return self.before_ending == "removed" and self.place < KEPT


def _undo_of_row(row: tuple[object, ...], undone: AbstractSet[int | None], *, complete: bool) -> KeyUndo | None:
    found = from_row(_Details, row)
    had_entry = found.before is not None and found.before_ended_by in undone
    if found.is_theirs(undone):
        left = _reason_to_leave(found, had_entry=had_entry, complete=complete)
    elif undone.isdisjoint({found.run, found.ended_run, found.ended_by}):
        return None
    else:
        left = _changed_since(found)
    is_equal = not had_entry or (found.value, found.data_type) == (found.before_value, found.before_type)
    if not left and found.exists == had_entry and is_equal:
        return None
    former = None
    if found.before is not None and had_entry and not left:
        former = Former(
            id=found.before, value=found.before_value, data_type=found.before_type, partition=found.before_partition,
            run=found.before_run, position=found.position,
        )  # fmt: skip
    return KeyUndo(
        key=found.key,
        value=found.value if found.exists else None,
        data_type=found.data_type if found.exists else None,
        partition=found.partition if found.exists else None,
        former=former,
        is_passed=found.exists and found.run not in undone,
        left=left,
    )


def _reason_to_leave(found: _Details, *, had_entry: bool, complete: bool) -> str:
    """Return why a key with a value of the runs is not changed; empty if it is changed."""
    if not had_entry and not found.is_created(complete=complete):
        return "its value before the runs is not stored any more"
    if found.drift:
        return "another program has changed it in the service"
    if had_entry and found.before_value is None:
        return "the service had it without a value (null), which only a person can write"
    return ""


def _changed_since(found: _Details) -> str:
    if not found.exists:
        return f"run {found.ended_by} has removed it since" if found.ended_by else "it was removed since"
    return f"run {found.run} has changed it since" if found.run else "it has the service's value since then"
