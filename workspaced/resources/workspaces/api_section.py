"""The workspaces' section of the API description; `workspaced.resources.workspaces.rules` is what validates."""

from __future__ import annotations

from typing import Final

from workspaced.http.openapi.description import ApiSection, Body, Link, OperationDescription, Parameter, Success
from workspaced.http.openapi.schema import (
    FLAG,
    NAME,
    NAMES,
    NOT_BLANK,
    STAMP,
    UUID,
    Schema,
    given,
    listed,
    record,
    ref,
    text,
    texts,
    told,
)
from workspaced.http.openapi.shared import LISTED, paging
from workspaced.resources.blocks.api_section import changes as block_changes
from workspaced.resources.workspaces.filters import FIELDS
from workspaced.resources.workspaces.records import COLLECTIONS
from workspaced.resources.workspaces.rules import FLAGS
from workspaced.settings.model import Limits

_ID: Final = Parameter(name="id", description="The workspace.", schema=UUID)
_ONE: Final = {"id": "$response.body#/id"}
_IN: Final = {"workspaceId": "$response.body#/id"}
_ABOUT: Final = """\
A workspace holds blocks, data sinks and files, and is the border of what a key may be limited to.
A deleted workspace is as absent; who runs the service can restore it for a while.
"""
_FILTERS: Final = """\
A part of the label, in any case; or a JSON object of conditions that all hold: `{"createdBy": "svc:ingest"}` or
`{"label": {"startsWith": "Rocket"}}`, with eq, ne, contains, startsWith, in, gt, gte, lt, lte.
"""
_FLAGS: Final = {
    "publicCanReadEnabled": "Whether anybody may read it without a key; false unless given.",
    "exportsEnabled": "Whether its files may be downloaded; true unless given.",
    "guestsEnabled": "Whether keys of guests work on it; false unless given.",
}


def api_section(limits: Limits) -> ApiSection:
    """The document's five rows."""
    return ApiSection(
        title="Workspaces",
        description=_ABOUT,
        operations=(*_reads(limits), *_writes()),
        path={"workspace": _ID},
        schemas={"Workspace": _workspace(), **_requests(limits)},
    )


def _workspace() -> Schema:
    return record(
        {
            "id": UUID,
            "label": NAME,
            "rootBlock": UUID,
            "createdAt": STAMP,
            "updatedAt": STAMP,
            "createdBy": NAME,
            **dict.fromkeys(COLLECTIONS, NAMES),
            **{name: told(FLAG, about) for name, about in _FLAGS.items()},
            "currentWorkspaceVersion": told(NAME, "Empty where none was given."),
            "statuses": NAMES,
        }
    )


def _requests(limits: Limits) -> dict[str, Schema]:
    label = text(shortest=1, longest=limits.label_length, pattern=NOT_BLANK, about="Its name; need not be unique.")
    flags = {name: told(FLAG, _FLAGS[name]) for name in FLAGS}
    new = {
        "label": label,
        "id": UUID,
        **flags,
        "currentWorkspaceVersion": UUID,
        "statuses": texts(most=limits.statuses, longest=limits.status_length),
    }
    root = block_changes(limits)
    root["properties"]["id"] = {"anyOf": [UUID, {"type": "null"}]}
    about = "Changes of the root block. The id of another block makes that one the root; the id alone will do, too."
    changes = given({"rootBlock": {"anyOf": [root, UUID], "description": about}, **flags})
    changes["properties"]["label"] = label
    return {"NewWorkspace": given(new, required={"label"}), "WorkspaceChanges": changes}


def _reads(limits: Limits) -> tuple[OperationDescription, ...]:
    return (
        OperationDescription(
            name="workspaces.list",
            summary="List workspaces",
            description="Every workspace that the key may read, the oldest first.",
            query=(Parameter(name="filters", description=_FILTERS, schema=NAME), *paging(limits, FIELDS)),
            success=(Success(description="The workspaces.", schema=listed(ref("Workspace")), headers=LISTED),),
            refusals={400: "`bad_filters`: filters is no JSON, or has a field or an operator that nobody knows."},
        ),
        OperationDescription(
            name="workspaces.get",
            summary="Get a workspace",
            description="One workspace.",
            success=(Success(description="The workspace.", schema=ref("Workspace"), headers=("ETag",)),),
            etag=True,
        ),
    )


def _writes() -> tuple[OperationDescription, ...]:
    return (
        OperationDescription(
            name="workspaces.create",
            summary="Create a workspace",
            description="A workspace with its root block; the caller owns it.",
            body=Body(schema=ref("NewWorkspace"), example={"label": "Rocket"}),
            success=(
                Success(
                    status=201,
                    description="The workspace.",
                    schema=ref("Workspace"),
                    headers=("ETag", "Location"),
                    links={
                        "get": Link(operation="workspaces.get", parameters=_ONE),
                        "update": Link(operation="workspaces.update", parameters=_ONE),
                        "delete": Link(operation="workspaces.delete", parameters=_ONE),
                        "createDataSink": Link(operation="data_sinks.create", parameters=_IN),
                        "listDataSinks": Link(operation="data_sinks.list", parameters=_IN),
                        "listWholeDataSinks": Link(operation="data_sinks.list_whole", parameters=_IN),
                        "listFiles": Link(operation="cloud_storage.list", parameters=_IN),
                        "uploadFile": Link(operation="cloud_storage.upload", parameters=_IN),
                        "listBlocks": Link(operation="blocks.list", parameters=_IN),
                    },
                ),
            ),
            refusals={409: "`id_in_use`: the id is taken."},
        ),
        OperationDescription(
            name="workspaces.delete",
            summary="Delete a workspace",
            description="The workspace and all that is in it.",
            success=(Success(description="The workspace as it was.", schema=ref("Workspace")),),
            etag=True,
        ),
        OperationDescription(
            name="workspaces.update",
            summary="Change a workspace",
            description="Only the members that are given change. What opens it to others is for its owners only.",
            body=Body(schema=ref("WorkspaceChanges"), example={"label": "Rocket, block 2"}, required=False),
            success=(Success(description="The workspace.", schema=ref("Workspace"), headers=("ETag",)),),
            refusals={
                422: "`root_block_not_found`: it is no block of this workspace. `too_deep`, `cycle`, `parent_not_found`."
            },
            etag=True,
        ),
    )
