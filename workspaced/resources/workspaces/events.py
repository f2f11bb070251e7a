"""What changes of workspaces are in the audit log (contract G26) and as events (contract H7)."""

from __future__ import annotations

import msgspec

from workspaced.events.outbox import emit
from workspaced.events.payload import DomainEvent
from workspaced.http.operations import Call
from workspaced.resources.blocks import events as blocks
from workspaced.resources.blocks.store import get_placed
from workspaced.resources.workspaces import store
from workspaced.resources.workspaces.records import record
from workspaced.resources.workspaces.store import Collections, StoredWorkspace
from workspaced.security.audit_log import AuditAction
from workspaced.storage.port import Transaction


def emit_created(tx: Transaction, call: Call, workspace: StoredWorkspace) -> None:
    """A workspace is there, and its root block."""
    call.note(tx, _deed("created", workspace))
    _emit(tx, call, "created", workspace)
    blocks.emit_created(tx, call, get_placed(tx, workspace.id, workspace.root_block))


def emit_updated(tx: Transaction, call: Call, *, before: StoredWorkspace, after: StoredWorkspace) -> None:
    """A workspace whose own members changed."""
    former, shown = (msgspec.to_builtins(record(one, Collections())) for one in (before, after))
    previous = {
        name: value for name, value in former.items() if name not in {"blocks", "updatedAt"} and value != shown[name]
    }
    call.note(tx, _deed("updated", after, *previous))
    _emit(tx, call, "updated", after, **previous)


def emit_deleted(tx: Transaction, call: Call, workspace: StoredWorkspace) -> None:
    """A workspace that is about to be as absent; what is in it goes with it and is not told."""
    call.note(tx, _deed("deleted", workspace))
    _emit(tx, call, "deleted", workspace)


def _deed(verb: str, workspace: StoredWorkspace, *changed: str) -> AuditAction:
    return AuditAction(action=f"workspace.{verb}", resource_id=workspace.id, workspace_id=workspace.id, changed=changed)


def _emit(tx: Transaction, call: Call, verb: str, workspace: StoredWorkspace, **previous: object) -> None:
    shown = record(workspace, store.collections(tx, workspace))
    emit(
        tx, call, workspace.id, DomainEvent(type=f"workspace.{verb}", id=workspace.id, record=shown, previous=previous)
    )
