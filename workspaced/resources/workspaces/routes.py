"""The workspaces' operations (contract WS1, WS2, WS3, WS4, WS5)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from workspaced.core.members import read_body, read_changes
from workspaced.core.problems import ForbiddenProblem
from workspaced.http.operations import Call, Operation, Work
from workspaced.http.pagination import read_page
from workspaced.http.responses import Response, etag, json_response
from workspaced.resources.blocks.changes import change_root
from workspaced.resources.cloud_storage.conversion_store import CONVERSIONS
from workspaced.resources.operation_rows import read_operation, write_operation
from workspaced.resources.workspaces import events, store
from workspaced.resources.workspaces.filters import FIELDS, read_filters
from workspaced.resources.workspaces.records import WorkspaceRecord, filterable, record
from workspaced.resources.workspaces.rules import FLAGS, NewWorkspace, WorkspaceChanges
from workspaced.security import key_store as access
from workspaced.security.permissions import (
    ADMIN,
    WORKSPACES_CREATE,
    WORKSPACES_DELETE,
    WORKSPACES_READ,
    WORKSPACES_WRITE,
)
from workspaced.settings.model import Limits
from workspaced.storage.port import ReadTransaction, Store, Transaction

_COLLECTION = "/v1/workspace"
_ONE = "/v1/workspace/{workspace}"


async def list_workspaces(call: Call) -> Response:
    """List workspaces (contract WS1): those that the key may read."""
    page = read_page(call.query, longest=call.settings.limits.page_length, sortable=FIELDS)
    accepts = read_filters(call.query.get("filters"))
    principal = call.principal

    def question(reader: ReadTransaction) -> tuple[int, list[WorkspaceRecord]]:
        found = [
            workspace
            for workspace in store.list_workspaces(reader)
            if principal and principal.may(WORKSPACES_READ, workspace.id) and accepts(filterable(workspace))
        ]
        if page.sorted_by:
            found.sort(key=lambda workspace: (filterable(workspace)[page.sorted_by], workspace.id))
        if page.descending:
            found.reverse()
        shown = page.of(found)
        return len(found), [record(workspace, store.collections(reader, workspace)) for workspace in shown]

    total, records = await call.store.read(question)
    return json_response(records, headers=page.headers(total=total, path=call.path, query=call.query))


def create_workspace(call: Call) -> Work:
    """Create a workspace (contract WS2): the workspace, its root block and the creator's ownership in one transaction."""
    new, ignored = read_body(NewWorkspace, call.json(), call.settings.limits)
    workspace_id = new.id or str(uuid.uuid4())
    root_block = str(uuid.uuid4())

    def act(tx: Transaction) -> Response:
        workspace = store.create_workspace(
            tx, new, workspace_id=workspace_id, root_block=root_block, actor=call.actor, now=call.now
        )
        access.grant(tx, principal=call.actor, workspace_id=workspace.id, role="owner", now=call.now)
        events.emit_created(tx, call, workspace)
        headers = (("Location", f"{_COLLECTION}/{workspace.id}"), etag(workspace.version))
        return json_response(record(workspace, store.Collections(blocks=(root_block,))), status=201, headers=headers)

    return Work(act=act, ignored=ignored)


async def get_workspace(call: Call) -> Response:
    """Get a workspace (contract WS3)."""

    def question(reader: ReadTransaction) -> tuple[store.StoredWorkspace, store.Collections]:
        workspace = store.get_workspace(reader, call.workspace_id)
        return workspace, store.collections(reader, workspace)

    workspace, collections = await call.store.read(question)
    if call.has_seen(workspace.version):
        return Response(status=304, headers=(etag(workspace.version),))
    return json_response(record(workspace, collections), headers=(etag(workspace.version),))


def delete_workspace(call: Call) -> Work:
    """Delete a workspace (contract WS4): soft, so that it can be restored for a while; answers what it was."""

    def act(tx: Transaction) -> Response:
        workspace = store.get_workspace(tx, call.workspace_id)
        call.require_match(workspace.version)
        events.emit_deleted(tx, call, workspace)  # before, while those who are told may still read it
        answer = json_response(record(workspace, store.collections(tx, workspace)))
        store.delete_workspace(tx, workspace, actor=call.actor, now=call.now)
        tx.notify(CONVERSIONS)  # those under way are stopped
        return answer

    return Work(act=act)


def update_workspace(call: Call) -> Work:
    """Update a workspace (contract WS5). No body at all is an empty one (contract W5)."""
    given, ignored = read_changes(WorkspaceChanges, call.json() if call.body else {}, call.settings.limits)
    root = given.pop("root", None)

    def act(tx: Transaction) -> Response:
        before = store.get_workspace(tx, call.workspace_id)
        call.require_match(before.version)
        changed = {name: value for name, value in given.items() if getattr(before, name) != value}
        _require_ownership(call, changed)
        if root is not None:
            change_root(tx, call, before.root_block, promoted=root.id, changes=root.changes)
        after = store.get_workspace(tx, call.workspace_id)
        if changed or after.root_block != before.root_block:
            store.update_workspace(tx, after, changed, actor=call.actor, now=call.now)
            after = store.get_workspace(tx, call.workspace_id)
            events.emit_updated(tx, call, before=before, after=after)
        return json_response(record(after, store.collections(tx, after)), headers=(etag(after.version),))

    return Work(act=act, ignored=ignored)


def _require_ownership(call: Call, changed: Mapping[str, object]) -> None:
    """Who may change what is in a workspace may not therefore open it to others.

    Raises:
        ForbiddenProblem: a flag would change, and the key does not own the workspace.
    """
    if FLAGS & changed.keys() and not (call.principal and call.principal.may(ADMIN, call.workspace_id)):
        raise ForbiddenProblem


async def is_public(service_store: Store, workspace_id: str) -> bool:
    """Whether anybody may read below this workspace (contract A6)."""
    workspace = await service_store.read_brief(lambda reader: store.find_workspace(reader, workspace_id))
    return workspace is not None and bool(workspace.public_can_read)


def operations(limits: Limits) -> tuple[Operation, ...]:
    """The table's rows."""
    return (
        read_operation("workspaces.list", _COLLECTION, WORKSPACES_READ, list_workspaces, anywhere=True),
        write_operation(
            "workspaces.create", "POST", _COLLECTION, WORKSPACES_CREATE, create_workspace, body_bytes=limits.body_bytes
        ),
        read_operation("workspaces.get", _ONE, WORKSPACES_READ, get_workspace),
        write_operation("workspaces.delete", "DELETE", _ONE, WORKSPACES_DELETE, delete_workspace),
        write_operation(
            "workspaces.update", "PATCH", _ONE, WORKSPACES_WRITE, update_workspace, body_bytes=limits.body_bytes
        ),
    )
