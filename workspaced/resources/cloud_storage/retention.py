"""Deleted files: list, restore and purge them; and remove expired links and bytes that nothing refers to (contract G25)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from workspaced.core.problems import ConflictProblem, NotFoundProblem
from workspaced.resources.cloud_storage import store
from workspaced.security.audit_log import SYSTEM, AuditAction, note
from workspaced.storage.blobs import Blobs
from workspaced.storage.incremental_job import repeat
from workspaced.storage.port import ReadTransaction, Transaction
from workspaced.storage.statements import load_statements
from workspaced.storage.store import Store

_SQL = load_statements("workspaced.resources.cloud_storage", "queries.sql")
_ROWS_AT_ONCE = 500
# How long an expired link is kept, so that a late upload-complete gets the response that explains it.
_KEPT_MS = 86_400_000


async def purge_deleted(service_store: Store, *, before: int, now: int) -> int:
    """Remove the files that were deleted before an instant. Return how many. `sweep` removes their bytes."""
    return await repeat(service_store, partial(_purge, before=before, now=now), rows=_ROWS_AT_ONCE)


async def remove_expired_uploads(service_store: Store, *, now: int) -> int:
    """Remove expired links, and announced files without an upload. Return the number of rows."""
    values = {"before": now - _KEPT_MS, "most": _ROWS_AT_ONCE}
    total = 0
    for statement in (_SQL["drop_old_uploads"], _SQL["drop_empty_files"]):
        total += await repeat(service_store, partial(_run, statement=statement, values=values), rows=_ROWS_AT_ONCE)
    return total


async def sweep(service_store: Store, blobs: Blobs) -> int:
    """Remove bytes that no row refers to, and temporary files of killed processes. Return how many files."""

    async def referenced(digests: Sequence[str]) -> frozenset[str]:
        return await service_store.read(lambda reader: store.referenced(reader, digests))

    return await blobs.sweep(referenced)


def _run(tx: Transaction, *, statement: str, values: dict[str, int]) -> int:
    return tx.run(statement, values)


def _purge(tx: Transaction, *, before: int, now: int) -> int:
    removed = tx.all(_SQL["purge_deleted"], {"before": before, "most": _ROWS_AT_ONCE})
    for file_id, workspace_id in removed:
        action = AuditAction(action="cloud_storage.file.purged", resource_id=file_id, workspace_id=workspace_id)
        note(tx, SYSTEM, action, now=now)
    return len(removed)


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
    workspace, workspace_id, deleted_at, workspace_deleted_at, name = row
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
    action = AuditAction(
        action="cloud_storage.file.restored", resource_id=file_id, resource_label=name, workspace_id=workspace_id
    )
    note(tx, SYSTEM, action, now=now)
