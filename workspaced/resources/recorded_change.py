"""A change of a resource in the audit log (contract G26) and as a domain event (contract H7)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from workspaced.events.outbox import emit
from workspaced.events.payload import DomainEvent
from workspaced.http.operations import Author
from workspaced.storage.port import Transaction

_FOLLOWING_MEMBERS = frozenset({"updated_at", "updated_by"})
"""Members that always change together with another member."""
_NO_COUNTS: Mapping[str, int] = {}


def record_change(
    tx: Transaction,
    author: Author,
    workspace_id: str,
    event: DomainEvent,
    *,
    label: str,
    counts: Mapping[str, int] = _NO_COUNTS,
    further: tuple[str, ...] = (),
) -> None:
    """Append a row to the audit log, and emit the event. The action of the row is the type of the event.

    ``label``: the label or the name of the resource. ``further``: changed members that the event does not have.
    """
    changed = (*event.previous, *further)
    author.note(tx, event.type, event.id, label=label, workspace_id=workspace_id, changed=changed, counts=counts)
    emit(tx, author, workspace_id, event)


def changed_members(
    before: msgspec.Struct, after: msgspec.Struct, *, unless: Collection[str] = _FOLLOWING_MEMBERS
) -> dict[str, Any]:
    """Return the old values of the changed members of a record, by their names in JSON. Ignore the fields in ``unless``."""
    names = zip(before.__struct_fields__, before.__struct_encode_fields__, strict=True)
    return {
        public_name: getattr(before, name)
        for name, public_name in names
        if name not in unless and _comparable(getattr(before, name)) != _comparable(getattr(after, name))
    }


def _comparable(value: object) -> object:
    return bytes(value) if isinstance(value, msgspec.Raw) else value
