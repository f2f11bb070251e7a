"""Deleted workspaces: restore a workspace, or purge workspaces that were not restored in time (contract G25, W7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from workspaced.core.problems import ConflictProblem, NotFoundProblem, Problem
from workspaced.security.audit_log import SYSTEM, AuditAction, note
from workspaced.storage.incremental_job import repeat
from workspaced.storage.port import ReadTransaction, Transaction
from workspaced.storage.statements import load_statements
from workspaced.storage.store import Store

_SQL = load_statements("workspaced.resources.workspaces", "queries.sql")
_ROWS_AT_ONCE = 1_000

Step: TypeAlias = Callable[[Transaction, int, int], int]
"""A function (transaction, workspace number, limit) that removes rows of a workspace. It returns how many; 0: no row is left."""


class ListedWorkspace(NamedTuple):
    """A row of a workspace, deleted or not. Instants are milliseconds since 1970."""

    id: str
    label: str
    created_at: int
    deleted_at: int | None
    purging: int


def every_workspace(reader: ReadTransaction) -> list[ListedWorkspace]:
    """Return all workspaces, also deleted workspaces, the oldest first."""
    return [ListedWorkspace._make(row) for row in reader.all(_SQL["all_workspaces"])]


def restore(tx: Transaction, workspace_id: str, *, now: int) -> None:
    """Restore a deleted workspace with its contents.

    Raises:
        NotFoundProblem: there is no such workspace, or it was purged.
        ConflictProblem: it is not deleted, or its purge has started.
    """
    row = tx.one(_SQL["find_any"], {"id": workspace_id})
    if row is None:
        raise NotFoundProblem("workspace_not_found", f"There is no workspace {workspace_id}, deleted or not.")
    if row[0] is None:
        raise ConflictProblem("not_deleted", f"Workspace {workspace_id} is not deleted.")
    if row[1]:
        raise ConflictProblem("purge_begun", f"Workspace {workspace_id} can't be restored: its purge has started.")
    tx.run(_SQL["restore"], {"id": workspace_id, "now": now, "actor": SYSTEM.principal})
    action = AuditAction(
        action="workspace.restored", resource_id=workspace_id, resource_label=row[2], workspace_id=workspace_id
    )
    note(tx, SYSTEM, action, now=now)


async def purge(store: Store, steps: Sequence[Step], *, before: int, now: int) -> int:
    """Remove the workspaces that were deleted before an instant; ``steps`` remove their contents in order.

    Each transaction removes a bounded number of rows, so that other writers do not wait long. An interrupted purge continues
    at the next call. Several processes may purge at once. Returns how many workspaces were removed.

    Raises:
        ExceptionGroup: some workspaces could not be removed; all other workspaces were removed.
    """
    rows = await store.read(lambda reader: reader.all(_SQL["due"], {"before": before}))
    removed = 0
    failures: list[Exception] = []
    for number, workspace_id in rows:
        try:
            removed += await _purge_one(store, steps, number, workspace_id, before=before, now=now)
        except Problem:  # the database is busy or can't be reached: the next call continues
            raise
        except Exception as error:  # noqa: BLE001  a workspace that can't be removed must not block later workspaces
            error.add_note(f"Workspace {workspace_id} could not be purged.")
            failures.append(error)
    if failures:
        raise ExceptionGroup("Some deleted workspaces could not be purged.", failures)
    return removed


async def _purge_one(
    store: Store, steps: Sequence[Step], number: int, workspace_id: str, *, before: int, now: int
) -> int:
    if not await store.write(lambda tx: tx.run(_SQL["begin_purge"], {"number": number, "before": before})):
        return 0  # the workspace was restored, or another process purged it, after it was read
    for step in steps:
        await repeat(store, partial(_run_step, step=step, number=number), rows=_ROWS_AT_ONCE)
    return await store.write(partial(_end_purge, number=number, workspace_id=workspace_id, now=now))


def _run_step(tx: Transaction, *, step: Step, number: int) -> int:
    return step(tx, number, _ROWS_AT_ONCE)


def _end_purge(tx: Transaction, *, number: int, workspace_id: str, now: int) -> int:
    removed = tx.run(_SQL["purge_workspace"], {"number": number})
    if removed:
        action = AuditAction(action="workspace.purged", resource_id=workspace_id, workspace_id=workspace_id)
        note(tx, SYSTEM, action, now=now)
    return removed
