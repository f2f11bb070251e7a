"""Sinks and entries as the document shows them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from workspaced.core.json_body import encode
from workspaced.core.timestamps import stamp
from workspaced.resources.data_sinks.sink_address import visible_id
from workspaced.resources.data_sinks.values import StoredEntry, StoredSink
from workspaced.settings.model import Settings
from workspaced.storage.port import Row


class EntryRecord(msgspec.Struct, rename="camel", gc=False):
    """The document's data sink entry."""

    id: str
    key: str
    data_sink_id: str
    value: str | None
    data_type: str
    created_at: str
    updated_at: str
    created_by: str
    updated_by: str


class SinkRecord(msgspec.Struct, rename="camel"):
    """The document's data sink without its entries. ``icon`` is JSON already."""

    id: str
    workspace_id: str
    label: str
    description: str | None
    tags: str | None
    icon: msgspec.Raw | str | None
    visible_id: str
    serial: int
    created_at: str
    updated_at: str
    created_by: str
    updated_by: str


def entry_record(row: Row | StoredEntry, sink_id: str) -> EntryRecord:
    """``row`` is in `StoredEntry`'s order."""
    _, entry_id, key, value, data_type, _, _, created_at, updated_at, created_by, updated_by = row
    return EntryRecord(
        entry_id, key, sink_id, value, data_type, stamp(created_at), stamp(updated_at), created_by, updated_by
    )


def sink_record(sink: StoredSink, settings: Settings) -> SinkRecord:
    """A sink."""
    icon: msgspec.Raw | str | None = sink.icon
    if sink.icon is not None and not settings.icon_as_text:
        icon = msgspec.Raw(sink.icon.encode())
    return SinkRecord(
        id=sink.id,
        workspace_id=sink.workspace_id,
        label=sink.label,
        description=sink.description,
        tags=sink.tags,
        icon=icon,
        visible_id=visible_id(sink.serial, prefix=settings.visible_id_prefix),
        serial=sink.serial,
        created_at=stamp(sink.created_at),
        updated_at=stamp(sink.updated_at),
        created_by=sink.created_by,
        updated_by=sink.updated_by,
    )


def open_sink(sink: StoredSink, settings: Settings) -> bytes:
    """The JSON of a sink up to the opened list of its entries; ``]}`` closes both."""
    return encode(sink_record(sink, settings))[:-1] + b',"entries":['


def joined_entries(rows: Iterable[Row | StoredEntry], sink_id: str) -> bytes:
    """The JSON of entries, separated by commas and without brackets."""
    return encode([entry_record(row, sink_id) for row in rows])[1:-1]


def whole_sink(sink: StoredSink, entries: Iterable[StoredEntry], settings: Settings) -> bytes:
    """The JSON of a sink with these entries."""
    return open_sink(sink, settings) + joined_entries(entries, sink.id) + b"]}"
