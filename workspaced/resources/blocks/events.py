"""Audit rows (contract G26) and domain events (contract H7) of changes of blocks."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from workspaced.events.outbox import emit
from workspaced.events.payload import DomainEvent
from workspaced.http.operations import Call
from workspaced.resources.blocks.records import BlockRecord, block_record
from workspaced.resources.blocks.values import PlacedBlock
from workspaced.security.audit_log import AuditAction
from workspaced.storage.port import Transaction

_FOLLOWING_MEMBERS = frozenset({"updated_at", "updated_by"})
"""Members that always change together with another member."""
_CAMEL = dict(zip(BlockRecord.__struct_fields__, BlockRecord.__struct_encode_fields__, strict=True))


def emit_created(tx: Transaction, call: Call, placed: PlacedBlock) -> None:
    """Record and emit that a block was created."""
    block = placed.block
    call.note(tx, AuditAction(action="block.created", resource_id=block.id, workspace_id=block.workspace_id))
    emit(tx, call, block.workspace_id, DomainEvent(type="block.created", id=block.id, record=block_record(placed)))


def emit_updated(tx: Transaction, call: Call, *, before: PlacedBlock, after: PlacedBlock) -> None:
    """Record and emit the members of a block that changed."""
    old, new = block_record(before), block_record(after)
    previous = {
        camel: getattr(old, name)
        for name, camel in _CAMEL.items()
        if name not in _FOLLOWING_MEMBERS and _plain(getattr(old, name)) != _plain(getattr(new, name))
    }
    if not previous:
        return
    block = after.block
    action = AuditAction(
        action="block.updated", resource_id=block.id, workspace_id=block.workspace_id, changed=tuple(previous)
    )
    call.note(tx, action)
    emit(tx, call, block.workspace_id, DomainEvent(type="block.updated", id=block.id, record=new, previous=previous))


def emit_deleted(tx: Transaction, call: Call, block_id: str, *, count: int, deleted: Sequence[PlacedBlock]) -> None:
    """Record that ``count`` blocks were deleted, and emit one event for each of ``deleted`` (contract B6)."""
    workspace_id = call.workspace_id
    action = AuditAction(
        action="block.deleted", resource_id=block_id, workspace_id=workspace_id, counts={"deleted": count}
    )
    call.note(tx, action)
    events = [DomainEvent(type="block.deleted", id=placed.block.id, record=block_record(placed)) for placed in deleted]
    emit(tx, call, workspace_id, *events)


def _plain(value: object) -> object:
    return bytes(value) if isinstance(value, msgspec.Raw) else value
