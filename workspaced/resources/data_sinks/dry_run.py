"""The effect that each item of a mass update would have. Performs no I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from workspaced.resources.data_sinks.values import DEFAULT_DATA_TYPE, Change, StoredEntry

State = tuple[str | None, str, int | None]
"""The value, the data type and the observation of an entry."""


def effects_of(changes: Sequence[Change], present: Mapping[str, StoredEntry]) -> Iterator[str]:
    """Yield ``created``, ``updated``, ``unchanged`` or ``deleted`` for each change, applied in order to the present entries.

    An older observation, and the removal of an absent entry, are ``unchanged``.
    """
    states: dict[str, State | None] = {
        key: (entry.value, entry.data_type, entry.observed_at) for key, entry in present.items()
    }
    for change in changes:
        before = states.get(change.key)
        after = _after(change, before)
        states[change.key] = after
        if before is None:
            yield "unchanged" if after is None else "created"
        elif after is None:
            yield "deleted"
        else:
            yield "unchanged" if before[:2] == after[:2] else "updated"


def _after(change: Change, before: State | None) -> State | None:
    observed_at = before[2] if before else None
    if change.observed_at is not None and observed_at is not None and change.observed_at < observed_at:
        return before
    if change.remove:
        return None
    data_type = change.data_type or (before[1] if before else DEFAULT_DATA_TYPE)
    return change.value, data_type, observed_at if change.observed_at is None else change.observed_at
