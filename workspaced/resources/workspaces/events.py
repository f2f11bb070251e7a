"""Audit rows (contract G26) and domain events (contract H7) of changes of workspaces."""

from __future__ import annotations

from workspaced.events.payload import DomainEvent
from workspaced.http.operations import Author, Call
from workspaced.resources.blocks.changes import record_creation
from workspaced.resources.blocks.store import get_placed
from workspaced.resources.recorded_change import changed_members, record_change
from workspaced.resources.workspaces import store
from workspaced.resources.workspaces.records import workspace_record
from workspaced.resources.workspaces.store import StoredWorkspace, WorkspaceContents
from workspaced.storage.port import Transaction


def emit_created(tx: Transaction, author: Author, workspace: StoredWorkspace) -> None:
    """Record and emit that a workspace and its root block were created."""
    _record(tx, author, "created", workspace)
    record_creation(tx, author, get_placed(tx, workspace.id, workspace.root_block))


def emit_updated(tx: Transaction, call: Call, *, before: StoredWorkspace, after: StoredWorkspace) -> None:
    """Record and emit which members of a workspace changed."""
    old, new = (workspace_record(one, WorkspaceContents()) for one in (before, after))
    _record(tx, call, "updated", after, **changed_members(old, new))


def emit_deleted(tx: Transaction, call: Call, workspace: StoredWorkspace) -> None:
    """Record and emit the deletion of a workspace. Call this before the deletion.

    The contents of the workspace cause no separate events.
    """
    _record(tx, call, "deleted", workspace)


def _record(tx: Transaction, author: Author, verb: str, workspace: StoredWorkspace, **previous: object) -> None:
    record = workspace_record(workspace, store.list_contents(tx, workspace))
    event = DomainEvent(type=f"workspace.{verb}", id=workspace.id, record=record, previous=previous)
    record_change(tx, author, workspace.id, event, label=workspace.label)
