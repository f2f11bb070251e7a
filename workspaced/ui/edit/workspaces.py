"""Create, change and delete a workspace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from workspaced.http.responses import Response
from workspaced.security.permissions import BLOCKS_WRITE, WORKSPACES_DELETE
from workspaced.ui.addresses import address
from workspaced.ui.edit.form import (
    NEW_ID,
    SHOWN,
    FormField,
    FormPage,
    Link,
    read_given,
    read_members,
    save,
    schema_fields,
    with_values,
)
from workspaced.ui.page_request import PageRequest
from workspaced.ui.renderer import PageView, shown_digest
from workspaced.ui.workspaces import SECTION

_ALL: Final[Link] = (address("workspaces"), "Workspaces")
_FLAGS: Final = ("publicCanReadEnabled", "exportsEnabled", "guestsEnabled")
"""The members that decide who else has access. Only owners may change them."""
_ROOT: Final = FormField(
    name="rootBlock", label="Id of the root block", hint="The id of another block makes that block the root.", rare=True
)


def workspace_trail(workspace: Mapping[str, Any]) -> list[Link]:
    """Return the links to the list of workspaces and to this workspace."""
    return [_ALL, (address("workspaces", workspace["id"]), workspace["label"])]


async def create_workspace(request: PageRequest) -> PageView | Response:
    """GET: show the form of a new workspace. POST: create the workspace."""
    fields = schema_fields(request.schema_of("NewWorkspace"), ["label"], exportsEnabled={"value": "true"})
    fields.append(NEW_ID)
    page = FormPage(
        title="New workspace",
        section=SECTION,
        trail=[_ALL],
        submit="Create workspace",
        fields=fields,
    )
    return await page.respond(
        request,
        lambda: request.send("POST", "workspace", body=read_given(request.form, fields)),
        to=lambda made: address("workspaces", made.record["id"]),
    )


async def edit_workspace(request: PageRequest) -> PageView | Response:
    """GET: show the form of a workspace. POST: change the workspace."""
    workspace = await request.workspace()
    first = ["label", *(_FLAGS if request.may(WORKSPACES_DELETE) else ())]
    fields = schema_fields(
        request.schema_of("WorkspaceChanges"), first, without=[*_FLAGS, "rootBlock"], label={"required": True}
    )
    fields += [_ROOT] if request.may(BLOCKS_WRITE) else []
    names = [one.name for one in fields]

    def values_of(record: Mapping[str, Any]) -> Mapping[str, Any]:
        return {name: record[name] for name in names}

    page = FormPage(
        title="Edit workspace",
        section=SECTION,
        trail=workspace_trail(workspace),
        fields=with_values(fields, workspace),
        hidden={SHOWN: shown_digest(values_of(workspace))},
    )

    return await page.respond(
        request,
        lambda: save(request, ("workspace", workspace["id"]), read_members(request.form, fields), values_of=values_of),
    )


async def delete_workspace(request: PageRequest) -> PageView | Response:
    """GET: ask whether to delete a workspace. POST: delete the workspace."""
    workspace = await request.workspace()
    sinks = await request.get("workspace", workspace["id"], "data-sink", "list", take="1")
    counts = f"data sinks: {sinks.total}, blocks: {len(workspace['blocks'])}, and all its files"
    page = FormPage(
        title="Delete workspace",
        section=SECTION,
        trail=workspace_trail(workspace),
        sentences=[
            f"The workspace “{workspace['label']}” is deleted for all users ({counts}).",
            "Programs that write to it, such as ingestd, will fail.",
        ],
        is_dangerous=True,
    )
    return await page.respond(
        request, lambda: request.send("DELETE", "workspace", workspace["id"]), to=lambda _: address("workspaces")
    )
