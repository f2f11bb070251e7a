"""Audit rows (contract G26) and domain events (contract H7) of changes of sinks and entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from workspaced.events.outbox import ask_subscribers, emit, emit_each, is_subscribed
from workspaced.events.payload import DomainEvent, entry_resource
from workspaced.http.operations import Call
from workspaced.resources.data_sinks.history_store import EntryState, record_states
from workspaced.resources.data_sinks.mass_store import entries_of
from workspaced.resources.data_sinks.origins import ValueOrigin, origins_text
from workspaced.resources.data_sinks.records import entry_record, sink_record
from workspaced.resources.data_sinks.values import Change, StoredEntry, StoredSink, Tally
from workspaced.resources.recorded_change import changed_members, record_change
from workspaced.storage.port import Transaction

_ENTRY = "data_sink.entry"


def record_sink(
    tx: Transaction, call: Call, *, before: StoredSink | None, after: StoredSink | None, body: bytes = b""
) -> None:
    """Record and emit the change of a sink; a sink that was not written causes neither a row nor an event.

    ``body``: the JSON of a new sink with its entries. These entries cause no separate events (contract S14).
    """
    sink = after or before
    if sink is None or (before and after and before.version == after.version):
        return
    record = sink_record(sink, call.settings)
    kind = f"data_sink.{_verb(before, after)}"
    if before and after:
        previous = changed_members(sink_record(before, call.settings), record)
        is_same = before.protect_fed_entries == after.protect_fed_entries
        further = () if is_same else ("protectFedEntries",)
        if previous:
            event = DomainEvent(type=kind, id=sink.id, record=record, previous=previous)
            record_change(tx, call, sink.workspace_id, event, label=sink.label, further=further)
        else:
            call.note(tx, kind, sink.id, label=sink.label, workspace_id=sink.workspace_id, changed=further)
    else:
        event = DomainEvent(type=kind, id=sink.id, record=msgspec.Raw(body) if body else record)
        record_change(tx, call, sink.workspace_id, event, label=sink.label, counts={"entries": sink.entry_count})


def record_entry(
    tx: Transaction,
    call: Call,
    sink: StoredSink,
    *,
    before: StoredEntry | None,
    after: StoredEntry | None,
    origin: str = "",
) -> None:
    """Record and emit the change of one entry; see `record_entries`."""
    record_entries(tx, sink, [(call, before, after)], [origin], ask_subscribers(tx))


def record_entries(
    tx: Transaction,
    sink: StoredSink,
    states: Sequence[EntryState],
    origins: Sequence[str],
    has_subscribers: Callable[[], object],
) -> None:
    """Record and emit changes of entries of a sink.

    ``states``: at least one change. ``origins``: the phrase about the origin of each written value. ``has_subscribers``: the
    result of `ask_subscribers`. An ignored change causes neither a row nor an event (contract M5, M6). A write of equal values
    causes an audit row, but no event and no row in the history.
    """
    emits = has_subscribers()
    events: list[tuple[Call, DomainEvent]] = []
    for (call, before, after), origin in zip(states, origins, strict=True):
        entry = after or before
        if entry is None or (before and after and before.version == after.version):
            continue
        changed = tuple(_previous(before, after)) if before and after else ()
        action = f"{_ENTRY}.{_verb(before, after)}"
        call.note(tx, action, entry.id, label=entry.key, workspace_id=call.workspace_id, changed=changed, origin=origin)
        if emits:
            events += [(call, event) for event in _entry_events(sink, before, after)]
    record_states(tx, sink, states)
    emit_each(tx, sink.workspace_id, events)  # last, because this call locks the workspace's sequence until the commit


def record_bulk(
    tx: Transaction, call: Call, sink: StoredSink, tally: Tally, origins: Sequence[ValueOrigin] = ()
) -> None:
    """Record a mass update in one audit row with counts."""
    if tally.touched:
        call.note(
            tx,
            "data_sink.mass_updated",
            sink.id,
            label=sink.label,
            workspace_id=sink.workspace_id,
            counts=tally.written,
            origin=origins_text(origins),
        )


@contextmanager
def emit_entry_changes(tx: Transaction, call: Call, sink: StoredSink, changes: Sequence[Change]) -> Iterator[None]:
    """Emit the events of the entries that the ``with`` block changes, sorted by key. Without a subscriber, no entry is read."""
    if not is_subscribed(
        tx, call, sink.workspace_id, *(f"{_ENTRY}.{verb}" for verb in ("created", "updated", "deleted"))
    ):
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
    emit(tx, call, sink.workspace_id, *events)


def _verb(before: object, after: object) -> str:
    return "created" if before is None else "deleted" if after is None else "updated"


def _previous(before: StoredEntry, after: StoredEntry) -> dict[str, object]:
    """Return the old values of the members that changed."""
    previous: dict[str, object] = {} if before.value == after.value else {"value": before.value}
    return previous if before.data_type == after.data_type else {**previous, "dataType": before.data_type}


def _entry_events(sink: StoredSink, before: StoredEntry | None, after: StoredEntry | None) -> list[DomainEvent]:
    if before and after and before.id == after.id:
        previous = _previous(before, after)
        return [_event("updated", sink, after, previous)] if previous else []
    # The ids differ if one request removed the entry and created it again.
    deleted = [_event("deleted", sink, before, {})] if before else []
    created = [_event("created", sink, after, {})] if after else []
    return deleted + created


def _event(verb: str, sink: StoredSink, entry: StoredEntry, previous: Mapping[str, object]) -> DomainEvent:
    return DomainEvent(
        type=f"{_ENTRY}.{verb}",
        id=entry.id,
        record=entry_record(entry, sink.id),
        previous=previous,
        resource=entry_resource(sink.id, entry.key),
    )
