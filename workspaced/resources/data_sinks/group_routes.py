"""The operation on the groups of keys, an extension of the interface."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from workspaced.core.json_schema import Count, string
from workspaced.core.problems import Invalid
from workspaced.http.description import Parameter, listed
from workspaced.http.openapi.shared import paging
from workspaced.http.operations import Call, Operation
from workspaced.http.pagination import Cursor, read_page
from workspaced.http.responses import Response, json_response
from workspaced.resources.data_sinks import store
from workspaced.resources.data_sinks.entry_filters import read_filters
from workspaced.resources.data_sinks.entry_groups import EntryGroup, GroupPosition, read_groups
from workspaced.resources.data_sinks.records import DataSinkEntryRecord, entry_record
from workspaced.resources.data_sinks.sink_routes import read_sink_name
from workspaced.resources.data_sinks.values import StoredSink
from workspaced.resources.operation_rows import get
from workspaced.security.permissions import DATA_SINKS_READ
from workspaced.settings.model import Limits
from workspaced.storage.port import ReadTransaction

TAKE: Final = 100


class EntryGroupRecord(msgspec.Struct, rename="camel", kw_only=True):
    """A group of entries with the same beginning of their keys, or one entry."""

    prefix: Annotated[str | None, Meta(description="Ends with a dot or a slash; null: this is a single entry.")]
    count: Count
    is_exact: Annotated[bool, Meta(description="false: the group has more entries than `count`.")]
    entry: DataSinkEntryRecord | None


async def list_groups(call: Call) -> Response:
    """List the groups of keys.

    The keys that begin with `prefix`, grouped by their text up to the next `.` or `/`, in the order of keys. A group of one
    entry is returned as this entry.
    200: The groups and entries.
    """
    page = read_page({"take": str(TAKE), **call.query}, longest=call.settings.limits.page_length, sortable=frozenset())
    if page.skip:
        raise Invalid("bad_skip", "This list has no skip. Follow the Link rel=next instead.")
    after = _position(call.query.get("cursor", ""))
    prefix = read_filters({"prefix": call.query.get("prefix", "")}, call.settings.limits).prefix
    take = page.take or TAKE

    def find(reader: ReadTransaction) -> tuple[list[EntryGroupRecord], str]:
        sink = store.get_sink(reader, call.workspace_id, read_sink_name(call))
        counted = call.settings.limits.walked_rows
        groups, has_more = read_groups(reader, sink, prefix, after=after, take=take, counted=counted)
        following = page.cursor_after(*groups[-1].position) if has_more else ""
        return [_record(one, sink) for one in groups], following

    records, following = await call.store.read(find)
    headers = page.cursor_headers(total=None, following=following, path=call.path, query=call.query)
    return json_response(records, headers=headers)


def _position(cursor: str) -> GroupPosition | None:
    if not cursor:
        return None
    position = Cursor.decoded(cursor).position
    if len(position) != len(GroupPosition._fields):
        raise Cursor.refused()
    return GroupPosition._make(position)


def _record(group: EntryGroup, sink: StoredSink) -> EntryGroupRecord:
    entry = entry_record(group.entry, sink.id) if group.entry else None
    return EntryGroupRecord(prefix=group.prefix, count=group.count, is_exact=group.exact, entry=entry)


def operations(limits: Limits) -> tuple[Operation, ...]:
    """Return the operation that lists the groups of keys."""
    pages = tuple(one for one in paging(limits, (), take=str(TAKE), cursors=True) if one.name in {"take", "cursor"})
    prefix = Parameter("prefix", "Only keys that begin with this text.", string(longest=limits.key_length))
    return (
        get(
            "data_sinks.list_groups",
            "/v1/workspace/{workspace}/data-sink-groups/{sink}",
            DATA_SINKS_READ,
            list_groups,
        ).described(success=listed(EntryGroupRecord, counted=False), query=(prefix, *pages)),
    )
