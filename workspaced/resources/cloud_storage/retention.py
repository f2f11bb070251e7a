"""Removal of deleted files, of expired links, and of bytes that nothing refers to (contract G25)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from workspaced.resources.cloud_storage import store
from workspaced.security.audit_log import SYSTEM, AuditAction, note
from workspaced.storage.blobs import Blobs
from workspaced.storage.port import Transaction
from workspaced.storage.statements import load_statements
from workspaced.storage.store import Store

_SQL = load_statements("workspaced.resources.cloud_storage", "queries.sql")
_ROWS_AT_ONCE = 500
# How long an expired link is kept, so that a late upload-complete gets the response that explains it.
_KEPT_MS = 86_400_000


async def purge_deleted(service_store: Store, *, before: int, now: int) -> int:
    """Remove the files that were deleted before an instant. Return how many. `sweep` removes their bytes."""
    purged = 0
    while removed := await service_store.write(partial(_purge, before=before, now=now), weight=_ROWS_AT_ONCE):
        purged += removed
    return purged


async def remove_expired_uploads(service_store: Store, *, now: int) -> int:
    """Remove expired links, and announced files without an upload. Return the number of rows."""
    values = {"before": now - _KEPT_MS, "most": _ROWS_AT_ONCE}
    removed = 0
    for name in ("drop_old_uploads", "drop_empty_files"):
        while removed := await service_store.write(partial(_run, name=name, values=values), weight=_ROWS_AT_ONCE):
            removed += removed
    return removed


async def sweep(service_store: Store, blobs: Blobs) -> int:
    """Remove bytes that no row refers to, and temporary files of killed processes. Return how many files."""

    async def referenced(digests: Sequence[str]) -> frozenset[str]:
        return await service_store.read(lambda reader: store.referenced(reader, digests))

    return await blobs.sweep(referenced)


def _run(tx: Transaction, *, name: str, values: dict[str, int]) -> int:
    return tx.run(_SQL[name], values)


def _purge(tx: Transaction, *, before: int, now: int) -> int:
    removed = tx.all(_SQL["purge_deleted"], {"before": before, "most": _ROWS_AT_ONCE})
    for file_id, workspace_id in removed:
        note(
            tx,
            SYSTEM,
            AuditAction(action="cloud_storage.file.purged", resource_id=file_id, workspace_id=workspace_id),
            now=now,
        )
    return len(removed)
