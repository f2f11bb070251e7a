"""What is dropped when its time is over (contract G25): deleted files, uploads that never came, bytes that nothing names."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from workspaced.resources.cloud_storage import store
from workspaced.security.audit_log import SYSTEM, AuditAction, note
from workspaced.storage.blobs.port import Blobs
from workspaced.storage.port import Store, Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.resources.cloud_storage", "queries.sql")
_PORTION = 500
# How long after its end a link is still known, so that a late upload-complete is answered as it should be.
_KEPT_MS = 86_400_000


async def purge_deleted(service_store: Store, *, before: int, now: int) -> int:
    """Drop the files that were deleted before an instant; how many they were. Their bytes go with the next `sweep`."""
    purged = 0
    while gone := await service_store.write(partial(_purge, before=before, now=now), weight=_PORTION):
        purged += gone
    return purged


async def drop_uploads(service_store: Store, *, now: int) -> int:
    """Drop links whose time is over, and files that were announced by them and never came; how many rows they were."""
    values = {"before": now - _KEPT_MS, "most": _PORTION}
    dropped = 0
    for name in ("drop_old_uploads", "drop_empty_files"):
        while gone := await service_store.write(partial(_run, name=name, values=values), weight=_PORTION):
            dropped += gone
    return dropped


async def sweep(service_store: Store, blobs: Blobs) -> int:
    """Drop the bytes that nothing names, and what killed processes left; how many things they were."""

    async def referenced(digests: Sequence[str]) -> frozenset[str]:
        return await service_store.read(lambda reader: store.referenced(reader, digests))

    return await blobs.sweep(referenced)


def _run(tx: Transaction, *, name: str, values: dict[str, int]) -> int:
    return tx.run(_SQL[name], values)


def _purge(tx: Transaction, *, before: int, now: int) -> int:
    gone = tx.all(_SQL["purge_deleted"], {"before": before, "most": _PORTION})
    for file_id, workspace_id in gone:
        note(
            tx,
            SYSTEM,
            AuditAction(action="cloud_storage.file.purged", resource_id=file_id, workspace_id=workspace_id),
            now=now,
        )
    return len(gone)
