"""Changes of blocks, with their audit rows (contract G26) and domain events (contract H7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workspaced.events.outbox import emit, is_subscribed
from workspaced.events.payload import DomainEvent
from workspaced.http.operations import Author, Call
from workspaced.resources.blocks import store
from workspaced.resources.blocks.records import block_record
from workspaced.resources.blocks.values import PlacedBlock
from workspaced.resources.recorded_change import changed_members, record_change
from workspaced.storage.port import Transaction

_NOTHING: Mapping[str, Any] = {}


def change_block(tx: Transaction, call: Call, before: PlacedBlock, changes: Mapping[str, Any]) -> PlacedBlock:
    """Change a block, and return the block after the changes.

    Raises:
        UnprocessableProblem: the block can't be a child of the new parent.
    """
    changed = store.update_block(tx, call, before.block, changes)
    if not changed:
        return before
    after = store.get_placed(tx, call.workspace_id, before.block.id)
    _record_update(tx, call, before=before, after=after)
    return after


def change_root(tx: Transaction, call: Call, root_id: str, *, promoted: str | None, changes: Mapping[str, Any]) -> None:
    """If ``promoted`` is another block, make that block the root. Then change the root block (contract W5).

    Raises:
        UnprocessableProblem: ``promoted`` is not a block of this workspace, or the tree would be too deep.
    """
    if promoted is not None and promoted != root_id:
        ids = (promoted, root_id)
        store.require_block(tx, call.workspace_id, promoted)
        before = [store.get_placed(tx, call.workspace_id, block_id) for block_id in ids]
        store.promote(tx, call, promoted)
        for former in before:
            after = store.get_placed(tx, call.workspace_id, former.block.id)
            _record_update(tx, call, before=former, after=after)
        root_id = promoted
    change_block(tx, call, store.get_placed(tx, call.workspace_id, root_id), changes)


def delete_block(tx: Transaction, call: Call, placed: PlacedBlock, *, force: bool) -> None:
    """Delete a block and, with ``force``, all blocks below it.

    Raises:
        ConflictProblem: the block is the root block, or it has children and ``force`` is false.
    """
    store.require_deletable(tx, placed, force=force)
    subtree = store.get_subtree(tx, placed.block)
    emits = is_subscribed(tx, call, call.workspace_id, "block.deleted")
    deleted = [store.get_placed(tx, call.workspace_id, block_id) for block_id in subtree] if emits else []
    store.delete_subtree(tx, call, placed.block, count=len(subtree))
    call.note(
        tx,
        "block.deleted",
        placed.block.id,
        label=placed.block.label,
        workspace_id=call.workspace_id,
        counts={"deleted": len(subtree)},
    )
    emit(tx, call, call.workspace_id, *(_event("deleted", one) for one in deleted))  # one for each block (contract B6)


def record_creation(tx: Transaction, author: Author, placed: PlacedBlock) -> None:
    """Record and emit that a block was created."""
    record_change(tx, author, placed.block.workspace_id, _event("created", placed), label=placed.block.label)


def _record_update(tx: Transaction, call: Call, *, before: PlacedBlock, after: PlacedBlock) -> None:
    if previous := changed_members(block_record(before), block_record(after)):
        record_change(tx, call, after.block.workspace_id, _event("updated", after, previous), label=after.block.label)


def _event(verb: str, placed: PlacedBlock, previous: Mapping[str, Any] = _NOTHING) -> DomainEvent:
    return DomainEvent(type=f"block.{verb}", id=placed.block.id, record=block_record(placed), previous=previous)
