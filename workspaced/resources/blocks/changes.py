"""Changes of blocks as whole steps of a transaction: done, noted and told. The root block has two ways to be changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workspaced.events.outbox import listening
from workspaced.http.operations import Call
from workspaced.resources.blocks import events, store
from workspaced.resources.blocks.values import Placed
from workspaced.storage.port import Transaction


def change_block(tx: Transaction, call: Call, before: Placed, changes: Mapping[str, Any]) -> Placed:
    """The block after the changes.

    Raises:
        Unprocessable: it can't go below the new parent.
    """
    _, changed = store.update_block(
        tx, before.block, changes, actor=call.actor, now=call.now, limits=call.settings.limits
    )
    if not changed:
        return before
    after = store.get_placed(tx, call.workspace_id, before.block.id)
    events.emit_updated(tx, call, before=before, after=after)
    return after


def change_root(tx: Transaction, call: Call, root_id: str, *, promoted: str | None, changes: Mapping[str, Any]) -> None:
    """Change the root block or, where another block is named, make that the root and change it (contract W5).

    Raises:
        Unprocessable: it is no block of this workspace, or the tree would be too deep.
    """
    if promoted is not None and promoted != root_id:
        limits = call.settings.limits
        ids = (promoted, root_id)
        store.require_block(tx, call.workspace_id, promoted)
        before = [store.get_placed(tx, call.workspace_id, block_id) for block_id in ids]
        store.promote(tx, call.workspace_id, promoted, actor=call.actor, now=call.now, limits=limits)
        for former in before:
            after = store.get_placed(tx, call.workspace_id, former.block.id)
            events.emit_updated(tx, call, before=former, after=after)
        root_id = promoted
    change_block(tx, call, store.get_placed(tx, call.workspace_id, root_id), changes)


def delete_block(tx: Transaction, call: Call, placed: Placed, *, force: bool) -> None:
    """The block is gone and, with ``force``, all below it.

    Raises:
        Conflict: it is the root block, or has children.
    """
    store.require_deletable(tx, placed, force=force)
    subtree = store.get_subtree(tx, placed.block)
    told = listening(tx, call, call.workspace_id, "block.deleted")
    gone = [store.get_placed(tx, call.workspace_id, block_id) for block_id in subtree] if told else []
    store.delete_subtree(tx, placed.block, count=len(subtree), actor=call.actor, now=call.now)
    events.emit_deleted(tx, call, placed.block.id, count=len(subtree), gone=gone)
