"""The table of the operations of data sinks (contract M1)."""

from __future__ import annotations

from typing import Final

from ingestd.wire import bulk, origin, writer
from workspaced.core.json_schema import FLAG, STRING, array, choice, ref, string
from workspaced.http import bodies
from workspaced.http.description import Parameter, RequestBody, Success, links, listed
from workspaced.http.openapi.shared import paging
from workspaced.http.operations import Operation, PathHeaders
from workspaced.resources.data_sinks import entry_routes, mass_routes, sink_routes
from workspaced.resources.data_sinks.entry_filters import filter_parameters
from workspaced.resources.data_sinks.entry_pages import FORMATS, SEARCHED
from workspaced.resources.data_sinks.entry_pages import SORTABLE as ENTRY_SORTABLE
from workspaced.resources.data_sinks.records import WITH_ORIGIN, DataSinkEntryRecord, DataSinkOnlyRecord
from workspaced.resources.data_sinks.rules import (
    DataSinkChanges,
    DataSinkEntryChanges,
    NewDataSink,
    SingleDataSinkEntry,
)
from workspaced.resources.data_sinks.sink_routes import SORTABLE as SINK_SORTABLE
from workspaced.resources.operation_rows import delete, get, patch, post
from workspaced.security.permissions import DATA_SINKS_PUSH as PUSH
from workspaced.security.permissions import DATA_SINKS_READ as READ
from workspaced.security.permissions import DATA_SINKS_WRITE as WRITE
from workspaced.settings.model import Limits

_ALL = "/v1/workspace/{workspace}/data-sink"
_ONE = f"{_ALL}/{{sink}}"
_ENTRY = f"{_ONE}/{{key}}"
_SINK_LINKS: Final = links(
    {"workspaceId": "$request.path.workspaceId", "dataSinkId": "$response.body#/id"},
    get="data_sinks.get",
    update="data_sinks.update",
    delete="data_sinks.delete",
    createEntry="data_sinks.create_entry",
    mass="data_sinks.mass",
)
_ENTRY_LINKS: Final = links(
    {
        "workspaceId": "$request.path.workspaceId",
        "dataSinkId": "$response.body#/dataSinkId",
        "key": "$response.body#/key",
    },
    get="data_sinks.get_entry",
    update="data_sinks.update_entry",
    delete="data_sinks.delete_entry",
    mass="data_sinks.mass_by_key",
)
_TANK: Final = {"key": "tank.mass", "value": "15 kg", "dataType": "scalar"}


def operations(limits: Limits) -> tuple[Operation, ...]:
    """Return the operations in the order of the interface document."""
    small, large = limits.body_bytes, limits.bulk_body_bytes
    entry = Success(DataSinkEntryRecord, ("ETag",))
    create = Parameter("create", "false: an unknown key is 404 instead of a new entry.", FLAG)
    partial = Parameter("partial", "true: write the valid items of a bulk, and report the result of each item.", FLAG)
    dry_run = Parameter(
        "dryRun", "true: write nothing; report the effect of each item of a bulk on the present entry.", FLAG
    )
    present_origin = Parameter("origin", "true: a dry run with the origin of each present entry.", FLAG)
    return (
        get("data_sinks.get", _ONE, READ, sink_routes.get_sink).described(
            success=Success(ref("DataSink"), ("PartCount", "Links"), also={"text/csv": STRING}),
            query=(
                Parameter(
                    "search",
                    "Only entries with this text in their key. Upper and lower case of A-Z are equal.",
                    string(longest=limits.key_length),
                ),
                Parameter(
                    "searchIn",
                    "Where `search` is searched: in keys, in values, or in both. A search of values is not counted, "
                    f"examines at most {limits.searched_characters} characters for a page, "
                    "and is possible in the order of createdAt or key.",
                    choice(*SEARCHED),
                ),
                *filter_parameters(limits),
                Parameter("format", "csv: the entries only, with a header line.", choice(*FORMATS)),
                WITH_ORIGIN,
                *paging(limits, ENTRY_SORTABLE, most_skipped=limits.walked_rows, cursors=True),
            ),
            etag=True,
        ),
        get("data_sinks.list_whole", _ALL, READ, sink_routes.list_whole_sinks, document_form=True).described(
            success=Success(array(ref("DataSink")), ("Count", "Links")), query=paging(limits, SINK_SORTABLE)
        ),
        get("data_sinks.list", f"{_ALL}/list", READ, sink_routes.list_sinks, document_form=True).described(
            success=listed(DataSinkOnlyRecord), query=paging(limits, SINK_SORTABLE)
        ),
        get("data_sinks.get_entry", _ENTRY, READ, entry_routes.get_entry).described(
            success=Success(DataSinkEntryRecord), query=(WITH_ORIGIN,), etag=True
        ),
        post(
            "data_sinks.create", _ALL, WRITE, prepare=sink_routes.create_sink, client_id=True, body_bytes=large
        ).described(
            body=RequestBody(
                NewDataSink, {"label": "Mass budget", "description": "From the CAD export", "entries": [_TANK]}
            ),
            success=Success(ref("DataSink"), ("ETag", "Location"), status=201, links=_SINK_LINKS),
        ),
        patch(
            "data_sinks.update",
            _ONE,
            WRITE,
            sink_routes.update_sink,
            client_id=True,
            document_form=True,
            body_bytes=small,
        ).described(body=RequestBody(DataSinkChanges, {"label": "Mass budget, flight model"}), etag=True),
        delete("data_sinks.delete", _ONE, WRITE, sink_routes.delete_sink, client_id=True).described(etag=True),
        post(
            "data_sinks.create_entry", _ONE, PUSH, entry_routes.create_entry, client_id=True, body_bytes=small
        ).described(
            body=RequestBody(SingleDataSinkEntry, _TANK),
            success=Success(DataSinkEntryRecord, ("ETag", "Location"), status=201, links=_ENTRY_LINKS),
        ),
        patch(
            "data_sinks.update_entry", _ENTRY, PUSH, entry_routes.update_entry, client_id=True, body_bytes=small
        ).described(body=RequestBody(DataSinkEntryChanges, {"value": "14.2 kg"}), success=entry, etag=True),
        delete("data_sinks.delete_entry", _ENTRY, WRITE, entry_routes.delete_entry, client_id=True).described(
            etag=True
        ),
        post(
            "data_sinks.mass",
            f"{_ONE}/mass",
            PUSH,
            prepare=mass_routes.update_mass,
            document_form=True,
            body_bytes=large,
        ).described(
            body=RequestBody(ref("Mass"), {"key": "tank.mass", "value": "15 kg"}),
            success=Success(ref("MassResponse"), ("SingleETag", "Stale", "Applied")),
            query=(create, partial, dry_run, present_origin),
            headers=("PreferMinimal",),
        ),
        post(
            "data_sinks.mass_by_key",
            _ENTRY,
            PUSH,
            prepare=mass_routes.update_mass_by_key,
            document_form=True,
            body_bytes=large,
        ).described(
            body=RequestBody(ref("KeyedValue"), {"value": "15 kg"}),
            success=Success(DataSinkEntryRecord, ("SingleETag", "Stale")),
            query=(create,),
        ),
    )


def path_headers(limits: Limits) -> PathHeaders:
    """Return the headers that announce bulk calls, the writer fence, origins and compressed bodies (contract M9, M11, M12)."""
    most = bulk.BulkLimits(max_items=limits.bulk_items, max_bytes=limits.bulk_body_bytes)
    origins = origin.OriginLimits(max_origins=limits.bulk_origins, max_text=limits.origin_length)
    return PathHeaders(
        path=_ALL,
        headers=(
            (bulk.HEADER, str(most)),
            (writer.FENCE_HEADER, writer.FENCE),
            (origin.HEADER, str(origins)),
            (bodies.CODING_HEADER, bodies.SUPPORTED_CODING),
        ),
    )
