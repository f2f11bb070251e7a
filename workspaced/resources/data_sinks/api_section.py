"""The section of the API description for data sinks."""

from __future__ import annotations

from typing import Final

from workspaced.core.json_schema import (
    COUNT,
    FLAG,
    STRING,
    UUID,
    Schema,
    array,
    choice,
    nullable,
    record_schemas,
    ref,
    response,
    string,
)
from workspaced.http.openapi.description import (
    ApiSection,
    Body,
    OperationDescription,
    Parameter,
    Success,
    links,
    listed,
)
from workspaced.http.openapi.shared import paging
from workspaced.resources.data_sinks.entry_pages import FORMATS, SEARCHED
from workspaced.resources.data_sinks.entry_pages import SORTABLE as ENTRY_SORTABLE
from workspaced.resources.data_sinks.records import DataSinkEntryRecord, DataSinkOnlyRecord, IconRecord
from workspaced.resources.data_sinks.rules import Key, request_schemas
from workspaced.resources.data_sinks.sink_routes import SORTABLE
from workspaced.settings.model import Limits

SINK_NAME: Final = r"^([0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|[A-Za-z]{1,8}-[1-9][0-9]{0,8})$"
_PATH: Final = {
    "workspace": Parameter("workspaceId", "The workspace.", UUID),
    "sink": Parameter("dataSinkId", "The sink's id, or its visibleId such as SNK-7.", string(pattern=SINK_NAME)),
    "key": Parameter(
        "key",
        "The entry's key, percent-encoded (`a/b` is `a%2Fb`). If no entry has this key, an entry's id.",
        string(shortest=1),
    ),
}
_ABOUT: Final = """\
A data sink is a named container of key/value entries inside a workspace. A value is text and is stored byte for byte.
`mass` sets many entries with one request: the body is one object, a list, or `{"entries": […]}`.
"""
_NO_SINK: Final = "`data_sink_not_found`: the workspace has no such sink."
_NO_ENTRY: Final = f"{_NO_SINK} `entry_not_found`: the sink has no such entry."
_CONFLICTS: Final = "`id_in_use`: the id is in use. `quota_exceeded`: the workspace or sink holds as many as it may."
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
_ENTRY: Final = ref("DataSinkEntry")
_TANK: Final = {"key": "tank.mass", "value": "15 kg", "dataType": "scalar"}


def api_section(limits: Limits) -> ApiSection:
    """Return the section: sinks, entries, and mass updates."""
    new_key = Parameter("key", "The entry's key, percent-encoded.", Key().schema(limits))
    return ApiSection(
        title="Data sinks",
        description=_ABOUT,
        operations=(*_reads(limits), *_sink_writes(), *_entry_writes(), *_mass(limits)),
        path={**_PATH, "data_sinks.mass_by_key:key": new_key},
        schemas=_schemas(limits),
    )


def _reads(limits: Limits) -> tuple[OperationDescription, ...]:
    search = string(longest=limits.key_length)
    return (
        OperationDescription(
            "data_sinks.get",
            "Get a data sink",
            "The sink with all its entries in the order of their creation, those of one request by key. The query selects "
            "the entries of a search, another order, a page, or CSV. A page of a search examines at most "
            f"{limits.walked_rows} entries: it may have fewer than `take`, or none, and still a Link rel=next. "
            "For a sink with more entries than that, a search is not counted, and sortedBy=updatedAt is rejected.",
            Success("The sink.", ref("DataSink"), also={"text/csv": STRING}, headers=("PartCount", "Links")),
            query=(
                Parameter("search", "Only entries that have this in their key, in any case of A-Z.", search),
                Parameter(
                    "searchIn",
                    "Where `search` is looked for: in keys, in values, or in both. A search of values is not counted, "
                    f"examines at most {limits.searched_characters} characters for a page, "
                    "and is possible in the order of createdAt or key.",
                    choice(*SEARCHED),
                ),
                Parameter("format", "csv: the entries only, with a header line.", choice(*FORMATS)),
                *paging(limits, ENTRY_SORTABLE, most_skipped=limits.walked_rows, cursors=True),
            ),
            refusals={404: _NO_SINK},
            etag=True,
        ),
        OperationDescription(
            "data_sinks.list_whole",
            "List data sinks with their entries",
            "Every sink of the workspace, by serial, with all its entries.",
            listed("The sinks.", "DataSink"),
            query=paging(limits, SORTABLE),
        ),
        OperationDescription(
            "data_sinks.list",
            "List data sinks",
            "Every sink of the workspace, by serial, without its entries.",
            listed("The sinks.", "DataSinkOnly"),
            query=paging(limits, SORTABLE),
        ),
        OperationDescription(
            "data_sinks.get_entry",
            "Get an entry",
            "One entry by its key.",
            Success("The entry.", _ENTRY),
            refusals={404: _NO_ENTRY},
            etag=True,
        ),
    )


def _sink_writes() -> tuple[OperationDescription, ...]:
    new = {"label": "Mass budget", "description": "From the CAD export", "entries": [_TANK]}
    return (
        OperationDescription(
            "data_sinks.create",
            "Create a data sink",
            "A sink, with entries if they are given; all of it or nothing.",
            Success(
                "The sink with its entries, in the order of the request.",
                ref("DataSink"),
                status=201,
                headers=("ETag", "Location"),
                links=_SINK_LINKS,
            ),
            body=Body(ref("NewDataSink"), new),
            refusals={409: _CONFLICTS},
        ),
        OperationDescription(
            "data_sinks.update",
            "Change a data sink",
            "Only the given members change; null clears one. Entries do not change.",
            Success("Done."),
            body=Body(ref("DataSinkChanges"), {"label": "Mass budget, flight model"}),
            refusals={404: _NO_SINK},
            etag=True,
        ),
        OperationDescription(
            "data_sinks.delete",
            "Delete a data sink",
            "The sink and all its entries.",
            Success("It is deleted."),
            refusals={404: _NO_SINK},
            etag=True,
        ),
    )


def _entry_writes() -> tuple[OperationDescription, ...]:
    return (
        OperationDescription(
            "data_sinks.create_entry",
            "Create an entry",
            "A new entry; a key that exists in the sink is a conflict. `mass` overwrites instead.",
            Success("The entry.", _ENTRY, status=201, headers=("ETag", "Location"), links=_ENTRY_LINKS),
            body=Body(ref("NewDataSinkEntry"), _TANK),
            refusals={404: _NO_SINK, 409: f"`duplicate_key`: `existingId` has the key. {_CONFLICTS}"},
        ),
        OperationDescription(
            "data_sinks.update_entry",
            "Change an entry",
            "Only the given members change; a null value clears it. The key can't change.",
            Success("The entry.", _ENTRY, headers=("ETag",)),
            body=Body(ref("DataSinkEntryChanges"), {"value": "14.2 kg"}),
            refusals={404: _NO_ENTRY},
            etag=True,
        ),
        OperationDescription(
            "data_sinks.delete_entry",
            "Delete an entry",
            "One entry.",
            Success("It is deleted."),
            refusals={404: _NO_ENTRY},
            etag=True,
        ),
    )


def _mass(limits: Limits) -> tuple[OperationDescription, ...]:
    create = Parameter("create", "false: an unknown key is 404 instead of a new entry.", FLAG)
    partial = Parameter("partial", "true: write the valid items of a bulk, and report the result of each item.", FLAG)
    dry_run = Parameter(
        "dryRun", "true: write nothing; report the effect of each item of a bulk on the present entry.", FLAG
    )
    headers = ("SingleETag", "Stale", "Applied")
    refusals = {404: _NO_ENTRY, 409: _CONFLICTS}
    return (
        OperationDescription(
            "data_sinks.mass",
            "Set entries",
            "Sets the value of one entry or of many; unknown keys become entries. A bulk is written whole or not at all, "
            f"unless `partial=true`. It has at most {limits.bulk_items} items and {limits.bulk_body_bytes} bytes. "
            'A bulk item may be `{"key": …, "delete": true}`. A value that was observed before the stored one is ignored.',
            Success(
                "The entry; or the entries in the order of the items; or counts, or results.",
                ref("MassResponse"),
                headers=headers,
            ),
            query=(create, partial, dry_run),
            body=Body(ref("Mass"), {"key": "tank.mass", "value": "15 kg"}),
            refusals=refusals,
            headers=("PreferMinimal",),
        ),
        OperationDescription(
            "data_sinks.mass_by_key",
            "Set an entry",
            "Sets the value of the entry that the path names; an unknown key becomes an entry.",
            Success("The entry.", _ENTRY, headers=headers[:2]),
            query=(create,),
            body=Body(ref("KeyedValue"), {"value": "15 kg"}),
            refusals=refusals,
        ),
    )


def _schemas(limits: Limits) -> dict[str, Schema]:
    """Return the schemas of bodies and records, with what types can't express, by their names."""
    records = record_schemas(DataSinkEntryRecord, DataSinkOnlyRecord, IconRecord)
    only, entry = records["DataSinkOnly"], ref("DataSinkEntry")
    counts = dict.fromkeys(("accepted", "created", "updated", "unchanged", "deleted"), COUNT)
    error = {"code": STRING, "detail": STRING, "error": STRING, "errors": array(ref("Mistake"))}
    result = {
        "index": COUNT,
        "status": {"type": "integer"},
        "entry": nullable(entry),
        "effect": {"enum": ["created", "updated", "unchanged", "deleted"]},
        "error": response(error, optional={"errors"}),
    }
    results = array(response(result, optional={"entry", "effect", "error"}))
    return {
        **records,
        **request_schemas(limits),
        "DataSinkOnly": {**only, "not": {"required": ["entries"]}},
        "DataSink": {
            "type": "object",
            "properties": {**only["properties"], "entries": array(entry)},
            "required": [*only["required"], "entries"],
        },
        "MassCounts": response({**counts, "failed": COUNT, "results": results}, optional={"failed", "results"}),
        "MassResults": response({"results": results, "succeeded": COUNT, "failed": COUNT}),
        "MassResponse": {
            "anyOf": [
                entry,
                array(nullable(entry)),
                response({"entries": array(nullable(entry))}),
                ref("MassCounts"),
                ref("MassResults"),
            ]
        },
    }
