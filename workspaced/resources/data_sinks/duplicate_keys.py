"""Reduction of several changes of one key in a mass update to at most two with the same result. Pure.

Each further change of a key would need further statements. Without the reduction, a body with one key 5 000 times would be
5 000 times as expensive as another body.
"""

from __future__ import annotations

from collections.abc import Sequence

from workspaced.resources.data_sinks.values import DEFAULT_DATA_TYPE, Change, StoredEntry, Tally


def least_of(changes: Sequence[Change], before: StoredEntry | None) -> tuple[list[Change], Tally]:
    """Return a removal and an upsert, or less, that replace all changes of a key; and the counts of all.

    ``before`` is the present entry of the key, if exists is one.
    """
    key = changes[0].key
    value, data_type, observed_at = (before.value, before.data_type, before.observed_at) if before else (None, "", None)
    entry_id: str | None = None
    exists, kept, written = before is not None, before is not None, False
    tally = Tally(accepted=len(changes))
    for _, new_value, new_type, new_id, new_observed_at, remove in changes:
        if exists and new_observed_at is not None and observed_at is not None and new_observed_at < observed_at:
            tally += Tally(unchanged=1, stale=1)
        elif remove:
            tally += Tally(deleted=int(exists))
            exists = kept = False
        elif exists:
            same = new_value == value and new_type in {None, data_type}
            tally += Tally(unchanged=int(same), updated=int(not same))
            value, data_type, written = new_value, new_type or data_type, True
            observed_at = observed_at if new_observed_at is None else new_observed_at
        else:
            tally += Tally(created=1)
            value, data_type, written = new_value, new_type or DEFAULT_DATA_TYPE, True
            exists, entry_id, observed_at = True, new_id, new_observed_at
    least: list[Change] = []
    if before and not kept:
        least.append(Change(key, None, None, None, None, remove=True))
    if exists and written:
        least.append(Change(key, value, data_type, entry_id, observed_at, remove=False))
    return least, tally
