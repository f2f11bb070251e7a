"""The history of the entries of a data sink."""

from __future__ import annotations

from datetime import datetime

from ingestd.client.records.base import Record, Versioned


class SinkHistory(Versioned, frozen=True, kw_only=True):
    """What is kept of the history of a sink; an own setting is None if the service's applies."""

    data_sink_id: str
    changes: int
    days: int
    own_changes: int | None
    own_days: int | None
    known_from: datetime | None


class EntryState(Record, frozen=True, kw_only=True):
    """The value of an entry at an instant."""

    value: str | None
    data_type: str


class PastChange(Record, frozen=True, kw_only=True):
    """A change of an entry. ``effect``: added, removed or changed. Before or after it is None if the key had no entry."""

    id: str
    time: datetime
    effect: str
    before: EntryState | None
    after: EntryState | None
    principal: str
    key_id: str | None
    client_id: str | None
    request_id: str | None
    operation: str
    older_dropped: bool


class SinkDifference(Record, frozen=True, kw_only=True):
    """A key that differs between two instants. ``effect``: added, removed, changed, or unknown if a value was dropped."""

    key: str
    effect: str
    before: EntryState | None
    after: EntryState | None


class SinkComparison(Record, frozen=True, kw_only=True):
    """A page of the differences between two instants; nothing is compared unless ``is_known``."""

    since: datetime
    until: datetime
    known_from: datetime | None
    is_known: bool
    differences: tuple[SinkDifference, ...]
    unknown_keys: tuple[str, ...]
