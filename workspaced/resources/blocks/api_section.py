"""The blocks' section of the API description; `workspaced.resources.blocks.rules` is what validates."""

from __future__ import annotations

from typing import Final

from workspaced.http.openapi.description import ApiSection, Body, Link, OperationDescription, Parameter, Success
from workspaced.http.openapi.schema import (
    FLAG,
    NAME,
    NAMES,
    ONE_LINE,
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
from workspaced.resources.blocks.routes import SORTABLE
from workspaced.settings.model import Limits

_WORKSPACE: Final = Parameter(name="workspaceId", description="The workspace.", schema=UUID)
_BLOCK: Final = Parameter(name="id", description="The block.", schema=UUID)
_ONE: Final = {"workspaceId": "$request.path.workspaceId", "id": "$response.body#/id"}
_ABOUT: Final = """\
Blocks form one tree in each workspace, below its root block. `children` and `path` follow from the parents.
Ids of property groups, figures, attachments and statuses are kept as they are sent.
"""
_NUMBER: Final[Schema] = {"type": "number", "minimum": -1e300, "maximum": 1e300}
_LISTS: Final = ("propertyGroups", "instances", "figures", "attachments", "externalLinks", "blockStatuses", "type")
_TEXTS: Final = ("previewCustomLink", "previewSource", "icon", "pdmThumbnail")
_NO_BLOCK: Final = "`block_not_found`: the workspace has no such block."
_NO_PLACE: Final = "`parent_not_found`, `cycle` or `too_deep`: it can't be below that parent."


def api_section(limits: Limits) -> ApiSection:
    """The document's five rows."""
    return ApiSection(
        title="Blocks",
        description=_ABOUT,
        operations=(*_reads(limits), *_writes()),
        path={"workspace": _WORKSPACE, "block": _BLOCK},
        schemas={
            "Block": _block(),
            "NewBlock": given({"workspace": UUID, "id": UUID, **content(limits)}, required={"workspace"}),
            "BlockChanges": changes(limits),
            "BlockTypes": record({"type": NAMES}),
        },
    )


def content(limits: Limits) -> dict[str, Schema]:
    """The members that a request can set."""
    longest = limits.block_text_length
    lists = texts(most=limits.block_list_items, longest=limits.block_list_item_length)
    parent = {"anyOf": [UUID, {"const": ""}], "description": "The root block where it is empty, null or absent."}
    return {
        "label": text(longest=limits.label_length, pattern=ONE_LINE),
        "description": text(longest=limits.description_length),
        "partNumber": text(longest=longest, pattern=ONE_LINE),
        "parentBlock": parent,
        "multiplicity": told({**_NUMBER, "minimum": 0}, "How often it occurs in its parent; 1 unless given."),
        "pdmEnabled": FLAG,
        **{name: text(longest=longest) for name in _TEXTS},
        **dict.fromkeys(_LISTS, lists),
    }


def changes(limits: Limits) -> Schema:
    """An update body: null gives a member its default back."""
    body = given(content(limits))
    body["properties"]["orderIndex"] = told(_NUMBER, "The place among its siblings.")
    return body


def _block() -> Schema:
    names = ("label", "description", "partNumber", "path", "createdBy", "updatedBy", *_TEXTS)
    return record(
        {
            "id": UUID,
            "workspace": UUID,
            "parentBlock": told(NAME, "Empty for the root block."),
            **dict.fromkeys(names, NAME),
            **dict.fromkeys((*_LISTS, "children", "interfaces"), NAMES),
            "multiplicity": {"type": "number"},
            "orderIndex": {"type": "number"},
            "pdmEnabled": FLAG,
            "createdAt": STAMP,
            "updatedAt": STAMP,
        }
    )


def _reads(limits: Limits) -> tuple[OperationDescription, ...]:
    return (
        OperationDescription(
            name="blocks.list",
            summary="List blocks",
            description="Every block of the workspace, the root first, then by depth and orderIndex.",
            query=(
                Parameter(name="parentBlock", description="Only the children of this block.", schema=UUID),
                Parameter(name="type", description="Only those that have this type.", schema=NAME),
                *paging(limits, SORTABLE),
            ),
            success=(Success(description="The blocks.", schema=listed(ref("Block")), headers=LISTED),),
        ),
        OperationDescription(
            name="blocks.get",
            summary="Get a block",
            description="One block.",
            success=(Success(description="The block.", schema=ref("Block"), headers=("ETag",)),),
            refusals={404: _NO_BLOCK},
            etag=True,
        ),
    )


def _writes() -> tuple[OperationDescription, ...]:
    return (
        OperationDescription(
            name="blocks.create",
            summary="Create a block",
            description="A block below its parent, as the last of the children. `workspace` must be the one in the path.",
            body=Body(
                schema=ref("NewBlock"),
                example={"workspace": "0f8b3c0e-6f3c-4b57-9f3e-2a1f4d7f9f10", "label": "Tank", "type": ["part"]},
            ),
            success=(
                Success(
                    status=201,
                    description="The block.",
                    schema=ref("Block"),
                    headers=("ETag", "Location"),
                    links={
                        "get": Link(operation="blocks.get", parameters=_ONE),
                        "update": Link(operation="blocks.update", parameters=_ONE),
                        "delete": Link(operation="blocks.delete", parameters=_ONE),
                    },
                ),
            ),
            refusals={
                400: "`workspace_mismatch`: the body names another workspace than the path.",
                409: "`id_in_use`: the id is taken. `quota_exceeded`: there is no room for more.",
                422: _NO_PLACE,
            },
        ),
        OperationDescription(
            name="blocks.delete",
            summary="Delete a block",
            description="A block without children; with `force=true` also one with all that is below it.",
            query=(Parameter(name="force", description="true: what is below it goes, too.", schema=FLAG),),
            success=(Success(description="The block as it was.", schema=ref("Block")),),
            refusals={
                404: _NO_BLOCK,
                409: "`has_children`: it has some, and force is not true. `root_block`: the root stays.",
            },
            etag=True,
        ),
        OperationDescription(
            name="blocks.update",
            summary="Change a block",
            description=(
                "Only the members that are given change. Answers the types only, unless "
                "`Prefer: return=representation` was sent."
            ),
            body=Body(schema=ref("BlockChanges"), example={"type": ["part", "purchased"]}),
            success=(
                Success(
                    description="The types, or the whole block.",
                    schema={"anyOf": [ref("Block"), ref("BlockTypes")]},
                    headers=("ETag", "Applied"),
                ),
            ),
            refusals={404: _NO_BLOCK, 422: _NO_PLACE},
            etag=True,
            headers=("PreferRepresentation",),
        ),
    )
