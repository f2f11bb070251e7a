"""Workspaces in the database."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from ingestd.process.statements import load_statements
from workspaced.core.problems import ConflictProblem, NotFoundProblem
from workspaced.resources.workspaces.rules import NewWorkspace
from workspaced.storage.port import ReadTransaction, Row, Transaction

_SQL = load_statements("workspaced.resources.workspaces", "queries.sql")


class StoredWorkspace(NamedTuple):
    """A workspace's row, in the order of every SELECT of workspaces. Instants are milliseconds since 1970.

    ``number`` is the key in other tables.
    """

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


class Collections(NamedTuple):
    """The ids of what is in a workspace: its blocks, the root first, and its available files, the oldest first (contract W4)."""

    blocks: tuple[str, ...] = ()
    attachments: tuple[str, ...] = ()


def create_workspace(
    tx: Transaction, new: NewWorkspace, *, workspace_id: str, root_block: str, actor: str, now: int
) -> StoredWorkspace:
    """The workspace with its root block.

    Raises:
        ConflictProblem: the id is in use.
    """
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
        "now": now,
        "actor": actor,
    }
    tx.run(_SQL["insert_workspace"], values)
    tx.run(
        _SQL["insert_root_block"],
        {name: values[name] for name in ("root_block", "label", "now", "actor", "id")},
    )
    row = tx.one(_SQL["find_workspace"], {"id": workspace_id})
    if row is None:
        raise LookupError(f"workspace {workspace_id} is not there right after it was inserted")
    return _workspace(row)


def get_workspace(reader: ReadTransaction, workspace_id: str) -> StoredWorkspace:
    """The workspace with this id, unless it is deleted.

    Raises:
        NotFoundProblem: there is none.
    """
    workspace = find_workspace(reader, workspace_id)
    if workspace is None:
        raise NotFoundProblem("workspace_not_found", "There is no such workspace.")
    return workspace


def update_workspace(
    tx: Transaction, workspace: StoredWorkspace, changed: Mapping[str, str | bool], *, actor: str, now: int
) -> None:
    """Give fields other values. No field is a change, too: of something that the record shows and another table holds."""
    values = {
        name: getattr(workspace, name) for name in ("label", "public_can_read", "exports_enabled", "guests_enabled")
    }
    tx.run(_SQL["update_workspace"], {**values, **changed, "number": workspace.number, "now": now, "actor": actor})


def delete_workspace(tx: Transaction, workspace: StoredWorkspace, *, actor: str, now: int) -> None:
    """From now on it is as absent, with all that is in it, until somebody restores it (contract W6)."""
    tx.run(_SQL["delete_workspace"], {"number": workspace.number, "now": now, "actor": actor})


def find_workspace(reader: ReadTransaction, workspace_id: str) -> StoredWorkspace | None:
    """The workspace with this id, unless it is deleted."""
    row = reader.one(_SQL["find_workspace"], {"id": workspace_id})
    return _workspace(row) if row else None


def list_workspaces(reader: ReadTransaction) -> list[StoredWorkspace]:
    """Every workspace, oldest first."""
    return [_workspace(row) for row in reader.all(_SQL["list_workspaces"])]


def collections(reader: ReadTransaction, workspace: StoredWorkspace) -> Collections:
    """The ids of what is in it."""
    blocks, attachments = (
        tuple(row[0] for row in reader.all(_SQL[name], {"number": workspace.number}))
        for name in ("block_ids", "attachment_ids")
    )
    return Collections(blocks=blocks, attachments=attachments)


def _workspace(row: Row) -> StoredWorkspace:
    workspace = StoredWorkspace._make(row)
    return workspace._replace(statuses=tuple(json.loads(row[8])))
