"""The effects of changes on entries, computed in the order of the changes. Performs no I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from workspaced.resources.data_sinks.values import DEFAULT_DATA_TYPE, Change, StoredEntry, Tally

Effect: TypeAlias = Literal["created", "updated", "unchanged", "deleted", "stale", "absent"]
"""``stale``: the entry has a newer observation. ``absent``: the removal of an absent entry. Both change nothing."""


class _EntryNow(NamedTuple):
    """The parts of an entry that the effect of a change depends on."""

    value: str | None
    data_type: str
    observed_at: int | None
    origin: int | None


def effects_of(changes: Sequence[Change], present: Mapping[str, StoredEntry]) -> Iterator[str]:
    """Yield the effect of each change: created, updated, unchanged or deleted. ``present``: the entries before all changes."""
    states: dict[str, _EntryNow | None] = {key: _state_of(entry) for key, entry in present.items()}
    for change in changes:
        states[change.key], effect = _apply(change, states.get(change.key))
        yield "unchanged" if effect in {"stale", "absent"} else effect


def least_of(changes: Sequence[Change], before: StoredEntry | None) -> tuple[list[Change], Tally]:
    """Reduce the changes of a key to at most a removal and an upsert. Return these, and the counts of all ``changes``.

    ``before``: the present entry of the key, or None. The result in the database is the same. Without the reduction, each change
    needs separate statements: a body with one key 5 000 times takes 5 000 times as long as a body with different keys.
    """
    state = _state_of(before) if before else None
    entry_id: str | None = None
    is_removed = is_written = False
    tally = Tally(accepted=len(changes))
    for change in changes:
        state, effect = _apply(change, state)
        if effect == "stale":
            tally += Tally(unchanged=1, stale=1)
        elif effect != "absent":
            tally += Tally(**{effect: 1})
            is_removed = is_removed or effect == "deleted"
            is_written = is_written or effect != "deleted"
        if effect == "created":
            entry_id = change.id
    key = changes[0].key
    least: list[Change] = []
    if before and is_removed:
        least.append(Change(key, None, None, None, None, remove=True))
    if state and is_written:
        least.append(Change(key, *state[:2], entry_id, state.observed_at, remove=False, origin=state.origin))
    return least, tally


def _state_of(entry: StoredEntry) -> _EntryNow:
    return _EntryNow(entry.value, entry.data_type, entry.observed_at, entry.origin)


def _apply(change: Change, before: _EntryNow | None) -> tuple[_EntryNow | None, Effect]:
    """Return the entry after a change, and the effect of the change."""
    observed_at = before.observed_at if before else None
    if change.observed_at is not None and observed_at is not None and change.observed_at < observed_at:
        return before, "stale"
    if change.remove:
        return None, "deleted" if before else "absent"
    data_type = change.data_type or (before.data_type if before else DEFAULT_DATA_TYPE)
    newest = observed_at if change.observed_at is None else change.observed_at
    after = _EntryNow(change.value, data_type, newest, change.origin)
    if before is None:
        return after, "created"
    return after, "unchanged" if before[:2] == after[:2] else "updated"
