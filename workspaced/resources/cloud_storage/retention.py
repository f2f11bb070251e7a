"""Deleted files: list, restore, purge. Also the removal of expired links, and of bytes without a reference (contract G25)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from workspaced.core.problems import ConflictProblem, NotFoundProblem
from workspaced.security.audit_log import SYSTEM, AuditAction, note
from workspaced.storage.blobs.blobs import GRACE_MS, Blobs
from workspaced.storage.incremental_job import repeat
from workspaced.storage.port import ReadTransaction, Transaction
from workspaced.storage.statements import load_statements
from workspaced.storage.store import Store

_SQL = load_statements("workspaced.resources.cloud_storage", "queries.sql")
_ROWS_AT_ONCE = 500
# How long an expired link is kept, so that the response to a late upload-complete can say that the link has expired.
_KEPT_MS = 86_400_000


async def purge_deleted(service_store: Store, *, before: int, now: int) -> int:
    """Remove the rows of files that were deleted before an instant. Return how many. `sweep` removes their bytes."""
    return await repeat(service_store, partial(_purge, before=before, now=now), rows=_ROWS_AT_ONCE)


async def remove_expired_uploads(service_store: Store, *, now: int) -> int:
    """Remove expired links, and announced files without an upload. Return the number of removed rows."""
    values = {"before": now - _KEPT_MS, "most": _ROWS_AT_ONCE}
    total = 0
    for statement in (_SQL["drop_old_uploads"], _SQL["drop_empty_files"]):
        total += await repeat(service_store, partial(_run, statement=statement, values=values), rows=_ROWS_AT_ONCE)
    return total


async def sweep(service_store: Store, blobs: Blobs, *, now: int) -> int:
    """Remove bytes that had no reference for `GRACE_MS`, and temporary files of killed processes. Return how many.

    The first sweep that finds bytes without a reference marks their row. A later sweep deletes the row, and then the bytes.
    """
    await service_store.read(blobs.identity.require_current)
    total = await blobs.drop_abandoned()
    after = ""
    while page := await service_store.read(partial(_page_of_blobs, after=after)):
        after = page[-1][0]
        if changed := [(sha256, in_use) for sha256, is_marked, in_use in page if is_marked == in_use]:
            await service_store.write(partial(_mark, changed=changed, now=now), weight=len(changed))
    await repeat(service_store, partial(_drop_unused, before=now - GRACE_MS), rows=_ROWS_AT_ONCE)
    while names := await service_store.read(_dropped):
        await blobs.blob_store.delete(names)
        await service_store.write(partial(_forget, names=names), weight=len(names))
        total += len(names)
    return total


def _page_of_blobs(reader: ReadTransaction, *, after: str) -> list[tuple[str, bool, bool]]:
    """Return for each row: SHA-256, whether the row is marked as unused, and whether a row refers to the bytes."""
    rows = reader.all(_SQL["page_of_blobs"], {"after": after, "most": _ROWS_AT_ONCE})
    return [(sha256, bool(is_marked), bool(in_use)) for sha256, is_marked, in_use in rows]


def _mark(tx: Transaction, *, changed: Sequence[tuple[str, bool]], now: int) -> None:
    for sha256, in_use in changed:
        tx.later(_SQL["unmark_used" if in_use else "mark_unused"], {"sha256": sha256, "now": now})


def _drop_unused(tx: Transaction, *, before: int) -> int:
    dropped = tx.all(_SQL["drop_unused"], {"before": before, "most": _ROWS_AT_ONCE})
    tx.load(_SQL["insert_dropped"], dropped)
    return len(dropped)


def _dropped(reader: ReadTransaction) -> list[str]:
    return [name for (name,) in reader.all(_SQL["dropped"], {"most": _ROWS_AT_ONCE})]


def _forget(tx: Transaction, *, names: Sequence[str]) -> None:
    for name in names:
        tx.later(_SQL["forget_dropped"], {"name": name})


def _run(tx: Transaction, *, statement: str, values: dict[str, int]) -> int:
    return tx.run(statement, values)


def _purge(tx: Transaction, *, before: int, now: int) -> int:
    removed = tx.all(_SQL["purge_deleted"], {"before": before, "most": _ROWS_AT_ONCE})
    for file_id, workspace_id in removed:
        action = AuditAction(action="cloud_storage.file.purged", resource_id=file_id, workspace_id=workspace_id)
        note(tx, SYSTEM, action, now=now)
    return len(removed)


class ListedFile(NamedTuple):
    """A file, deleted or not. Instants are milliseconds since 1970, ``size`` is in bytes."""

    id: str
    workspace_id: str
    name: str
    size: int
    versions: int
    created_at: int
    deleted_at: int | None


def every_file(reader: ReadTransaction, *, workspace_id: str = "") -> list[ListedFile]:
    """Return the files of a workspace (empty: of all workspaces), also deleted files, the oldest first."""
    return [ListedFile._make(row) for row in reader.all(_SQL["all_files"], {"workspace_id": workspace_id})]


def restore(tx: Transaction, file_id: str, *, now: int) -> None:
    """Restore a deleted file with its versions and outputs. Its waiting conversions continue.

    Raises:
        NotFoundProblem: there is no such file, or it was purged.
        ConflictProblem: the file is not deleted, or its workspace is deleted.
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
