"""The section of the API description for blocks."""

from __future__ import annotations

from typing import Final

from workspaced.core.json_schema import FLAG, STRING, UUID, record_schemas, ref
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
from workspaced.resources.blocks.records import BlockRecord, BlockTypesRecord
from workspaced.resources.blocks.routes import SORTABLE
from workspaced.resources.blocks.values import BlockChanges, NewBlock
from workspaced.settings.model import Limits

_ABOUT: Final = """\
The blocks of a workspace form one tree below its root block. The service computes `children` and `path` from the parents.
Ids of property groups, figures, attachments and statuses are stored as they are sent.
"""
_ONE: Final = {"workspaceId": "$request.path.workspaceId", "id": "$response.body#/id"}
_NO_BLOCK: Final = "`block_not_found`: the workspace has no such block."
_NO_PLACE: Final = "`parent_not_found`, `cycle` or `too_deep`: it can't be below that parent."


def api_section(limits: Limits) -> ApiSection:
    """Return the section with its five operations."""
    shown = Success("The block.", ref("Block"), headers=("ETag",))
    return ApiSection(
        title="Blocks",
        description=_ABOUT,
        path={
            "workspace": Parameter("workspaceId", "The workspace.", UUID),
            "block": Parameter("id", "The block.", UUID),
        },
        schemas={**record_schemas(BlockRecord, BlockTypesRecord), **body_schemas(limits, NewBlock, BlockChanges)},
        operations=(
            OperationDescription(
                "blocks.list",
                "List blocks",
                "Every block of the workspace, the root first, then by depth and orderIndex.",
                listed("The blocks.", "Block"),
                query=(
                    Parameter("parentBlock", "Only the children of this block.", UUID),
                    Parameter("type", "Only blocks that have this type.", STRING),
                    *paging(limits, SORTABLE),
                ),
            ),
            OperationDescription(
                "blocks.get", "Get a block", "One block.", shown, refusals={404: _NO_BLOCK}, etag=True
            ),
            OperationDescription(
                "blocks.create",
                "Create a block",
                "A block below its parent, as its last child. `workspace` must be the one in the path.",
                Success(
                    "The block.",
                    ref("Block"),
                    status=201,
                    headers=("ETag", "Location"),
                    links=links(_ONE, get="blocks.get", update="blocks.update", delete="blocks.delete"),
                ),
                body=Body(
                    ref("NewBlock"),
                    {"workspace": "0f8b3c0e-6f3c-4b57-9f3e-2a1f4d7f9f10", "label": "Tank", "type": ["part"]},
                ),
                refusals={
                    400: "`workspace_mismatch`: the body names another workspace than the path.",
                    409: "`id_in_use`: the id is in use. `quota_exceeded`: the workspace holds as many as it may.",
                    422: _NO_PLACE,
                },
            ),
            OperationDescription(
                "blocks.delete",
                "Delete a block",
                "A block without children; with `force=true` also one with all blocks below it.",
                Success("The block before it was deleted.", ref("Block")),
                query=(Parameter("force", "true: blocks below it are deleted, too.", FLAG),),
                refusals={
                    404: _NO_BLOCK,
                    409: "`has_children`: it has children, and force is not true. `root_block`: it is the root block.",
                },
                etag=True,
            ),
            OperationDescription(
                "blocks.update",
                "Change a block",
                "Only the given members change. The response has the types only, unless "
                "`Prefer: return=representation` was sent.",
                Success(
                    "The types, or the whole block.",
                    {"anyOf": [ref("Block"), ref("BlockTypes")]},
                    headers=("ETag", "Applied"),
                ),
                body=Body(ref("BlockChanges"), {"type": ["part", "purchased"]}),
                refusals={404: _NO_BLOCK, 422: _NO_PLACE},
                etag=True,
                headers=("PreferRepresentation",),
            ),
        ),
    )
