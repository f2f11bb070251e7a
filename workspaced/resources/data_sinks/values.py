"""Rows of data sinks and entries, changes of entries, and the counts of mass updates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

DEFAULT_DATA_TYPE = "scalar"

SINKS = "data_sinks"
"""The channel that a commit notifies when it changes a sink or an entry."""
CHANGES = "entry_changes"
"""The channel that a commit notifies when it adds to the history of entries."""
DELETED_SINKS = "deleted_sinks"
"""The channel that a commit notifies when it deletes a sink, so that its rows are removed."""


class Change(NamedTuple):
    """One item of a mass update, in the column order of the staging table.

    ``data_type`` None: an existing entry keeps its data type, and a new entry gets the default. ``id``: the id of a new entry.
    ``observed_at``: microseconds since 1970. ``origin``: see `origins.origin_number`.
    """

    key: str
    value: str | None
    data_type: str | None
    id: str | None
    observed_at: int | None
    remove: bool
    origin: int | None = None


class StoredSink(NamedTuple):
    """A row of a data sink. Instants are milliseconds since 1970. ``history_…``: see `history_store`."""

    number: int
    id: str
    workspace_id: str
    serial: int
    label: str
    description: str | None
    tags: str | None
    icon: str | None
    entry_count: int
    version: int
    created_at: int
    updated_at: int
    created_by: str
    updated_by: str
    history_changes: int | None
    history_days: int | None
    history_from: int | None
    history_after: int
    protect_fed_entries: int
    """1: writes without an origin can't edit entries that have an origin; see `protection`."""


class StoredEntry(NamedTuple):
    """A row of an entry. It is a tuple, because a request may read millions of rows. ``origin``: see `origins.is_of_value`."""

    number: int
    id: str
    key: str
    value: str | None
    data_type: str
    observed_at: int | None
    version: int
    created_at: int
    updated_at: int
    created_by: str
    updated_by: str
    origin: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The counts of the items of a mass update, by their effect.

    ``stale`` items are also counted as ``unchanged``. Removing an absent entry is counted as ``accepted`` only.
    """

    accepted: int = 0
    created: int = 0
    updated: int = 0
    unchanged: int = 0
    deleted: int = 0
    stale: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(**{name: getattr(self, name) + getattr(other, name) for name in Tally.__slots__})

    def __sub__(self, other: Tally) -> Tally:
        return Tally(**{name: getattr(self, name) - getattr(other, name) for name in Tally.__slots__})

    @property
    def written(self) -> dict[str, int]:
        """The counts that metrics, responses and the audit log show."""
        return {name: getattr(self, name) for name in ("created", "updated", "unchanged", "deleted")}

    @property
    def touched(self) -> bool:
        """Whether any row was written."""
        return self.created + self.updated + self.deleted + self.unchanged > self.stale


_CREATED: Final[Mapping[str, int]] = {"created": 1}
_UPDATED: Final[Mapping[str, int]] = {"updated": 1}
_UNCHANGED: Final[Mapping[str, int]] = {"unchanged": 1}
_DELETED: Final[Mapping[str, int]] = {"deleted": 1}


def written(before: StoredEntry | None, after: StoredEntry | None) -> Mapping[str, int]:
    """Return the counts for one write, from the entry before and after the write."""
    if after is None:
        return _DELETED
    if before is None:
        return _CREATED
    return _UNCHANGED if (before.value, before.data_type) == (after.value, after.data_type) else _UPDATED
