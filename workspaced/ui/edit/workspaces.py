"""Create, change and delete a workspace."""

from __future__ import annotations

import dataclasses
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
    with_values,
)
from workspaced.ui.page_request import PageRequest
from workspaced.ui.renderer import PageView
from workspaced.ui.shown import shown_digest
from workspaced.ui.workspaces import SECTION

_ALL: Final[Link] = (address("workspaces"), "Workspaces")
_LABEL: Final = FormField(name="label", label="Label", required=True, hint="Need not be unique.")
_FLAGS: Final = (
    FormField(name="publicCanReadEnabled", label="Anyone may read it without a key", kind="check"),
    FormField(name="exportsEnabled", label="Its files may be downloaded", kind="check"),
    FormField(name="guestsEnabled", label="Keys of guests are accepted", kind="check"),
)
"""Who else has access. Only owners may change it."""
_CREATED: Final = (
    _LABEL,
    *(dataclasses.replace(one, value="true" if one.name == "exportsEnabled" else "", rare=True) for one in _FLAGS),
    FormField(name="statuses", label="Statuses", kind="lines", hint="One on each line.", rare=True),
    FormField(name="currentWorkspaceVersion", label="Id of its version", hint="A UUID.", rare=True),
    NEW_ID,
)
_ROOT: Final = FormField(
    name="rootBlock", label="Id of the root block", hint="The id of another block makes that block the root.", rare=True
)


def workspace_trail(workspace: Mapping[str, Any]) -> list[Link]:
    """Return the links to the workspaces and to this one."""
    return [_ALL, (address("workspaces", workspace["id"]), workspace["label"])]


async def create_workspace(request: PageRequest) -> PageView | Response:
    """Show the form of a new workspace, or create it."""
    page = FormPage(
        title="New workspace",
        section=SECTION,
        trail=[_ALL],
        action=address("workspaces", "new"),
        submit="Create workspace",
        back=address("workspaces"),
        fields=_CREATED,
    )
    return await page.respond(
        request,
        lambda: request.send("POST", "workspace", body=read_given(request.form, _CREATED)),
        to=lambda made: address("workspaces", made.record["id"]),
    )


async def edit_workspace(request: PageRequest) -> PageView | Response:
    """Show the form of a workspace, or change it."""
    workspace = await request.workspace()
    fields = [_LABEL, *(_FLAGS if request.may(WORKSPACES_DELETE) else ())]
    fields += [_ROOT] if request.may(BLOCKS_WRITE) else []
    names = [one.name for one in fields]

    def values_of(record: Mapping[str, Any]) -> Mapping[str, Any]:
        return {name: record[name] for name in names}

    page = FormPage(
        title="Edit workspace",
        section=SECTION,
        trail=workspace_trail(workspace),
        action=address("workspaces", workspace["id"], "edit"),
        submit="Save",
        back=address("workspaces", workspace["id"]),
        fields=with_values(fields, workspace),
        hidden={SHOWN: shown_digest(values_of(workspace))},
    )

    return await page.respond(
        request,
        lambda: save(request, ("workspace", workspace["id"]), read_members(request.form, fields), values_of=values_of),
    )


async def delete_workspace(request: PageRequest) -> PageView | Response:
    """Ask whether to delete a workspace, or delete it."""
    workspace = await request.workspace()
    sinks = await request.get("workspace", workspace["id"], "data-sink", "list", take="1")
    counts = f"data sinks: {sinks.total}, blocks: {len(workspace['blocks'])}, and all its files"
    page = FormPage(
        title="Delete workspace",
        section=SECTION,
        trail=workspace_trail(workspace),
        action=address("workspaces", workspace["id"], "delete"),
        submit="Delete workspace",
        back=address("workspaces", workspace["id"]),
        sentences=[
            f"The workspace “{workspace['label']}” is deleted for all users ({counts}).",
            "Programs that write to it, such as ingestd, will fail.",
        ],
        is_dangerous=True,
    )
    return await page.respond(
        request, lambda: request.send("DELETE", "workspace", workspace["id"]), to=lambda _: address("workspaces")
    )
