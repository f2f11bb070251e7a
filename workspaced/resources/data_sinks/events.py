"""What the changes of sinks and entries are as events (contract H7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from workspaced.events.outbox import emit, has_subscribers, listening
from workspaced.events.payload import DomainEvent, Origin
from workspaced.events.resource import entry_resource
from workspaced.resources.data_sinks.mass_store import entries_of
from workspaced.resources.data_sinks.records import entry_record, sink_record
from workspaced.resources.data_sinks.values import Change, StoredEntry, StoredSink
from workspaced.settings.model import WorkspacedSettings
from workspaced.storage.port import Transaction

_ENTRY = "data_sink.entry"


def emit_entry(
    tx: Transaction, origin: Origin, sink: StoredSink, *, before: StoredEntry | None, after: StoredEntry | None
) -> None:
    """One entry, before and after; what is equal in both (contract M5) is nothing to tell. Nothing is made for nobody."""
    if not has_subscribers(tx):
        return
    events = _entry_events(sink, before, after)
    if events:
        emit(tx, origin, sink.workspace_id, *events)


@contextmanager
def emit_entry_changes(tx: Transaction, origin: Origin, sink: StoredSink, changes: Sequence[Change]) -> Iterator[None]:
    """The changes are applied inside the block. An event a changed key, by key; what was in between is not told.

    Where nobody listens, the entries are not even looked at.
    """
    names = (f"{_ENTRY}.created", f"{_ENTRY}.updated", f"{_ENTRY}.deleted")
    if not listening(tx, origin, sink.workspace_id, *names):
        yield
        return
    before: Mapping[str, StoredEntry] = entries_of(tx, sink, changes) if sink.entry_count else {}
    yield
    after = entries_of(tx, sink, changes)
    events = [
        event
        for key in sorted(before.keys() | after.keys())
        for event in _entry_events(sink, before.get(key), after.get(key))
    ]
    emit(tx, origin, sink.workspace_id, *events)


def emit_new_sink(tx: Transaction, origin: Origin, sink: StoredSink, record: bytes) -> None:
    """``record`` is the JSON of the sink with its entries; they are told with it and not one by one (contract S14)."""
    emit(tx, origin, sink.workspace_id, DomainEvent(type="data_sink.created", id=sink.id, record=msgspec.Raw(record)))


def emit_changed_sink(
    tx: Transaction, origin: Origin, *, before: StoredSink, after: StoredSink, settings: WorkspacedSettings
) -> None:
    """A sink whose own members changed; an entry written to it is told as an entry."""
    record, former = sink_record(after, settings), sink_record(before, settings)
    previous = {
        name: getattr(former, name)
        for name in ("label", "description", "tags", "icon")
        if getattr(before, name) != getattr(after, name)
    }
    if previous:
        event = DomainEvent(type="data_sink.updated", id=after.id, record=record, previous=previous)
        emit(tx, origin, after.workspace_id, event)


def emit_deleted_sink(tx: Transaction, origin: Origin, sink: StoredSink, settings: WorkspacedSettings) -> None:
    """A sink that is gone with its entries, as it was, without them."""
    event = DomainEvent(type="data_sink.deleted", id=sink.id, record=sink_record(sink, settings))
    emit(tx, origin, sink.workspace_id, event)


def _entry_events(sink: StoredSink, before: StoredEntry | None, after: StoredEntry | None) -> list[DomainEvent]:
    if before and after and before.id == after.id:
        previous: dict[str, object] = {}
        if before.value != after.value:
            previous["value"] = before.value
        if before.data_type != after.data_type:
            previous["dataType"] = before.data_type
        return [_event("updated", sink, after, previous)] if previous else []
    # Another id under the key: it was removed and made anew within one request.
    gone = [_event("deleted", sink, before, {})] if before else []
    come = [_event("created", sink, after, {})] if after else []
    return gone + come


def _event(verb: str, sink: StoredSink, entry: StoredEntry, previous: Mapping[str, object]) -> DomainEvent:
    return DomainEvent(
        type=f"{_ENTRY}.{verb}",
        id=entry.id,
        record=entry_record(entry, sink.id),
        previous=previous,
        resource=entry_resource(sink.id, entry.key),
    )
