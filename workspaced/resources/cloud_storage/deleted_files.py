"""Deleted files: list them, and restore one before it is purged (contract G25)."""

from __future__ import annotations

from typing import NamedTuple

from workspaced.core.problems import ConflictProblem, NotFoundProblem
from workspaced.security.audit_log import SYSTEM, AuditAction, note
from workspaced.storage.port import ReadTransaction, Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.resources.cloud_storage", "deleted_files.sql")


class ListedFile(NamedTuple):
    """A file, deleted or not. Instants are milliseconds since 1970, ``size`` is bytes."""

    id: str
    workspace_id: str
    name: str
    size: int
    versions: int
    created_at: int
    deleted_at: int | None


def every_file(reader: ReadTransaction, *, workspace_id: str = "") -> list[ListedFile]:
    """Return all files, or those of one workspace, also the deleted ones, the oldest first."""
    return [ListedFile._make(row) for row in reader.all(_SQL["all_files"], {"workspace_id": workspace_id})]


def restore(tx: Transaction, file_id: str, *, now: int) -> None:
    """Restore a deleted file with its versions and outputs. Its waiting conversions continue.

    Raises:
        NotFoundProblem: there is none, or it was purged.
        ConflictProblem: it is not deleted, or its workspace is.
    """
    row = tx.one(_SQL["find_any"], {"id": file_id})
    if row is None:
        raise NotFoundProblem("file_not_found", f"There is no file {file_id}, deleted or not.")
    workspace, workspace_id, deleted_at, workspace_deleted_at = row
    if workspace_deleted_at is not None:
        raise ConflictProblem(
            "workspace_deleted",
            f"File {file_id} is in workspace {workspace_id}, which is deleted. Restore that first: "
            f"`workspaced workspaces restore {workspace_id}`.",
        )
    if deleted_at is None:
        raise ConflictProblem("not_deleted", f"File {file_id} is not deleted.")
    values = {"now": now, "actor": SYSTEM.principal}
    tx.run(_SQL["restore"], {"id": file_id, **values})
    tx.run(_SQL["raise_workspace_version"], {"workspace": workspace, **values})
    action = AuditAction(action="cloud_storage.file.restored", resource_id=file_id, workspace_id=workspace_id)
    note(tx, SYSTEM, action, now=now)
