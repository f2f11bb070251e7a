"""Workspaces in the database: insert, find, list, update, delete."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from workspaced.core.problems import ConflictProblem, NotFoundProblem
from workspaced.http.operations import Author, Call
from workspaced.resources.workspaces.rules import NewWorkspace
from workspaced.storage.port import ReadTransaction, Row, Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.resources.workspaces", "queries.sql")


class StoredWorkspace(NamedTuple):
    """A row of a workspace. Instants are milliseconds since 1970. ``number`` is the key in other tables."""

    number: int
    id: str
    label: str
    root_block: str
    public_can_read: int
    exports_enabled: int
    guests_enabled: int
    current_version: str
    statuses: tuple[str, ...]
    version: int
    created_at: int
    updated_at: int
    created_by: str
    updated_by: str


class WorkspaceContents(NamedTuple):
    """The ids of a workspace's blocks, the root first, and of its available files (contract W4)."""

    blocks: tuple[str, ...] = ()
    attachments: tuple[str, ...] = ()


def create_workspace(
    tx: Transaction, author: Author, new: NewWorkspace, *, workspace_id: str, root_block: str
) -> StoredWorkspace:
    """Insert a workspace with its root block. Raises ConflictProblem: the id is in use."""
    if tx.one(_SQL["id_in_use"], {"id": workspace_id}):
        raise ConflictProblem("id_in_use", "This id is in use.")
    values = {
        "id": workspace_id,
        "label": new.label,
        "root_block": root_block,
        "public_can_read": new.public_can_read,
        "exports_enabled": new.exports_enabled,
        "guests_enabled": new.guests_enabled,
        "current_version": new.current_version,
        "statuses": json.dumps(new.statuses, ensure_ascii=False),
        **author.authorship,
    }
    tx.run(_SQL["insert_workspace"], values)
    tx.run(
        _SQL["insert_root_block"],
        {name: values[name] for name in ("root_block", "label", "now", "actor", "id")},
    )
    return _workspace(tx.existing(_SQL["find_workspace"], {"id": workspace_id}))


def get_workspace(reader: ReadTransaction, workspace_id: str) -> StoredWorkspace:
    """Return the workspace with this id. Raises NotFoundProblem: it does not exist, or is deleted."""
    workspace = find_workspace(reader, workspace_id)
    if workspace is None:
        raise NotFoundProblem("workspace_not_found", "There is no such workspace.")
    return workspace


def update_workspace(
    tx: Transaction, call: Call, workspace: StoredWorkspace, changed: Mapping[str, str | bool]
) -> None:
    """Write the changed fields and raise the version.

    ``changed`` is empty if only another block became the root, which `change_root` has written. The version rises then, too.
    """
    values = {
        name: getattr(workspace, name) for name in ("label", "public_can_read", "exports_enabled", "guests_enabled")
    }
    tx.run(_SQL["update_workspace"], {**values, **changed, "number": workspace.number, **call.authorship})


def delete_workspace(tx: Transaction, call: Call, workspace: StoredWorkspace) -> None:
    """Hide a workspace and its contents from every request, until an operator restores it (contract W6)."""
    tx.run(_SQL["delete_workspace"], {"number": workspace.number, **call.authorship})


def find_workspace(reader: ReadTransaction, workspace_id: str) -> StoredWorkspace | None:
    """Return the workspace with this id; None: it does not exist, or is deleted."""
    row = reader.one(_SQL["find_workspace"], {"id": workspace_id})
    return _workspace(row) if row else None


def list_workspaces(reader: ReadTransaction) -> list[StoredWorkspace]:
    """Return every workspace that is not deleted, the oldest first."""
    return [_workspace(row) for row in reader.all(_SQL["list_workspaces"])]


def list_contents(reader: ReadTransaction, workspace: StoredWorkspace) -> WorkspaceContents:
    """Return the ids of the blocks and files of a workspace."""
    blocks, attachments = (
        tuple(row[0] for row in reader.all(_SQL[name], {"number": workspace.number}))
        for name in ("block_ids", "attachment_ids")
    )
    return WorkspaceContents(blocks=blocks, attachments=attachments)


def _workspace(row: Row) -> StoredWorkspace:
    workspace = StoredWorkspace._make(row)
    return workspace._replace(statuses=tuple(json.loads(row[8])))
