"""Data sinks and their entries."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import UNSET, UnsetType

from ingestd.client.records.base import Number, Record, Versioned


class Icon(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A picture by name; a request sends the members that are given."""

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
    """A data sink without its entries. ``icon`` is a text where the service renders it as one."""

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
    """An entry of a sink that is created with entries."""

    key: str
    data_type: str
    value: str | None = None
    id: str | UnsetType = UNSET
