"""The handlers of operations on data sinks (contract DS1, DS2, DS3, DS5, DS6, DS7)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Final

from ingestd.wire import names
from workspaced.http.operations import Call, Work
from workspaced.http.pagination import Page
from workspaced.http.responses import NO_CONTENT, Headers, Response, etag
from workspaced.http.streamed_response import Contents, stream_response
from workspaced.resources.data_sinks import csv_form, entry_store, mass_store, store
from workspaced.resources.data_sinks.csv_form import csv_parts
from workspaced.resources.data_sinks.entry_pages import read_entries, read_listing
from workspaced.resources.data_sinks.events import record_sink
from workspaced.resources.data_sinks.origin_store import find_origins
from workspaced.resources.data_sinks.records import (
    DataSinkOnlyRecord,
    joined_entries,
    open_sink,
    sink_record,
    whole_sink,
)
from workspaced.resources.data_sinks.rules import DataSinkChanges, NewDataSink
from workspaced.resources.data_sinks.sink_address import SinkName, sink_name
from workspaced.resources.data_sinks.values import StoredSink
from workspaced.resources.read_responses import list_headers, list_response, read_list_page, select_page
from workspaced.storage.port import ReadTransaction, Row, Transaction

SORTABLE: Final = {
    "serial": "serial",
    "label": "label",
    "createdAt": "created_at",
    "updatedAt": "updated_at",
    "id": "id",
}


async def get_sink(call: Call) -> Response:
    """Get a data sink (contract DS1).

    The sink with all its entries in the order of creation; entries of one request are ordered by key. The query can select a
    search, filters, another order, a page, or CSV. A page of a search or of filters examines at most $walked_rows entries. It
    may have fewer entries than `take`, or none, and still have a Link rel=next. In a sink with more than $walked_rows entries,
    the matches of a search and of filters are not counted, and only `key` and `createdAt` can sort, unless `prefix` selects
    fewer entries. `naturalKey` sorts 2 before 10. `value` sorts numbers by their size, then other texts, then nulls.
    200: The sink.
    """
    listing = read_listing(call.query, call.settings.limits)
    has_origins = call.flag("origin", default=False)

    def contents(reader: ReadTransaction) -> Contents:
        sink = store.get_sink(reader, call.workspace_id, read_sink_name(call))
        tag = etag(sink.version)
        if call.has_seen(sink.version):
            return Contents(headers=(tag,), records=0, parts=iter(()), unchanged=True)
        headers: Headers = ()
        records, rows = sink.entry_count, entry_store.entry_chunks(reader, sink)
        if listing.partial:
            found = read_entries(reader, sink, listing)
            records, rows = found.records, found.rows
            headers = listing.page.cursor_headers(
                total=found.total, following=found.next, path=call.path, query=call.query
            )
        as_csv = listing.form == "csv"
        return Contents(
            headers=(tag, *headers),
            records=records,
            parts=csv_parts(rows) if as_csv else _sink_parts(reader, rows, sink, call, has_origins=has_origins),
            media_type=csv_form.MEDIA_TYPE if as_csv else names.JSON,
        )

    return await stream_response(call, contents)


async def list_whole_sinks(call: Call) -> Response:
    """List data sinks with their entries (contract DS2).

    Every sink of the workspace, by serial, with all its entries.
    200: The sinks.
    """
    page = read_list_page(call, SORTABLE)

    def contents(reader: ReadTransaction) -> Contents:
        total, sinks = _select_sinks(reader, call, page)
        return Contents(
            headers=list_headers(call, page, total),
            records=sum(sink.entry_count for sink in sinks),
            parts=_list_parts(reader, sinks, call),
        )

    return await stream_response(call, contents)


async def list_sinks(call: Call) -> Response:
    """List data sinks (contract DS3).

    Every sink of the workspace, by serial, without its entries.
    200: The sinks.
    """
    page = read_list_page(call, SORTABLE)

    def find(reader: ReadTransaction) -> tuple[int, list[DataSinkOnlyRecord]]:
        total, sinks = _select_sinks(reader, call, page)
        return total, [sink_record(sink, call.settings) for sink in sinks]

    return await list_response(call, page, find)


def create_sink(call: Call, new: NewDataSink) -> Work:
    """Create a data sink (contract DS5).

    The sink and the given entries are created together, or nothing is.
    201: The sink with its entries, in the order of the request.
    409: `id_in_use`: the id is in use. `quota_exceeded`: the quota of the workspace or of the sink is used up.
    """
    sink_id = new.id or str(uuid.uuid4())

    def act(tx: Transaction) -> Response:
        sink = store.create_sink(tx, call, new, sink_id=sink_id)
        changes = [entry.as_change() for entry in new.entries]
        by_key = mass_store.entries_of(tx, sink, changes) if changes else {}
        body = whole_sink(sink, [by_key[entry.key] for entry in new.entries], call.settings)
        record_sink(tx, call, before=None, after=sink, body=body)
        location = ("Location", f"/v1/workspace/{sink.workspace_id}/data-sink/{sink.id}")
        headers = (("Content-Type", names.JSON), location, etag(sink.version))
        return Response(status=201, headers=headers, body=body)

    return Work(act=act, weight=1 + len(new.entries))


def update_sink(tx: Transaction, call: Call, changes: DataSinkChanges) -> Response:
    """Change a data sink (contract DS6).

    Only the given members change; null clears a member. Entries do not change.
    200: Done.
    """
    sink = store.get_sink(tx, call.workspace_id, read_sink_name(call))
    call.require_match(sink.version)
    store.update_sink(tx, call, sink, changes.given())
    after = store.get_sink(tx, call.workspace_id, SinkName(id=sink.id))
    record_sink(tx, call, before=sink, after=after)
    return NO_CONTENT


def delete_sink(tx: Transaction, call: Call) -> Response:
    """Delete a data sink (contract DS7).

    Deletes the sink with all its entries.
    200: It is deleted.
    """
    sink = store.get_sink(tx, call.workspace_id, read_sink_name(call))
    call.require_match(sink.version)
    store.delete_sink(tx, sink)
    record_sink(tx, call, before=sink, after=None)
    return NO_CONTENT


def read_sink_name(call: Call) -> SinkName | None:
    """Return the name of the sink in the path; None if the segment can't be a sink's name."""
    return sink_name(call.names["sink"], prefix=call.settings.visible_id_prefix)


def _select_sinks(reader: ReadTransaction, call: Call, page: Page) -> tuple[int, Sequence[StoredSink]]:
    sinks = store.list_sinks(reader, call.workspace_id)
    return len(sinks), select_page(page, sinks, SORTABLE)


def _sink_parts(
    reader: ReadTransaction, chunks: Iterator[list[Row]], sink: StoredSink, call: Call, *, has_origins: bool = False
) -> Iterator[bytes]:
    yield open_sink(sink, call.settings, has_protection=has_origins)
    for index, rows in enumerate(chunks):
        origins = find_origins(reader, [row[-1] for row in rows]) if has_origins else None
        yield (b"," if index else b"") + joined_entries(rows, sink.id, origins)
    yield b"]}"


def _list_parts(reader: ReadTransaction, sinks: Sequence[StoredSink], call: Call) -> Iterator[bytes]:
    yield b"["
    for index, sink in enumerate(sinks):
        if index:
            yield b","
        yield from _sink_parts(reader, entry_store.entry_chunks(reader, sink), sink, call)
    yield b"]"
