"""What changes of blocks are in the audit log (contract G26) and as events (contract H7)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from workspaced.events.outbox import emit
from workspaced.events.payload import DomainEvent
from workspaced.http.operations import Call
from workspaced.resources.blocks.records import BlockRecord, record
from workspaced.resources.blocks.values import Placed
from workspaced.security.audit_log import AuditAction
from workspaced.storage.port import Transaction

_NOTHING_BY_THEMSELVES = frozenset({"updated_at", "updated_by"})
_CAMEL = dict(zip(BlockRecord.__struct_fields__, BlockRecord.__struct_encode_fields__, strict=True))


def emit_created(tx: Transaction, call: Call, placed: Placed) -> None:
    """A block is there."""
    block = placed.block
    call.note(tx, AuditAction(action="block.created", resource_id=block.id, workspace_id=block.workspace_id))
    emit(tx, call, block.workspace_id, DomainEvent(type="block.created", id=block.id, record=record(placed)))


def emit_updated(tx: Transaction, call: Call, *, before: Placed, after: Placed) -> None:
    """A block's record, before and after; what is equal in both is nothing to tell."""
    former, shown = record(before), record(after)
    previous = {
        camel: getattr(former, name)
        for name, camel in _CAMEL.items()
        if name not in _NOTHING_BY_THEMSELVES and _plain(getattr(former, name)) != _plain(getattr(shown, name))
    }
    if not previous:
        return
    block = after.block
    action = AuditAction(
        action="block.updated", resource_id=block.id, workspace_id=block.workspace_id, changed=tuple(previous)
    )
    call.note(tx, action)
    emit(tx, call, block.workspace_id, DomainEvent(type="block.updated", id=block.id, record=shown, previous=previous))


def emit_deleted(tx: Transaction, call: Call, block_id: str, *, count: int, gone: Sequence[Placed]) -> None:
    """A block is gone with all below it, ``count`` in all; ``gone``, as they were, are told one by one (contract B6)."""
    workspace_id = call.workspace_id
    action = AuditAction(
        action="block.deleted", resource_id=block_id, workspace_id=workspace_id, counts={"deleted": count}
    )
    call.note(tx, action)
    events = [DomainEvent(type="block.deleted", id=placed.block.id, record=record(placed)) for placed in gone]
    emit(tx, call, workspace_id, *events)


def _plain(value: object) -> object:
    return bytes(value) if isinstance(value, msgspec.Raw) else value
