"""The workspace operations that exist so far: WS1, WS2, WS3."""

from __future__ import annotations

import uuid

from workspaced.access import store as access
from workspaced.access.permissions import WORKSPACES_CREATE, WORKSPACES_READ
from workspaced.problems import NotFound
from workspaced.settings import Limits
from workspaced.storage.port import Reader, Store, Transaction
from workspaced.web.answers import Answer, etag, json_answer
from workspaced.web.operations import Call, Operation, Work
from workspaced.web.paging import read_page
from workspaced.workspaces import store
from workspaced.workspaces.filters import FIELDS, read_filters
from workspaced.workspaces.records import filterable, record
from workspaced.workspaces.rules import read_new_workspace

_COLLECTION = "/v1/workspace"
_ONE = "/v1/workspace/{workspace}"


async def list_workspaces(call: Call) -> Answer:
    """WS1: those that the key may read."""
    page = read_page(call.query, longest=call.settings.limits.page_length, sortable=FIELDS)
    accepts = read_filters(call.query.get("filters"))
    principal = call.principal

    def question(reader: Reader) -> tuple[int, list[dict[str, object]]]:
        found = [
            workspace
            for workspace in store.list_workspaces(reader)
            if principal and principal.may(WORKSPACES_READ, workspace.id) and accepts(filterable(workspace))
        ]
        if page.sorted_by:
            found.sort(key=lambda workspace: (filterable(workspace)[page.sorted_by], workspace.id))
        if page.descending:
            found.reverse()
        end = None if page.take is None else page.skip + page.take
        shown = found[page.skip : end]
        return len(found), [record(workspace, store.block_ids(reader, workspace)) for workspace in shown]

    total, records = await call.store.read(question)
    return json_answer(records, headers=page.headers(total=total, path=call.path, query=call.query))


def create_workspace(call: Call) -> Work:
    """WS2: the workspace, its root block and the creator's ownership in one transaction."""
    new, ignored = read_new_workspace(call.json(), call.settings.limits)
    workspace_id = new.id or str(uuid.uuid4())
    root_block = str(uuid.uuid4())

    def act(tx: Transaction) -> Answer:
        workspace = store.create_workspace(
            tx, new, workspace_id=workspace_id, root_block=root_block, actor=call.actor, now=call.now
        )
        access.grant(tx, principal=call.actor, workspace_id=workspace.id, role="owner", now=call.now)
        headers = (("Location", f"{_COLLECTION}/{workspace.id}"), etag(workspace.version))
        return json_answer(record(workspace, [root_block]), status=201, headers=headers)

    return Work(act=act, ignored=ignored)


async def get_workspace(call: Call) -> Answer:
    """WS3."""

    def question(reader: Reader) -> tuple[store.StoredWorkspace, list[str]]:
        workspace = store.find_workspace(reader, call.workspace_id)
        if workspace is None:
            raise NotFound("workspace_not_found", "There is no such workspace.")
        return workspace, store.block_ids(reader, workspace)

    workspace, blocks = await call.store.read(question)
    if call.has_seen(workspace.version):
        return Answer(status=304, headers=(etag(workspace.version),))
    return json_answer(record(workspace, blocks), headers=(etag(workspace.version),))


async def is_public(service_store: Store, workspace_id: str) -> bool:
    """Whether anybody may read below this workspace (A6)."""
    workspace = await service_store.read(lambda reader: store.find_workspace(reader, workspace_id))
    return workspace is not None and workspace.public_can_read


def operations(limits: Limits) -> tuple[Operation, ...]:
    """The table's rows."""
    return (
        Operation(
            name="workspaces.list",
            method="GET",
            path=_COLLECTION,
            scope=WORKSPACES_READ,
            anywhere=True,
            read=list_workspaces,
        ),
        Operation(
            name="workspaces.create",
            method="POST",
            path=_COLLECTION,
            scope=WORKSPACES_CREATE,
            prepare=create_workspace,
            body_bytes=limits.body_bytes,
        ),
        Operation(name="workspaces.get", method="GET", path=_ONE, scope=WORKSPACES_READ, read=get_workspace),
    )
