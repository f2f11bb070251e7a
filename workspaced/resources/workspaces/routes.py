"""The operations of workspaces (contract WS1, WS2, WS3, WS4, WS5)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Final

from workspaced.core.json_schema import STRING
from workspaced.core.problems import ForbiddenProblem
from workspaced.http.description import Parameter, RequestBody, Success, links, listed
from workspaced.http.openapi.shared import paging
from workspaced.http.operations import Call, Operation
from workspaced.http.responses import Response, etag, json_response
from workspaced.resources.blocks.changes import change_root
from workspaced.resources.cloud_storage.conversion_store import CONVERSIONS
from workspaced.resources.operation_rows import delete, get, patch, post
from workspaced.resources.read_responses import list_response, read_list_page, select_page, versioned_response
from workspaced.resources.workspaces import events, store
from workspaced.resources.workspaces.filters import FIELDS, FILTERS, read_filters
from workspaced.resources.workspaces.records import WorkspaceRecord, filterable, workspace_record
from workspaced.resources.workspaces.rules import FLAGS, NewWorkspace, WorkspaceChanges
from workspaced.resources.workspaces.store import StoredWorkspace, WorkspaceContents
from workspaced.security import key_store
from workspaced.security.permissions import (
    ADMIN,
    BLOCKS_WRITE,
    WORKSPACES_CREATE,
    WORKSPACES_DELETE,
    WORKSPACES_READ,
    WORKSPACES_WRITE,
)
from workspaced.settings.model import Limits
from workspaced.storage.port import ReadTransaction, Transaction
from workspaced.storage.store import Store

_ALL = "/v1/workspace"
_ONE = "/v1/workspace/{workspace}"
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


async def list_workspaces(call: Call) -> Response:
    """List workspaces (contract WS1).

    Every workspace on which the key has the permission, the oldest first.
    200: The workspaces.
    400: `bad_filters`: filters is not JSON, or has an unknown field or operator.
    """
    page = read_list_page(call, FIELDS)
    accepts = read_filters(call.query.get("filters"))
    principal = call.principal

    def find(reader: ReadTransaction) -> tuple[int, list[WorkspaceRecord]]:
        found = [
            workspace
            for workspace in store.list_workspaces(reader)
            if principal and principal.may(WORKSPACES_READ, workspace.id) and accepts(filterable(workspace))
        ]
        return len(found), [_record(reader, workspace) for workspace in select_page(page, found, FIELDS)]

    return await list_response(call, page, find)


def create_workspace(tx: Transaction, call: Call, new: NewWorkspace) -> Response:
    """Create a workspace (contract WS2).

    A workspace with its root block; the caller owns it.
    201: The workspace.
    409: `id_in_use`: the id is in use.
    """
    workspace_id = new.id or str(uuid.uuid4())
    root_block = str(uuid.uuid4())
    workspace = store.create_workspace(tx, call, new, workspace_id=workspace_id, root_block=root_block)
    key_store.grant(tx, principal=call.actor, workspace_id=workspace.id, role="owner", now=call.now)
    events.emit_created(tx, call, workspace)
    record = workspace_record(workspace, WorkspaceContents(blocks=(root_block,)))
    headers = (("Location", f"{_ALL}/{workspace.id}"), etag(workspace.version))
    return json_response(record, status=201, headers=headers)


async def get_workspace(call: Call) -> Response:
    """Get a workspace (contract WS3).

    One workspace.
    200: The workspace.
    """

    def find(reader: ReadTransaction) -> tuple[int, WorkspaceRecord]:
        workspace = store.get_workspace(reader, call.workspace_id)
        return workspace.version, _record(reader, workspace)

    version, record = await call.store.read(find)
    return versioned_response(call, record, version)


def delete_workspace(tx: Transaction, call: Call) -> Response:
    """Delete a workspace (contract WS4).

    Deletes the workspace with all its contents.
    200: The workspace before it was deleted.
    """
    workspace = store.get_workspace(tx, call.workspace_id)
    call.require_match(workspace.version)
    events.emit_deleted(tx, call, workspace)  # before the deletion, while subscribers may still read it
    response = json_response(_record(tx, workspace))
    store.delete_workspace(tx, call, workspace)
    tx.notify(CONVERSIONS)  # conversions of its files stop
    return response


def update_workspace(tx: Transaction, call: Call, changes: WorkspaceChanges) -> Response:
    """Change a workspace (contract WS5, W5).

    Only the given members change. Only owners may change the members that decide who has access.
    200: The workspace.
    422: `root_block_not_found`: the workspace has no such block. `too_deep`, `cycle`, `parent_not_found`.
    """
    given = changes.given()
    root = given.pop("root", None)
    root_changes = root.given() if root is not None else {}
    promoted = root_changes.pop("id", None)
    if root is not None:
        call.require(BLOCKS_WRITE, to="change the root block")
    before = store.get_workspace(tx, call.workspace_id)
    call.require_match(before.version)
    changed = {name: value for name, value in given.items() if getattr(before, name) != value}
    _require_ownership(call, changed)
    if root is not None:
        change_root(tx, call, before.root_block, promoted=promoted, changes=root_changes)
    after = store.get_workspace(tx, call.workspace_id)
    if changed or after.root_block != before.root_block:
        store.update_workspace(tx, call, after, changed)
        after = store.get_workspace(tx, call.workspace_id)
        events.emit_updated(tx, call, before=before, after=after)
    return json_response(_record(tx, after), headers=(etag(after.version),))


def _record(reader: ReadTransaction, workspace: StoredWorkspace) -> WorkspaceRecord:
    return workspace_record(workspace, store.list_contents(reader, workspace))


def _require_ownership(call: Call, changed: Mapping[str, object]) -> None:
    """Raise ForbiddenProblem if a change concerns access to the workspace, and the caller does not own the workspace."""
    if FLAGS & changed.keys() and not (call.principal and call.principal.may(ADMIN, call.workspace_id)):
        raise ForbiddenProblem


async def is_public(service_store: Store, workspace_id: str) -> bool:
    """Whether any caller may read the workspace without a key (contract A6)."""
    workspace = await service_store.read_brief(lambda reader: store.find_workspace(reader, workspace_id))
    return workspace is not None and bool(workspace.public_can_read)


def operations(limits: Limits) -> tuple[Operation, ...]:
    """Return the operations on workspaces."""
    size = limits.body_bytes
    shown = Success(WorkspaceRecord, ("ETag",))
    return (
        get("workspaces.list", _ALL, WORKSPACES_READ, list_workspaces, anywhere=True).described(
            success=listed(WorkspaceRecord), query=(Parameter("filters", FILTERS, STRING), *paging(limits, FIELDS))
        ),
        post("workspaces.create", _ALL, WORKSPACES_CREATE, create_workspace, body_bytes=size).described(
            body=RequestBody(NewWorkspace, {"label": "Rocket"}),
            success=Success(WorkspaceRecord, ("ETag", "Location"), status=201, links=_LINKS),
        ),
        get("workspaces.get", _ONE, WORKSPACES_READ, get_workspace).described(success=shown, etag=True),
        delete("workspaces.delete", _ONE, WORKSPACES_DELETE, delete_workspace).described(
            success=Success(WorkspaceRecord), etag=True
        ),
        patch("workspaces.update", _ONE, WORKSPACES_WRITE, update_workspace, body_bytes=size).described(
            body=RequestBody(WorkspaceChanges, {"label": "Rocket, block 2"}, required=False), success=shown, etag=True
        ),
    )
