"""What changes of sinks and entries are in the audit log (contract G26): one row a request, values never."""

from __future__ import annotations

from workspaced.http.operations import Call
from workspaced.resources.data_sinks.values import StoredEntry, StoredSink, Tally
from workspaced.security.audit_log import AuditAction
from workspaced.storage.port import Transaction

_SINK_MEMBERS = ("label", "description", "tags", "icon")


def note_sink(tx: Transaction, call: Call, *, before: StoredSink | None, after: StoredSink | None) -> None:
    """A sink, before and after; one that was not written is not noted."""
    sink = after or before
    if sink is None or (before and after and before.version == after.version):
        return
    verb = "created"
    changed: tuple[str, ...] = ()
    if before:
        verb = "updated" if after else "deleted"
        changed = tuple(name for name in _SINK_MEMBERS if getattr(before, name) != getattr(sink, name))
    counts = {} if verb == "updated" else {"entries": sink.entry_count}
    action = AuditAction(
        action=f"data_sink.{verb}", resource_id=sink.id, workspace_id=sink.workspace_id, changed=changed, counts=counts
    )
    call.note(tx, action)


def note_entry(tx: Transaction, call: Call, *, before: StoredEntry | None, after: StoredEntry | None) -> None:
    """An entry, before and after; a write of equal values is one, an ignored stale one is none (contract M5, M6)."""
    entry = after or before
    if entry is None or (before and after and before.version == after.version):
        return
    verb = "created"
    changed: tuple[str, ...] = ()
    if before:
        verb = "updated" if after else "deleted"
        changed = (("value",) if before.value != entry.value else ()) + (
            ("dataType",) if before.data_type != entry.data_type else ()
        )
    action = f"data_sink.entry.{verb}"
    call.note(tx, AuditAction(action=action, resource_id=entry.id, workspace_id=call.workspace_id, changed=changed))


def note_bulk(tx: Transaction, call: Call, sink: StoredSink, tally: Tally) -> None:
    """Many entries at once: one row with counts."""
    if tally.touched:
        counts = {
            "created": tally.created,
            "updated": tally.updated,
            "unchanged": tally.unchanged,
            "deleted": tally.deleted,
        }
        action = AuditAction(
            action="data_sink.mass_updated", resource_id=sink.id, workspace_id=sink.workspace_id, counts=counts
        )
        call.note(tx, action)
