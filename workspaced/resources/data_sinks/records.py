"""Records of data sinks and entries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from workspaced.core.json_body import encode
from workspaced.core.json_schema import FLAG, Timestamp, Uuid, ref
from workspaced.core.records import record_from
from workspaced.core.timestamps import stamp
from workspaced.http.description import Parameter
from workspaced.resources.data_sinks.origins import StoredOrigins, is_of_value, split_origin
from workspaced.resources.data_sinks.sink_address import visible_id
from workspaced.resources.data_sinks.values import StoredEntry, StoredSink
from workspaced.settings.model import WorkspacedSettings
from workspaced.storage.port import Row

WITH_ORIGIN: Final = Parameter("origin", "true: with the origin of each value, if its writer gave one.", FLAG)


class EntryOriginRecord(msgspec.Struct, rename="camel", gc=False):
    """The origin of a value, as its writer stated it; null: not given."""

    source: str
    file: str | None
    row: Annotated[int, Meta(ge=1)] | None
    run: str | None
    pipeline: str | None
    link: str | None


class DataSinkEntryRecord(msgspec.Struct, rename="camel", gc=False):
    """An entry of a data sink."""

    id: Uuid
    key: str
    data_sink_id: Uuid
    value: str | None
    data_type: str
    created_at: Timestamp
    updated_at: Timestamp
    created_by: str
    updated_by: str
    origin: Annotated[
        EntryOriginRecord | UnsetType | None,
        Meta(description="With `origin=true`: the origin of the last write; null: not given."),
    ] = UNSET
    former_origin: Annotated[
        EntryOriginRecord | UnsetType,
        Meta(
            description="With `origin=true`, if the last write had no origin: the origin of the last write that had one."
        ),
    ] = UNSET


class IconRecord(msgspec.Struct):
    """An icon, with the members that were given."""

    source: str | UnsetType | None = UNSET
    name: str | UnsetType | None = UNSET
    color: str | UnsetType | None = UNSET
    metadata: dict[str, Any] | UnsetType | None = UNSET


class DataSinkOnlyRecord(msgspec.Struct, rename="camel"):
    """A data sink without its entries."""

    id: Uuid
    workspace_id: Uuid
    label: str
    description: str | None
    tags: Annotated[str | None, Meta(description="Separated by commas; stored as it was sent.")]
    icon: Annotated[msgspec.Raw, Meta(extra_json_schema=ref("Icon"))] | str | None
    visible_id: Annotated[str, Meta(extra_json_schema={"pattern": "^[A-Z]{1,8}-[1-9][0-9]*$"})]
    serial: Annotated[int, Meta(ge=1)]
    created_at: Timestamp
    updated_at: Timestamp
    created_by: str
    updated_by: str
    protect_fed_entries: Annotated[
        bool | UnsetType,
        Meta(description="With `origin=true` in a read of one sink: whether entries with an origin are protected."),
    ] = UNSET


def entry_record(row: Row | StoredEntry, sink_id: str, origins: StoredOrigins | None = None) -> DataSinkEntryRecord:
    """Return the record of an entry. ``row`` has the columns of `StoredEntry`. ``origins`` None: omit the origin."""
    _, entry_id, key, value, data_type, _, _, created_at, updated_at, created_by, updated_by, origin = row
    made = DataSinkEntryRecord(
        entry_id, key, sink_id, value, data_type, stamp(created_at), stamp(updated_at), created_by, updated_by
    )
    if origins is not None:
        made.origin = origin_record(origin, origins)
        if origin is not None and made.origin is None:
            made.former_origin = origin_record(-origin, origins) or UNSET
    return made


def origin_record(origin: int | None, origins: StoredOrigins) -> EntryOriginRecord | None:
    """Return the record of the origin of an entry or a former value; None if no origin was given."""
    if not is_of_value(origin):
        return None
    number, row = split_origin(origin)
    found = origins[number]
    return EntryOriginRecord(
        found.source, found.file or None, row or None, found.run or None, found.pipeline or None, found.link or None
    )


def sink_record(sink: StoredSink, settings: WorkspacedSettings, *, has_protection: bool = False) -> DataSinkOnlyRecord:
    """Return the record of a sink without its entries.

    ``has_protection``: include ``protectFedEntries``, which is an extension of the interface.
    """
    icon: msgspec.Raw | str | None = sink.icon
    if sink.icon is not None and not settings.icon_as_text:
        icon = msgspec.Raw(sink.icon.encode())
    name = visible_id(sink.serial, prefix=settings.visible_id_prefix)
    protects = bool(sink.protect_fed_entries) if has_protection else UNSET
    return record_from(DataSinkOnlyRecord, sink, icon=icon, visible_id=name, protect_fed_entries=protects)


def open_sink(sink: StoredSink, settings: WorkspacedSettings, *, has_protection: bool = False) -> bytes:
    """Return the JSON of a sink up to its first entry. After the entries, the caller adds ``]}``."""
    return encode(sink_record(sink, settings, has_protection=has_protection))[:-1] + b',"entries":['


def joined_entries(rows: Iterable[Row | StoredEntry], sink_id: str, origins: StoredOrigins | None = None) -> bytes:
    """Return the JSON of entries, separated by commas, without brackets."""
    return encode([entry_record(row, sink_id, origins) for row in rows])[1:-1]


def whole_sink(sink: StoredSink, entries: Iterable[StoredEntry], settings: WorkspacedSettings) -> bytes:
    """Return the JSON of a sink with ``entries``."""
    return open_sink(sink, settings) + joined_entries(entries, sink.id) + b"]}"
