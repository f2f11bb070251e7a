"""The section of the API description for workspaces."""

from __future__ import annotations

from typing import Final

from workspaced.core.json_schema import STRING, UUID, record_schemas, ref
from workspaced.core.members import body_schemas
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
from workspaced.resources.workspaces.filters import FIELDS
from workspaced.resources.workspaces.records import WorkspaceRecord
from workspaced.resources.workspaces.rules import NewWorkspace, WorkspaceChanges
from workspaced.settings.model import Limits

_ABOUT: Final = """\
A workspace holds blocks, data sinks and files. A key may be limited to one workspace.
A deleted workspace is absent for every request; an operator of the service can restore it for a while.
"""
_FILTERS: Final = """\
A part of the label, in any case; or a JSON object of conditions that all hold: `{"createdBy": "svc:ingest"}` or
`{"label": {"startsWith": "Rocket"}}`, with eq, ne, contains, startsWith, in, gt, gte, lt, lte.
"""
_LINKS: Final = {
    **links({"id": "$response.body#/id"}, get="workspaces.get", update="workspaces.update", delete="workspaces.delete"),
    **links(
        {"workspaceId": "$response.body#/id"},
        createDataSink="data_sinks.create",
        listDataSinks="data_sinks.list",
        listWholeDataSinks="data_sinks.list_whole",
        listFiles="cloud_storage.list",
        uploadFile="cloud_storage.upload",
        listBlocks="blocks.list",
    ),
}


def api_section(limits: Limits) -> ApiSection:
    """Return the section with its five operations."""
    shown = Success("The workspace.", ref("Workspace"), headers=("ETag",))
    return ApiSection(
        title="Workspaces",
        description=_ABOUT,
        path={"workspace": Parameter("id", "The workspace.", UUID)},
        schemas={
            **record_schemas(WorkspaceRecord),
            **body_schemas(limits, NewWorkspace, WorkspaceChanges),
        },
        operations=(
            OperationDescription(
                "workspaces.list",
                "List workspaces",
                "Every workspace that the key may read, the oldest first.",
                listed("The workspaces.", "Workspace"),
                query=(Parameter("filters", _FILTERS, STRING), *paging(limits, FIELDS)),
                refusals={400: "`bad_filters`: filters is not JSON, or has an unknown field or operator."},
            ),
            OperationDescription("workspaces.get", "Get a workspace", "One workspace.", shown, etag=True),
            OperationDescription(
                "workspaces.create",
                "Create a workspace",
                "A workspace with its root block; the caller owns it.",
                Success("The workspace.", ref("Workspace"), status=201, headers=("ETag", "Location"), links=_LINKS),
                body=Body(ref("NewWorkspace"), {"label": "Rocket"}),
                refusals={409: "`id_in_use`: the id is in use."},
            ),
            OperationDescription(
                "workspaces.delete",
                "Delete a workspace",
                "The workspace and all that is in it.",
                Success("The workspace before it was deleted.", ref("Workspace")),
                etag=True,
            ),
            OperationDescription(
                "workspaces.update",
                "Change a workspace",
                "Only the given members change. Only owners may change who has access.",
                shown,
                body=Body(ref("WorkspaceChanges"), {"label": "Rocket, block 2"}, required=False),
                refusals={
                    422: "`root_block_not_found`: the workspace has no such block. `too_deep`, `cycle`, `parent_not_found`."
                },
                etag=True,
            ),
        ),
    )
