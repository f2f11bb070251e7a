"""Audit rows (contract G26) and domain events (contract H7) of changes of workspaces."""

from __future__ import annotations

import msgspec

from workspaced.events.outbox import emit
from workspaced.events.payload import DomainEvent
from workspaced.http.operations import Call
from workspaced.resources.blocks import events as blocks
from workspaced.resources.blocks.store import get_placed
from workspaced.resources.workspaces import store
from workspaced.resources.workspaces.records import workspace_record
from workspaced.resources.workspaces.store import StoredWorkspace, WorkspaceContents
from workspaced.security.audit_log import AuditAction
from workspaced.storage.port import Transaction


def emit_created(tx: Transaction, call: Call, workspace: StoredWorkspace) -> None:
    """Record and emit that a workspace was created, with its root block."""
    _emit(tx, call, "created", workspace)
    blocks.emit_created(tx, call, get_placed(tx, workspace.id, workspace.root_block))


def emit_updated(tx: Transaction, call: Call, *, before: StoredWorkspace, after: StoredWorkspace) -> None:
    """Record and emit the members of a workspace that changed."""
    old, new = (msgspec.to_builtins(workspace_record(one, WorkspaceContents())) for one in (before, after))
    previous = {name: value for name, value in old.items() if name != "updatedAt" and value != new[name]}
    _emit(tx, call, "updated", after, **previous)


def emit_deleted(tx: Transaction, call: Call, workspace: StoredWorkspace) -> None:
    """Record and emit that a workspace is deleted, before it is; its contents have no events of their own."""
    _emit(tx, call, "deleted", workspace)


def _emit(tx: Transaction, call: Call, verb: str, workspace: StoredWorkspace, **previous: object) -> None:
    kind, workspace_id = f"workspace.{verb}", workspace.id
    action = AuditAction(action=kind, resource_id=workspace_id, workspace_id=workspace_id, changed=tuple(previous))
    call.note(tx, action)
    record = workspace_record(workspace, store.list_contents(tx, workspace))
    emit(tx, call, workspace_id, DomainEvent(type=kind, id=workspace_id, record=record, previous=previous))
