"""Data sinks, their entries, and the bulk form of the mass update (contract M3, M8)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import UNSET, UnsetType

from ingestd.client.records.base import Number, ProblemError, Record, Versioned


class Icon(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A picture by name. A request sends only the given members."""

    source: str | None = None
    name: str | None = None
    color: str | None = None
    metadata: dict[str, Any] | None = None


class Entry(Versioned, frozen=True, kw_only=True):
    """A data sink entry."""

    id: str
    key: str
    data_sink_id: str
    value: str | None = None
    data_type: str
    created_at: datetime
    updated_at: datetime
    created_by: str
    updated_by: str


class SinkInfo(Versioned, frozen=True, kw_only=True):
    """A data sink without its entries. ``icon`` is a text if the service returns one."""

    id: str
    workspace_id: str
    label: str
    description: str | None = None
    tags: str | None = None
    icon: Icon | str | None = None
    visible_id: str
    serial: Number
    created_at: datetime
    updated_at: datetime
    created_by: str
    updated_by: str


class Sink(SinkInfo, frozen=True, kw_only=True):
    """A data sink with its entries."""

    entries: tuple[Entry, ...]


class NewEntry(Record, frozen=True, kw_only=True):
    """An entry of a new sink."""

    key: str
    data_type: str
    value: str | None = None
    id: str | UnsetType = UNSET


class EntryChange(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A new value of a key, or its removal. If ``observed_at`` is older than the stored one, nothing is changed."""

    key: str
    value: str | UnsetType = UNSET
    data_type: str | None = None
    id: str | None = None
    observed_at: datetime | None = None
    delete: bool = False


class BulkCounts(Record, frozen=True, kw_only=True):
    """The number of items by result; ``accepted`` is the sum of the others."""

    accepted: int
    created: int
    updated: int
    unchanged: int
    deleted: int


class ItemProblem(Record, frozen=True, kw_only=True):
    """Why an item was rejected."""

    title: str = ""
    error: str = ""
    code: str = ""
    detail: str = ""
    errors: tuple[ProblemError, ...] = ()

    @property
    def reason(self) -> str:
        """The most specific text that the service gives."""
        return self.detail or self.title or self.error or self.code or "the service gives no reason"


class ItemResult(Record, frozen=True, kw_only=True):
    """The result of the item at ``index`` (from 0): the entry (None if it was removed), or why it was rejected."""

    index: int
    status: int
    entry: Entry | None = None
    error: ItemProblem | None = None


class PartialResult(Record, frozen=True, kw_only=True):
    """The result of each item."""

    results: tuple[ItemResult, ...]
    succeeded: int
    failed: int
