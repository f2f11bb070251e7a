"""Workspaces after their deletion: restored, or purged when nobody has for so long (contract G25, W7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

from workspaced.core.problems import ConflictProblem, NotFoundProblem
from workspaced.security.audit_log import SYSTEM, AuditAction, note
from workspaced.storage.port import ReadTransaction, Store, Transaction, Values
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.resources.workspaces", "queries.sql")
_PORTION = 1_000

Step: TypeAlias = Callable[[Transaction, int, int], int]
"""Drops at most so many rows that belong to a workspace, by its number; how many they were, 0 when none is left."""


class ListedWorkspace(NamedTuple):
    """A workspace of whatever state, in the order of the SELECT. Instants are milliseconds since 1970."""

    id: str
    label: str
    created_at: int
    deleted_at: int | None
    purging: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Due:
    number: int
    id: str


def every_workspace(reader: ReadTransaction) -> list[ListedWorkspace]:
    """All of them, oldest first, the deleted ones too."""
    return [ListedWorkspace._make(row) for row in reader.all(_SQL["all_workspaces"])]


def restore(tx: Transaction, workspace_id: str, *, now: int) -> None:
    """A deleted workspace is there again, with all that was in it.

    Raises:
        NotFoundProblem: there is none, or it is purged already.
        ConflictProblem: it is not deleted, or its purge has begun.
    """
    row = tx.one(_SQL["find_any"], {"id": workspace_id})
    if row is None:
        raise NotFoundProblem("workspace_not_found", f"There is no workspace {workspace_id}, deleted or not.")
    if row[0] is None:
        raise ConflictProblem("not_deleted", f"Workspace {workspace_id} is not deleted.")
    if row[1]:
        raise ConflictProblem("purge_begun", f"Workspace {workspace_id} can't be restored: its purge has begun.")
    tx.run(_SQL["restore"], {"id": workspace_id, "now": now, "actor": SYSTEM.principal})
    note(
        tx,
        SYSTEM,
        AuditAction(action="workspace.restored", resource_id=workspace_id, workspace_id=workspace_id),
        now=now,
    )


async def purge(store: Store, steps: Sequence[Step], *, before: int, now: int) -> int:
    """Drop the workspaces that were deleted before an instant, with what ``steps`` drop of each, in their order.

    In portions, so that nobody waits long for the writer. Ended in the middle it goes on the next time, and several
    processes may do it at once: what one drops the other does not find. Returns how many workspaces are gone.
    """
    rows = await store.read(lambda reader: reader.all(_SQL["due"], {"before": before}))
    gone = 0
    for due in (_Due(number=row[0], id=row[1]) for row in rows):
        begin = {"number": due.number, "before": before}
        if not await store.write(partial(_run, statement=_SQL["begin_purge"], values=begin)):
            continue  # restored, or purged by another process, since it was looked for
        for step in steps:
            while await store.write(partial(_portion, step=step, number=due.number), weight=_PORTION):
                pass
        gone += await store.write(partial(_end, due=due, now=now))
    return gone


def _run(tx: Transaction, *, statement: str, values: Values) -> int:
    return tx.run(statement, values)


def _portion(tx: Transaction, *, step: Step, number: int) -> int:
    return step(tx, number, _PORTION)


def _end(tx: Transaction, *, due: _Due, now: int) -> int:
    gone = tx.run(_SQL["purge_workspace"], {"number": due.number})
    if gone:
        note(tx, SYSTEM, AuditAction(action="workspace.purged", resource_id=due.id, workspace_id=due.id), now=now)
    return gone
