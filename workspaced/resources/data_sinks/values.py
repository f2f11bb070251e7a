"""Sinks and entries as the store returns them, and the counts of mass updates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

DEFAULT_DATA_TYPE = "scalar"

SINKS = "data_sinks"
"""The channel on which a commit says that a sink or an entry is another now."""
DELETED_SINKS = "deleted_sinks"
"""The channel on which a commit says that a sink was deleted, and its rows are to be removed."""


class Change(NamedTuple):
    """One item of a mass update, in the column order of the staging table.

    ``data_type`` None: keep the stored one, or use the default. ``id`` is for a new entry. ``observed_at`` is in
    microseconds since 1970.
    """

    key: str
    value: str | None
    data_type: str | None
    id: str | None
    observed_at: int | None
    remove: bool


class StoredSink(NamedTuple):
    """A sink's row, in the order of every SELECT of sinks. Instants are milliseconds since 1970."""

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


class StoredEntry(NamedTuple):
    """An entry's row, in the order of every SELECT of entries. A named tuple, since a million of them may be read."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What a mass update did: how many items were new, moved on, written as they were, or removed.

    ``stale`` items are among the unchanged; removing what is absent is accepted and counted nowhere else.
    """

    accepted: int = 0
    created: int = 0
    updated: int = 0
    unchanged: int = 0
    deleted: int = 0
    stale: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            accepted=self.accepted + other.accepted,
            created=self.created + other.created,
            updated=self.updated + other.updated,
            unchanged=self.unchanged + other.unchanged,
            deleted=self.deleted + other.deleted,
            stale=self.stale + other.stale,
        )

    def __sub__(self, other: Tally) -> Tally:
        return Tally(
            accepted=self.accepted - other.accepted,
            created=self.created - other.created,
            updated=self.updated - other.updated,
            unchanged=self.unchanged - other.unchanged,
            deleted=self.deleted - other.deleted,
            stale=self.stale - other.stale,
        )

    @property
    def written(self) -> dict[str, int]:
        """How many items had which end."""
        return {
            "created": self.created,
            "updated": self.updated,
            "unchanged": self.unchanged,
            "deleted": self.deleted,
        }

    @property
    def touched(self) -> bool:
        """Whether anything was written."""
        return self.created + self.updated + self.deleted + self.unchanged > self.stale


_CREATED: Final[Mapping[str, int]] = {"created": 1}
_UPDATED: Final[Mapping[str, int]] = {"updated": 1}
_UNCHANGED: Final[Mapping[str, int]] = {"unchanged": 1}
_DELETED: Final[Mapping[str, int]] = {"deleted": 1}


def written(before: StoredEntry | None, after: StoredEntry | None) -> Mapping[str, int]:
    """How many entries had which end, of one entry before and after."""
    if after is None:
        return _DELETED
    if before is None:
        return _CREATED
    return _UNCHANGED if (before.value, before.data_type) == (after.value, after.data_type) else _UPDATED
