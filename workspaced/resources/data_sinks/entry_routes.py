"""The handlers of operations on single entries (contract DS4, DS8, DS9, DS10)."""

from __future__ import annotations

from urllib.parse import quote

import msgspec

from workspaced.http.operations import Call
from workspaced.http.responses import NO_CONTENT, Response, etag, json_response
from workspaced.resources.data_sinks import entry_store, store
from workspaced.resources.data_sinks.events import record_entry
from workspaced.resources.data_sinks.origin_store import find_origins
from workspaced.resources.data_sinks.origins import origin_text
from workspaced.resources.data_sinks.records import DataSinkEntryRecord, entry_record
from workspaced.resources.data_sinks.rules import DataSinkEntryChanges, SingleDataSinkEntry
from workspaced.resources.data_sinks.sink_routes import read_sink_name
from workspaced.resources.data_sinks.values import StoredEntry, StoredSink, written
from workspaced.resources.read_responses import versioned_response
from workspaced.storage.port import ReadTransaction, Transaction


async def get_entry(call: Call) -> Response:
    """Get an entry (contract DS4).

    One entry by its key.
    200: The entry.
    """
    wants_origin = call.flag("origin", default=False)

    def find(reader: ReadTransaction) -> tuple[DataSinkEntryRecord, int]:
        sink, entry = _get_by_path(reader, call)
        origins = find_origins(reader, [entry.origin]) if wants_origin else None
        return entry_record(entry, sink.id, origins), entry.version

    return versioned_response(call, *await call.store.read_brief(find))


def create_entry(tx: Transaction, call: Call, new: SingleDataSinkEntry) -> Response:
    """Create an entry (contract DS8).

    A new entry; a key that exists in the sink is a conflict. `mass` overwrites instead.
    201: The entry.
    409: `duplicate_key`: `existingId` has the key. `id_in_use`: the id is in use. `quota_exceeded`: the quota of the workspace
    or of the sink is used up.
    """
    sink = store.get_sink(tx, call.workspace_id, read_sink_name(call))
    entry = entry_store.create_entry(tx, call, sink, new)
    origin = origin_text(new.origin.shared(), new.origin.row) if new.origin else ""
    record_entry(tx, call, sink, before=None, after=entry, origin=origin)
    location = f"/v1/workspace/{sink.workspace_id}/data-sink/{sink.id}/{quote(entry.key, safe='')}"
    headers = (("Location", location), etag(entry.version))
    return json_response(entry_record(entry, sink.id), status=201, headers=headers, written=written(None, entry))


def update_entry(tx: Transaction, call: Call, changes: DataSinkEntryChanges) -> Response:
    """Change an entry (contract DS9).

    Only the given members change; null clears the value. The key can't change.
    200: The entry.
    422: `entry_protected`: the sink protects the entry.
    """
    sink, before = _get_by_path(tx, call)
    call.require_match(before.version)
    entry = entry_store.update_entry(tx, call, sink, before, changes.given())
    record_entry(tx, call, sink, before=before, after=entry)
    return json_response(entry_record(entry, sink.id), headers=(etag(entry.version),), written=written(before, entry))


def delete_entry(tx: Transaction, call: Call) -> Response:
    """Delete an entry (contract DS10).

    Deletes one entry.
    200: It is deleted.
    422: `entry_protected`: the sink protects the entry.
    """
    sink, entry = _get_by_path(tx, call)
    call.require_match(entry.version)
    entry_store.delete_entry(tx, call, sink, entry)
    record_entry(tx, call, sink, before=entry, after=None)
    return msgspec.structs.replace(NO_CONTENT, written=written(entry, None))


def _get_by_path(reader: ReadTransaction, call: Call) -> tuple[StoredSink, StoredEntry]:
    sink = store.get_sink(reader, call.workspace_id, read_sink_name(call))
    return sink, entry_store.get_entry(reader, sink, call.names["key"])
