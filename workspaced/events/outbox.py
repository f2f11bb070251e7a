"""The outbox, which stores events in the transaction of their change (contract H7)."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from workspaced.events.catalogue import EVENT_TYPES, matches
from workspaced.events.fan_out import (
    QueuedEvent,
    WaitingEvents,
    deliver,
    queue_fan_out,
    take_numbers,
    waiting_webhooks,
)
from workspaced.events.payload import DomainEvent, Origin, body_of
from workspaced.security.key_store import live_grants
from workspaced.security.permissions import Principal, principal_of
from workspaced.storage.port import ReadTransaction, Row, Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.events", "queries.sql")

_AT_ONCE = 200
"""The maximum number of deliveries created in the transaction of a change. If a change has more, `fan_out` creates them."""


class _Subscriber(NamedTuple):
    """An enabled webhook. ``types``: subscribed event types that its owner may read. ``ignored``: ids of clients."""

    number: int
    types: frozenset[str]
    coalesce: bool
    ignored: tuple[str, ...]

    def wants(self, origin: Origin, event_type: str) -> bool:
        return event_type in self.types and origin.client_id not in self.ignored


def is_subscribed(reader: ReadTransaction, origin: Origin, workspace_id: str, *types: str) -> bool:
    """Return whether any webhook would receive an event of one of these types in this workspace."""
    return any(
        one.wants(origin, name) for one in _subscribers(reader, workspace_id, types, now=origin.now) for name in types
    )


def ask_subscribers(reader: ReadTransaction) -> Callable[[], object]:
    """Return a function that returns true if any webhook is enabled; see `ReadTransaction.ask`."""
    return reader.ask(_SQL["any_enabled_webhook"])


def emit(tx: Transaction, origin: Origin, workspace_id: str, *events: DomainEvent) -> None:
    """Queue the events of one change, like `emit_each`."""
    emit_each(tx, workspace_id, [(origin, event) for event in events])


def emit_each(tx: Transaction, workspace_id: str, changes: Sequence[tuple[Origin, DomainEvent]]) -> None:
    """Queue events, in their order, for every webhook that subscribes to them, if the webhook's owner may read them now.

    Events of different origins are of different resources. The sequence numbers of a workspace follow the order of the commits.
    Without a subscriber, nothing is written.
    """
    if not changes:
        return
    now = max(origin.now for origin, _ in changes)
    subscribers = _subscribers(tx, workspace_id, tuple({event.type for _, event in changes}), now=now)
    wanted = [change for change in changes if any(one.wants(change[0], change[1].type) for one in subscribers)]
    if not wanted:
        return
    stored = _store(tx, workspace_id, wanted)
    waiting = waiting_webhooks(tx)
    count = sum(1 for origin, event in wanted for one in subscribers if one.wants(origin, event.type))
    later: list[WaitingEvents] = []
    for one in subscribers:
        if count <= _AT_ONCE and one.number not in waiting:
            own = [
                queued for queued, (origin, event) in zip(stored, wanted, strict=True) if one.wants(origin, event.type)
            ]
            deliver(tx, one.number, own, coalesce=one.coalesce)
            continue
        wants = (origin.client_id not in one.ignored for origin, _ in wanted)
        for is_wanted, run in groupby(zip(wants, stored, strict=True), key=itemgetter(0)):
            numbers = [queued.number for _, queued in run]
            if is_wanted:
                later.append(WaitingEvents(one.number, one.types, numbers[0], numbers[-1]))
    if later:
        queue_fan_out(tx, later)


def emit_to(tx: Transaction, origin: Origin, webhook: int, event: DomainEvent) -> str:
    """Queue an event without a workspace for one webhook only. Return the id of the delivery."""
    return deliver(tx, webhook, _store(tx, "", [(origin, event)]), coalesce=False)[0]


def _store(tx: Transaction, workspace_id: str, changes: Sequence[tuple[Origin, DomainEvent]]) -> list[QueuedEvent]:
    """Store events with consecutive numbers, and return them.

    The sequence numbers are taken first, and lock the workspace's row. So event and sequence numbers have the same order.
    """
    sequence = _take_sequence(tx, workspace_id, len(changes)) if workspace_id else -len(changes)
    number = take_numbers(tx, len(changes))
    rows: list[Row] = []
    stored: list[QueuedEvent] = []
    for offset, (origin, event) in enumerate(changes, start=1):
        event_id = f"evt_{secrets.token_hex(16)}"
        own_sequence = max(sequence + offset, 0)
        body = body_of(event, event_id=event_id, origin=origin, workspace_id=workspace_id, sequence=own_sequence)
        rows.append(
            (number + offset, event_id, event.type, workspace_id, own_sequence, body, origin.now, event.resource)
        )
        stored.append(QueuedEvent(number + offset, event.type, event.resource, origin.now))
    tx.load(_SQL["insert_events"], rows)
    return stored


def _take_sequence(tx: Transaction, workspace_id: str, count: int) -> int:
    """Take ``count`` sequence numbers of a workspace. Return the number before the first."""
    return int(tx.existing(_SQL["take_sequence"], {"count": count, "workspace_id": workspace_id})[0]) - count


def _subscribers(reader: ReadTransaction, workspace_id: str, types: Sequence[str], *, now: int) -> list[_Subscriber]:
    found: list[_Subscriber] = []
    owners: dict[str, Sequence[Principal]] = {}
    for number, owner, data_events, workspace_ids, ignored, coalesce in (
        reader.all(_SQL["enabled_webhooks"]) if types else ()
    ):
        patterns = _texts(data_events)
        wanted = [name for name in types if _matches_any(patterns, name)]
        if not wanted or (workspace_ids != "[]" and workspace_id not in _texts(workspace_ids)):
            continue
        if owner not in owners:
            owners[owner] = _principals(reader, owner, now)
        readable = frozenset(name for name in wanted if _may_read(owners[owner], name, workspace_id))
        if readable:
            found.append(_Subscriber(number, readable, bool(coalesce), _texts(ignored)))
    return found


def _may_read(principals: Sequence[Principal], name: str, workspace_id: str) -> bool:
    return any(principal.may(EVENT_TYPES[name].scope, workspace_id) for principal in principals)


def _principals(reader: ReadTransaction, owner: str, now: int) -> Sequence[Principal]:
    """Return a principal for each valid key of the owner. A webhook receives events that any of these principals may read."""
    keys = reader.all(_SQL["scopes_of_live_keys"], {"principal": owner, "now": now})
    grants = {guest: live_grants(reader, owner, guest=bool(guest)) for guest in {row[1] for row in keys}}
    return [
        principal_of(name=owner, key_id="", key_scopes=frozenset(_texts(row[0])), grants=grants[row[1]]) for row in keys
    ]


@lru_cache(maxsize=1_024)
def _texts(json_list: str) -> tuple[str, ...]:
    return tuple(json.loads(json_list))


@lru_cache(maxsize=4_096)
def _matches_any(patterns: tuple[str, ...], name: str) -> bool:
    return any(matches(pattern, name) for pattern in patterns)
