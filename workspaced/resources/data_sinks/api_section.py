"""The data sinks' section of the API description."""

from __future__ import annotations

from typing import Final

from workspaced.http.openapi.description import ApiSection, Body, Link, OperationDescription, Parameter, Success
from workspaced.http.openapi.schema import FLAG, NAME, UUID, choice, listed, ref, text
from workspaced.http.openapi.shared import LISTED, paging
from workspaced.resources.data_sinks.entry_pages import FORMATS
from workspaced.resources.data_sinks.entry_pages import SORTABLE as ENTRY_SORTABLE
from workspaced.resources.data_sinks.schemas import SINK_NAME, key_schema, schemas
from workspaced.resources.data_sinks.sink_routes import SORTABLE
from workspaced.settings.model import Limits

_WORKSPACE: Final = Parameter(name="workspaceId", description="The workspace.", schema=UUID)
_SINK: Final = Parameter(
    name="dataSinkId", description="The sink's id, or its visibleId such as SNK-7.", schema=SINK_NAME
)
_KEY: Final = Parameter(
    name="key",
    description="The entry's key, percent-encoded (`a/b` is `a%2Fb`). Where no entry has it, an entry's id.",
    schema={**NAME, "minLength": 1},
)
_ABOUT: Final = """\
A data sink is a named container of key/value entries inside a workspace. A value is text and is kept byte for byte.
Many entries at once go through `mass`: one object, a list, or `{"entries": […]}`.
"""
_NO_SINK: Final = "`data_sink_not_found`: the workspace has no such sink."
_NO_ENTRY: Final = f"{_NO_SINK} `entry_not_found`: the sink has no such entry."
_QUOTA: Final = "`quota_exceeded`: there is no room for more."
_OF_SINK: Final = {"workspaceId": "$request.path.workspaceId", "dataSinkId": "$response.body#/id"}
_OF_ENTRY: Final = {
    "workspaceId": "$request.path.workspaceId",
    "dataSinkId": "$response.body#/dataSinkId",
    "key": "$response.body#/key",
}


def api_section(limits: Limits) -> ApiSection:
    """The document's eleven rows, and row 11 under an entry's key."""
    return ApiSection(
        title="Data sinks",
        description=_ABOUT,
        operations=(*_reads(limits), *_sink_writes(), *_entry_writes(), *_mass(limits)),
        path={"workspace": _WORKSPACE, "sink": _SINK, "key": _KEY, "data_sinks.mass_by_key:key": _new_key(limits)},
        schemas=schemas(limits),
    )


def _new_key(limits: Limits) -> Parameter:
    return Parameter(name="key", description="The entry's key, percent-encoded.", schema=key_schema(limits))


def _reads(limits: Limits) -> tuple[OperationDescription, ...]:
    query = paging(limits, SORTABLE)
    return (
        OperationDescription(
            name="data_sinks.get",
            summary="Get a data sink",
            description=(
                "The sink with all its entries in the order of their creation, those of one request by key; or with those of "
                "a search, in another order, a page of them, or as CSV. A page of a search passes over "
                f"{limits.walked_rows} entries at the most: it may have fewer than `take`, or none, and still a Link "
                "rel=next. Of a sink with more entries than that, a search is not counted, and sortedBy=updatedAt is refused."
            ),
            query=(
                Parameter(
                    name="search",
                    description="Only entries whose key has this in it, in any case of A-Z.",
                    schema=text(longest=limits.key_length),
                ),
                Parameter(name="format", description="csv: the entries only, with a heading.", schema=choice(*FORMATS)),
                *paging(limits, ENTRY_SORTABLE, most_skipped=limits.walked_rows, cursors=True),
            ),
            success=(
                Success(
                    description="The sink.",
                    schema=ref("DataSink"),
                    also={"text/csv": NAME},
                    headers=("ETag", "PartCount", "Links"),
                ),
            ),
            refusals={404: _NO_SINK},
            etag=True,
        ),
        OperationDescription(
            name="data_sinks.list_whole",
            summary="List data sinks with their entries",
            description="Every sink of the workspace, by serial, with all its entries.",
            query=query,
            success=(Success(description="The sinks.", schema=listed(ref("DataSink")), headers=LISTED),),
        ),
        OperationDescription(
            name="data_sinks.list",
            summary="List data sinks",
            description="Every sink of the workspace, by serial, without its entries.",
            query=query,
            success=(Success(description="The sinks.", schema=listed(ref("DataSinkOnly")), headers=LISTED),),
        ),
        OperationDescription(
            name="data_sinks.get_entry",
            summary="Get an entry",
            description="One entry by its key.",
            success=(Success(description="The entry.", schema=ref("DataSinkEntry"), headers=("ETag",)),),
            refusals={404: _NO_ENTRY},
            etag=True,
        ),
    )


def _sink_writes() -> tuple[OperationDescription, ...]:
    return (
        OperationDescription(
            name="data_sinks.create",
            summary="Create a data sink",
            description="A sink, with entries where they are given; all of it or nothing.",
            body=Body(
                schema=ref("NewDataSink"),
                example={
                    "label": "Mass budget",
                    "description": "From the CAD export",
                    "entries": [{"key": "tank.mass", "value": "15 kg", "dataType": "scalar"}],
                },
            ),
            success=(
                Success(
                    status=201,
                    description="The sink with its entries, in the order of the request.",
                    schema=ref("DataSink"),
                    headers=("ETag", "Location"),
                    links={
                        "get": Link(operation="data_sinks.get", parameters=_OF_SINK),
                        "update": Link(operation="data_sinks.update", parameters=_OF_SINK),
                        "delete": Link(operation="data_sinks.delete", parameters=_OF_SINK),
                        "createEntry": Link(operation="data_sinks.create_entry", parameters=_OF_SINK),
                        "mass": Link(operation="data_sinks.mass", parameters=_OF_SINK),
                    },
                ),
            ),
            refusals={409: f"`id_in_use`: the id is taken. {_QUOTA}"},
        ),
        OperationDescription(
            name="data_sinks.update",
            summary="Change a data sink",
            description="Only the members that are given change; null clears one. Entries are not touched.",
            body=Body(schema=ref("DataSinkChanges"), example={"label": "Mass budget, flight model"}),
            success=(Success(description="Done."),),
            refusals={404: _NO_SINK},
            etag=True,
        ),
        OperationDescription(
            name="data_sinks.delete",
            summary="Delete a data sink",
            description="The sink and all its entries.",
            success=(Success(description="It is gone."),),
            refusals={404: _NO_SINK},
            etag=True,
        ),
    )


def _entry_writes() -> tuple[OperationDescription, ...]:
    entry = ref("DataSinkEntry")
    return (
        OperationDescription(
            name="data_sinks.create_entry",
            summary="Create an entry",
            description="A new entry; a key that the sink has already is a conflict. `mass` overwrites instead.",
            body=Body(
                schema=ref("NewDataSinkEntry"), example={"key": "tank.mass", "value": "15 kg", "dataType": "scalar"}
            ),
            success=(
                Success(
                    status=201,
                    description="The entry.",
                    schema=entry,
                    headers=("ETag", "Location"),
                    links={
                        "get": Link(operation="data_sinks.get_entry", parameters=_OF_ENTRY),
                        "update": Link(operation="data_sinks.update_entry", parameters=_OF_ENTRY),
                        "delete": Link(operation="data_sinks.delete_entry", parameters=_OF_ENTRY),
                        "mass": Link(operation="data_sinks.mass_by_key", parameters=_OF_ENTRY),
                    },
                ),
            ),
            refusals={
                404: _NO_SINK,
                409: f"`duplicate_key`: `existingId` has the key already. `id_in_use`: the id is taken. {_QUOTA}",
            },
        ),
        OperationDescription(
            name="data_sinks.update_entry",
            summary="Change an entry",
            description="Only the members that are given change; a null value clears it. The key can't change.",
            body=Body(schema=ref("DataSinkEntryChanges"), example={"value": "14.2 kg"}),
            success=(Success(description="The entry.", schema=entry, headers=("ETag",)),),
            refusals={404: _NO_ENTRY},
            etag=True,
        ),
        OperationDescription(
            name="data_sinks.delete_entry",
            summary="Delete an entry",
            description="One entry.",
            success=(Success(description="It is gone."),),
            refusals={404: _NO_ENTRY},
            etag=True,
        ),
    )


def _mass(limits: Limits) -> tuple[OperationDescription, ...]:
    create = Parameter(name="create", description="false: an unknown key is 404 instead of a new entry.", schema=FLAG)
    partial = Parameter(
        name="partial",
        description="true: write what is right of a bulk, and tell of each item what became of it.",
        schema=FLAG,
    )
    headers = ("SingleETag", "Stale", "Applied")
    refusals = {404: _NO_ENTRY, 409: f"`id_in_use`: an item's id is taken. {_QUOTA}"}
    return (
        OperationDescription(
            name="data_sinks.mass",
            summary="Set entries",
            description=(
                "Sets the value of one entry or of many; unknown keys become entries. A bulk is written whole or not at "
                f"all, unless `partial=true`, and has {limits.bulk_items} items and {limits.bulk_body_bytes} bytes at the "
                'most. A bulk item may be `{"key": …, "delete": true}`. A value that was observed before the stored one '
                "is left out."
            ),
            query=(create, partial),
            body=Body(schema=ref("Mass"), example={"key": "tank.mass", "value": "15 kg"}),
            success=(
                Success(
                    description="The entry; or the entries in the order of the items; or counts, or results.",
                    schema=ref("MassAnswer"),
                    headers=headers,
                ),
            ),
            refusals=refusals,
            headers=("PreferMinimal",),
        ),
        OperationDescription(
            name="data_sinks.mass_by_key",
            summary="Set an entry",
            description="Sets the value of the entry that the path names; an unknown key becomes an entry.",
            query=(create,),
            body=Body(schema=ref("KeyedValue"), example={"value": "15 kg"}),
            success=(Success(description="The entry.", schema=ref("DataSinkEntry"), headers=headers[:2]),),
            refusals=refusals,
        ),
    )
