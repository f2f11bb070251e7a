"""The operations on the history of entries, an extension of the interface."""

from __future__ import annotations

from typing import Final

from workspaced.core.json_schema import TIMESTAMP
from workspaced.core.problems import Invalid, NotFoundProblem
from workspaced.core.timestamps import stamp
from workspaced.http.description import Parameter, RequestBody, Success, listed
from workspaced.http.openapi.shared import paging
from workspaced.http.operations import Call, Operation
from workspaced.http.pagination import Cursor, Page, read_page
from workspaced.http.responses import Response, etag, json_response
from workspaced.resources.data_sinks import entry_store, history_store, store
from workspaced.resources.data_sinks.history_records import (
    DataSinkComparisonRecord,
    DataSinkHistoryChanges,
    DataSinkHistoryRecord,
    EntryChangeRecord,
    change_records,
    difference_record,
    history_record,
    read_moments,
    state_record,
)
from workspaced.resources.data_sinks.history_store import ChangePosition, StoredDifference
from workspaced.resources.data_sinks.origin_store import find_origins
from workspaced.resources.data_sinks.records import WITH_ORIGIN
from workspaced.resources.data_sinks.sink_address import SinkName
from workspaced.resources.data_sinks.sink_routes import read_sink_name
from workspaced.resources.operation_rows import get, patch
from workspaced.resources.read_responses import cursor_numbers, versioned_response
from workspaced.security.permissions import DATA_SINKS_READ, DATA_SINKS_WRITE
from workspaced.settings.model import Limits
from workspaced.storage.port import ReadTransaction, Transaction

TAKE: Final = 100
_ONE: Final = "/v1/workspace/{workspace}/data-sink-history/{sink}"


async def get_history(call: Call) -> Response:
    """Get the history settings.

    How much of the history of a sink is kept, and the time from which all changes are known.
    200: The settings.
    """
    sink = await call.store.read_brief(lambda reader: store.get_sink(reader, call.workspace_id, read_sink_name(call)))
    return versioned_response(call, history_record(sink, call.settings.history), sink.version)


def update_history(tx: Transaction, call: Call, wanted: DataSinkHistoryChanges) -> Response:
    """Change the history settings.

    Only the given members change; null: the default of the service. With 0 changes the history ends, and is dropped.
    200: The settings.
    """
    changes = wanted.given()
    sink = store.get_sink(tx, call.workspace_id, read_sink_name(call))
    call.require_match(sink.version)
    if changes:
        kept = {"changes": sink.history_changes, "days": sink.history_days, **changes}
        history_store.configure(tx, call, sink, **kept)
        changed = tuple(f"history.{name}" for name in changes)
        call.note(tx, "data_sink.updated", sink.id, label=sink.label, workspace_id=sink.workspace_id, changed=changed)
        sink = store.get_sink(tx, call.workspace_id, SinkName(id=sink.id))
    return json_response(history_record(sink, call.settings.history), headers=(etag(sink.version),))


async def list_changes(call: Call) -> Response:
    """List the changes of an entry.

    The kept changes of an entry, the newest first, also of a deleted entry.
    200: The changes.
    404: `entry_not_found`: no entry has this key, and no change of this key is kept.
    """
    page, take, newest = _page(call)
    key = call.names["key"]
    wants_origin = call.flag("origin", default=False)

    def find(reader: ReadTransaction) -> tuple[list[EntryChangeRecord], str]:
        sink = store.get_sink(reader, call.workspace_id, read_sink_name(call))
        # The row of the cursor precedes the page. It has the value after the first change of the page.
        rows = history_store.changes_of(reader, sink, key, newest=newest, take=take + 2)
        entry = entry_store.find_entry(reader, sink, key)
        named = [*(row.old_origin for row in rows), entry.origin if entry else None]
        origins = find_origins(reader, named) if wants_origin else None
        if newest is None:
            if entry is None and not rows:
                raise NotFoundProblem(
                    "entry_not_found", "There is no such entry, and no former entry with this key is known."
                )
            after = state_record(entry.value, entry.data_type, entry.origin, origins) if entry else None
        elif rows and (rows[0].at, rows[0].number) == newest:
            after = state_record(rows[0].old_value, rows[0].old_data_type, rows[0].old_origin, origins)
            del rows[0]
        else:  # the change of the cursor was dropped, together with all older changes
            return [], ""
        records = change_records(rows[:take], after, origins)
        if len(rows) <= take:
            return records, ""
        last = rows[take - 1]
        return records, page.cursor_after(str(last.at), str(last.number))

    records, following = await call.store.read(find)
    headers = page.cursor_headers(total=None, following=following, path=call.path, query=call.query)
    return json_response(records, headers=headers)


async def compare(call: Call) -> Response:
    """Compare two moments.

    Keys with different values at the two instants, in the order of their first change after the earlier instant. A page
    examines at most $compared_changes changes. It may have fewer than `take` keys, or none, and still have a Link rel=next.
    200: The differences.
    """
    moments = read_moments(call.query, now=call.now)
    page, take, after = _page(call)

    def find(reader: ReadTransaction) -> tuple[DataSinkComparisonRecord, str]:
        sink = store.get_sink(reader, call.workspace_id, read_sink_name(call))
        kept = history_record(sink, call.settings.history)
        comparison = DataSinkComparisonRecord(
            since=stamp(moments.since),
            until=stamp(moments.until),
            known_from=kept.known_from,
            is_known=kept.changes > 0 and sink.history_from is not None and sink.history_from <= moments.since,
            differences=[],
            unknown_keys=[],
        )
        if not comparison.is_known:
            return comparison, ""
        found = history_store.differences(
            reader, sink, moments, after=after, take=take, most=call.settings.limits.compared_changes
        )
        comparison.differences = [difference_record(StoredDifference._make(row), moments) for row in found.rows]
        if after is None:
            comparison.unknown_keys = history_store.unknown_keys(reader, sink, moments)
        return comparison, page.cursor_after(*map(str, found.next_after)) if found.next_after else ""

    comparison, following = await call.store.read(find)
    # The next page compares the same instants.
    query = {**call.query, "to": comparison.until}
    headers = page.cursor_headers(total=None, following=following, path=call.path, query=query)
    return json_response(comparison, headers=headers)


def operations(limits: Limits) -> tuple[Operation, ...]:
    """Return the operations on the history of entries."""
    pages = tuple(one for one in paging(limits, (), take="100", cursors=True) if one.name in {"take", "cursor"})
    settings = Success(DataSinkHistoryRecord)
    return (
        get("data_sink_history.get", _ONE, DATA_SINKS_READ, get_history).described(success=settings, etag=True),
        patch(
            "data_sink_history.update", _ONE, DATA_SINKS_WRITE, update_history, body_bytes=limits.body_bytes
        ).described(
            body=RequestBody(DataSinkHistoryChanges, {"changes": 100, "days": 90}),
            success=Success(DataSinkHistoryRecord, ("ETag",)),
            etag=True,
        ),
        get("data_sink_history.compare", f"{_ONE}/comparison", DATA_SINKS_READ, compare).described(
            success=Success(DataSinkComparisonRecord, ("Links",)),
            query=(
                Parameter("from", "The earlier instant.", TIMESTAMP, required=True),
                Parameter("to", "The later instant; now by default.", TIMESTAMP),
                *pages,
            ),
        ),
        get("data_sink_history.list_changes", f"{_ONE}/entry/{{key}}", DATA_SINKS_READ, list_changes).described(
            success=listed(EntryChangeRecord, counted=False), query=(*pages, WITH_ORIGIN)
        ),
    )


def _page(call: Call) -> tuple[Page, int, ChangePosition | None]:
    """Return the page of the query, its length, and the change after which it begins. Raises Invalid: there is a ``skip``."""
    query = {"take": str(TAKE), **call.query}
    page = read_page(query, longest=call.settings.limits.page_length, sortable=frozenset())
    if page.skip:
        raise Invalid("bad_skip", "This list has no skip. Follow the Link rel=next instead.")
    cursor = Cursor.decoded(query["cursor"]) if query.get("cursor") else None
    return page, page.take or TAKE, ChangePosition(*cursor_numbers(cursor, 2)) if cursor else None
