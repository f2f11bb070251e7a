"""Create, change and delete a block."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from workspaced.http.responses import Response
from workspaced.ui.addresses import address
from workspaced.ui.edit.form import (
    NEW_ID,
    SHOWN,
    ChangedMeanwhile,
    FormField,
    FormPage,
    Link,
    checked,
    read_given,
    read_members,
    save,
    schema_fields,
    with_values,
)
from workspaced.ui.edit.workspaces import workspace_trail
from workspaced.ui.page_request import ApiResponse, PageRequest
from workspaced.ui.renderer import PageView, shown_digest
from workspaced.ui.workspaces import SECTION

_FIRST: Final = ("label", "description", "partNumber", "multiplicity", "type", "parentBlock")


def _fields(request: PageRequest, body: str) -> list[FormField]:
    schema = request.schema_of(body)
    return schema_fields(schema, _FIRST, without=["workspace"], multiplicity={"value": "1"})


def _blocks_address(request: PageRequest, *more: str) -> str:
    return address("workspaces", request.names["workspace"], "blocks", *more)


def _values_of(request: PageRequest, record: Mapping[str, Any]) -> Mapping[str, Any]:
    return {one.name: record[one.name] for one in _fields(request, "BlockChanges")}


def _trail(request: PageRequest, workspace: Mapping[str, Any]) -> list[Link]:
    return [*workspace_trail(workspace), (_blocks_address(request), "Blocks")]


async def create_block(request: PageRequest) -> PageView | Response:
    """GET: show the form of a new block. POST: create the block. ``parent`` in the query: the id of the parent block."""
    workspace = await request.workspace()
    fields = [*_fields(request, "NewBlock"), NEW_ID]
    page = FormPage(
        title="New block",
        section=SECTION,
        trail=_trail(request, workspace),
        submit="Create block",
        fields=[
            dataclasses.replace(one, value=request.query.get("parent", "")) if one.name == "parentBlock" else one
            for one in fields
        ],
    )

    async def create() -> ApiResponse:
        body = {**read_given(request.form, fields), "workspace": workspace["id"]}
        return await request.send("POST", "workspace", workspace["id"], "blocks", body=body)

    return await page.respond(
        request,
        create,
        to=lambda made: _blocks_address(request, made.record["id"]),
    )


async def edit_block(request: PageRequest) -> PageView | Response:
    """GET: show the form of a block. POST: change the block."""
    workspace = await request.workspace()
    path = ("workspace", workspace["id"], "blocks", request.names["block"])
    block = (await request.get(*path)).record
    fields = [one for one in _fields(request, "BlockChanges") if one.name != "parentBlock" or block["parentBlock"]]
    page = FormPage(
        title="Edit block",
        section=SECTION,
        trail=[*_trail(request, workspace), (_blocks_address(request, block["id"]), block["label"] or block["id"])],
        fields=with_values(fields, block),
        hidden={SHOWN: shown_digest(_values_of(request, block))},
    )

    return await page.respond(
        request, lambda: save(request, path, read_members(request.form, fields), values_of=partial(_values_of, request))
    )


async def delete_block(request: PageRequest) -> PageView | Response:
    """GET: ask whether to delete a block. POST: delete the block and, if the user chose this, all blocks below the block."""
    workspace = await request.workspace()
    path = ("workspace", workspace["id"], "blocks", request.names["block"])
    found = await request.get(*path)
    block = found.record
    label = block["label"] or "Block without a label"
    children = len(block["children"])
    page = FormPage(
        title="Delete block",
        section=SECTION,
        trail=[*_trail(request, workspace), (_blocks_address(request, block["id"]), label)],
        fields=[FormField(name="force", label="Also delete the blocks below it", kind="check")] if children else [],
        sentences=[f"The block “{label}” is deleted for all users. Blocks directly below it: {children}."],
        hidden={SHOWN: shown_digest(_values_of(request, block))},
        is_dangerous=True,
    )

    async def delete() -> ApiResponse:
        if request.form.get(SHOWN) != shown_digest(_values_of(request, block)):
            raise ChangedMeanwhile(found, {})
        force = {"force": "true"} if checked(request.form, "force") else {}
        return await request.send("DELETE", *path, query=force, if_match=found.headers.get("etag", ""))

    return await page.respond(request, delete, to=lambda _: _blocks_address(request))
