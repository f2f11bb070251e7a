"""The history of entries in the database: one row for each change, written in the transaction of the change.

A row has the value before the change. The value at an instant is therefore the value before the first later change. If there is
no later change, it is the present value. Only values and data types have a history. A write that changes neither causes no row.

A sink keeps ``history_changes`` changes of each entry for ``history_days`` days; without settings, the defaults of the service
apply. The oldest changes of an entry are dropped first, so the kept changes have no gaps. All changes
after ``history_from`` are known, except the oldest changes of entries that had too many. Then ``known_from`` in the oldest row
of the entry is the time of the last dropped change.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from workspaced.http.operations import Call
from workspaced.resources.data_sinks.values import CHANGES, StoredEntry, StoredSink
from workspaced.settings.model import HistorySettings
from workspaced.storage.bounded_walk import Walked, walk
from workspaced.storage.incremental_job import repeat
from workspaced.storage.port import ReadTransaction, Row, Transaction
from workspaced.storage.statements import load_statements
from workspaced.storage.store import Store

_SQL = load_statements("workspaced.resources.data_sinks", "history.sql")
_AT_ONCE = 1_000
UNKNOWN_KEYS: Final = 100
"""The maximum number of keys with unknown values in a comparison."""
_END: Final = 2**62
_DAY_MS: Final = 86_400_000


class StoredChange(NamedTuple):
    """A change of an entry; the fields are in the order of the columns. ``old_data_type`` None: the key had no entry before."""

    number: int
    at: int
    old_value: str | None
    old_data_type: str | None
    known_from: int | None
    actor: str
    key_id: str
    client_id: str
    request_id: str
    operation: str
    old_origin: int | None


class ChangePosition(NamedTuple):
    """The position of a change in the order of time."""

    at: int
    number: int


class StoredDifference(NamedTuple):
    """A key with different values at two instants, and the position of its first change. Data type None: no entry.

    ``old_from``, ``new_from``: the value is known only from this instant on, because earlier changes were dropped; else None.
    """

    at: int
    number: int
    key: str
    old_value: str | None
    old_data_type: str | None
    old_from: int | None
    new_value: str | None
    new_data_type: str | None
    new_from: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Two instants in milliseconds since 1970; ``since`` is the earlier instant."""

    since: int
    until: int


EntryState: TypeAlias = tuple[Call, StoredEntry | None, StoredEntry | None]
"""The request of a change, the entry before the change, and the entry after it."""


def policy_of(sink: StoredSink, default: HistorySettings) -> HistorySettings:
    """Return the settings of a sink's history; 0 changes: no history."""
    return _policy(sink.history_changes, sink.history_days, default)


def open_history(tx: Transaction, call: Call, sink: StoredSink) -> bool:
    """Begin or end the history of a sink if its settings require this. Return whether the sink has a history."""
    kept = policy_of(sink, call.settings.history).changes > 0
    if kept and sink.history_from is None:
        tx.later(_SQL["start"], {"sink": sink.number, "now": call.now})
    elif not kept and sink.history_from is not None:
        tx.later(_SQL["stop"], {"sink": sink.number})
    if kept:
        tx.notify(CHANGES)
    return kept


def record_states(tx: Transaction, sink: StoredSink, states: Sequence[EntryState]) -> None:
    """Record changes of entries of a sink, in the order of ``states``. States without a change cause no row.

    The insertion is not deferred, because the rows of a key must be in the order of its changes.
    """
    if not open_history(tx, states[0][0], sink):
        return
    changed: list[tuple[Call, str, StoredEntry | None]] = []
    for call, before, after in states:
        entry = after or before
        if entry is not None and not (before and after and before[3:5] == after[3:5]):
            changed.append((call, entry.key, before))
    if not changed:
        return
    last = _last_changes(tx, sink, [key for _, key, _ in changed])
    rows: list[Row] = []
    for call, key, before in changed:
        # If the key was removed and added again, the last change of the key may be later than the last update of the entry.
        at = max(call.now, last[key], before.updated_at if before else 0)
        old = (before.value, before.data_type) if before else (None, None)
        rows.append((sink.number, key, at, *old, *columns_of(call).values(), before.origin if before else None))
    tx.load(_SQL["insert"], rows)


def columns_of(call: Call) -> dict[str, str]:
    """Return the columns about the request that makes a change, in the order of the table."""
    return {
        "actor": call.actor,
        "key_id": call.key_id,
        "client_id": call.client_id or "",
        "request_id": call.request_id,
        "operation": call.operation,
    }


def configure(tx: Transaction, call: Call, sink: StoredSink, *, changes: int | None, days: int | None) -> None:
    """Set how much history a sink keeps; None: the default of the service. If necessary, the history begins or ends at once."""
    values = {"sink": sink.number, "changes": changes, "days": days, "now": call.now, "actor": call.actor}
    tx.run(_SQL["configure"], values)
    open_history(tx, call, sink._replace(history_changes=changes, history_days=days))


def changes_of(
    reader: ReadTransaction, sink: StoredSink, key: str, *, newest: ChangePosition | None, take: int
) -> list[StoredChange]:
    """Return the changes of a key, the newest first, from ``newest`` on; None: from the last change on."""
    if sink.history_from is None:
        return []
    at, number = newest or (_END, _END)
    values = {"sink": sink.number, "key": key, "after": sink.history_after, "at": at, "number": number, "take": take}
    return [StoredChange._make(row) for row in reader.all(_SQL["changes_of_key"], values)]


def differences(
    reader: ReadTransaction, sink: StoredSink, moments: Moments, *, after: ChangePosition | None, take: int, most: int
) -> Walked[ChangePosition]:
    """Return up to ``take`` keys that differ between two instants, in the order of their first change.

    At most ``most`` changes are examined, so a page with fewer than ``take`` keys may still have a next page.
    """
    values = {
        "sink": sink.number,
        "after": sink.history_after,
        "since": moments.since,
        "until": moments.until,
    }

    def matching(after: ChangePosition, count: int, limit: int) -> list[Row]:
        return reader.all(_SQL["differences"], {**values, **after._asdict(), "walk": count, "take": limit})

    def end(after: ChangePosition, count: int) -> ChangePosition | None:
        row = reader.one(_SQL["differences_end"], {**values, **after._asdict(), "walk": count - 1})
        return ChangePosition._make(row) if row else None

    return walk(
        after or ChangePosition(at=moments.since, number=_END),
        take=take,
        skip=0,
        most=most,
        matching=matching,
        end=end,
        position=lambda row: ChangePosition(at=row[0], number=row[1]),
    )


def unknown_keys(reader: ReadTransaction, sink: StoredSink, moments: Moments) -> list[str]:
    """Return up to `UNKNOWN_KEYS` keys with unknown values, because their changes between the instants were dropped."""
    values = {
        "sink": sink.number,
        "after": sink.history_after,
        "since": moments.since,
        "until": moments.until,
        "most": UNKNOWN_KEYS,
    }
    return [row[0] for row in reader.all(_SQL["unknown_keys"], values)]


def has_excess(reader: ReadTransaction) -> bool:
    """Whether enough changes were recorded since the last pruning, so that `drop_excess` should run."""
    last, pruned_to = _last_change(reader)
    return last - pruned_to >= _AT_ONCE


def drop_excess(tx: Transaction, most: int, *, default: HistorySettings) -> int:
    """Examine up to ``most`` new changes, and drop excess changes of their entries. Return ``most``; 0: nothing to do."""
    if tx.one(_SQL["queue_for_pruning"]) is None:
        return 0
    pruned_to = _last_change(tx)[1]
    found = tx.all(_SQL["changed_sinks"], {"pruned_to": pruned_to, "most": most})
    if not found:
        return 0
    last = max(row[2] for row in found)
    left = most
    for sink, changes, _ in found:
        kept = _policy(changes, None, default).changes
        values = {"sink": sink, "pruned_to": pruned_to, "to": last, "kept": kept, "most": left}
        dropped = tx.all(_SQL["drop_excess"], values)
        newest: dict[str, int] = {}
        for key, at in dropped:
            newest[key] = max(at, newest.get(key, at))
        for key, at in newest.items():
            tx.run(_SQL["cut"], {"sink": sink, "key": key, "known_from": at})
        left -= len(dropped)
        if not left:  # the next call examines the same changes again
            return most
    tx.run(_SQL["note_pruning"], {"to": last})
    return most


async def drop_old(store: Store, *, default: HistorySettings, now: int) -> int:
    """Drop changes that are too old or belong to an ended history, in bounded steps. Return how many were dropped."""
    dropped, after = 0, 0
    while sink := await store.read(partial(_next_sink, after=after)):
        after = sink[0]
        step = partial(_drop_old, sink=after, default=default, now=now)
        dropped += await repeat(store, step, rows=_AT_ONCE)
    return dropped


def remove_changes(tx: Transaction, sink: int, most: int) -> int:
    """Remove up to ``most`` changes of a deleted sink. Return how many."""
    return tx.run(_SQL["remove_changes"], {"sink": sink, "most": most})


def _next_sink(reader: ReadTransaction, *, after: int) -> Row | None:
    return reader.one(_SQL["next_sink"], {"after": after})


def _drop_old(tx: Transaction, *, sink: int, default: HistorySettings, now: int) -> int:
    row = _next_sink(tx, after=sink - 1)
    if row is None or row[0] != sink:
        return 0
    _, changes, days, history_from, after = row
    if history_from is None:
        return remove_changes(tx, sink, _AT_ONCE)
    before = now - _policy(changes, days, default).days * _DAY_MS
    values = {"sink": sink, "before": before, "begun": history_from, "after": after, "most": _AT_ONCE}
    if dropped := tx.run(_SQL["drop_before"], values):
        tx.run(_SQL["forget_before"], values)
        return dropped
    return tx.run(_SQL["drop_stale"], values)


def _policy(changes: int | None, days: int | None, default: HistorySettings) -> HistorySettings:
    return HistorySettings(
        changes=default.changes if changes is None else changes, days=default.days if days is None else days
    )


def _last_changes(reader: ReadTransaction, sink: StoredSink, keys: Sequence[str]) -> dict[str, int]:
    """Return the instant of the last change of each key; 0 if the key has no change."""
    return dict(reader.all(_SQL["last_changes"], {"sink": sink.number, "keys": json.dumps(keys)}))


def _last_change(reader: ReadTransaction) -> tuple[int, int]:
    last, pruned_to = reader.existing(_SQL["last_change"])
    return last, pruned_to
