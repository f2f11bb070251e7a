"""Several changes of one key in one mass update: what they do one after the other, and the least that ends the same. Pure.

Each further turn of a key would be further statements for the database; a body of one key 5 000 times must not be 5 000
times as dear as another.
"""

from __future__ import annotations

from collections.abc import Sequence

from workspaced.resources.data_sinks.values import DEFAULT_DATA_TYPE, Change, StoredEntry, Tally


def least_of(changes: Sequence[Change], before: StoredEntry | None) -> tuple[list[Change], Tally]:
    """At most two changes, a removal and an upsert, for all of one key; and what all of them together are counted as.

    ``before`` is the entry that has the key, if there is one.
    """
    key = changes[0].key
    value, data_type, observed_at = (before.value, before.data_type, before.observed_at) if before else (None, "", None)
    entry_id: str | None = None
    there, kept, written = before is not None, before is not None, False
    tally = Tally(accepted=len(changes))
    for _, new_value, new_type, new_id, new_observed_at, remove in changes:
        if there and new_observed_at is not None and observed_at is not None and new_observed_at < observed_at:
            tally += Tally(unchanged=1, stale=1)
        elif remove:
            tally += Tally(deleted=int(there))
            there = kept = False
        elif there:
            same = new_value == value and new_type in {None, data_type}
            tally += Tally(unchanged=int(same), updated=int(not same))
            value, data_type, written = new_value, new_type or data_type, True
            observed_at = observed_at if new_observed_at is None else new_observed_at
        else:
            tally += Tally(created=1)
            value, data_type, written = new_value, new_type or DEFAULT_DATA_TYPE, True
            there, entry_id, observed_at = True, new_id, new_observed_at
    least: list[Change] = []
    if before and not kept:
        least.append(Change(key, None, None, None, None, remove=True))
    if there and written:
        least.append(Change(key, value, data_type, entry_id, observed_at, remove=False))
    return least, tally
