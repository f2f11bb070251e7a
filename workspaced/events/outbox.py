"""Events on their way out, written in the transaction of the change they tell of: none is lost, none is made up (contract H7)."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from workspaced.events.catalogue import EVENT_TYPES, picks
from workspaced.events.fan_out import QueuedEvent, deliver, queue_fan_out, take_numbers, waiting_webhooks
from workspaced.events.payload import DomainEvent, Origin, body_of
from workspaced.security.key_store import live_grants
from workspaced.security.permissions import Principal, principal_of
from workspaced.storage.port import ReadTransaction, Row, Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.events", "queries.sql")

_AT_ONCE = 200
"""So many deliveries are made in the transaction of the change; more are left to `workspaced.events.fan_out`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listener:
    """An enabled webhook as far as it decides what it is told."""

    number: int
    owner: str
    patterns: tuple[str, ...]
    coalesce: bool


def listening(reader: ReadTransaction, origin: Origin, workspace_id: str, *types: str) -> bool:
    """Whether anybody is to be told of any of these types in this workspace."""
    return bool(_listeners(reader, origin, workspace_id, types))


def has_subscribers(reader: ReadTransaction) -> bool:
    """Whether there is any enabled webhook."""
    return reader.one(_SQL["any_enabled_webhook"]) is not None


def emit(tx: Transaction, origin: Origin, workspace_id: str, *events: DomainEvent) -> None:
    """Queue the events, in their order, for every enabled webhook that wants them and whose owner may read them now.

    The sequence numbers of a workspace follow the order of the commits. Where nobody listens nothing is written.
    """
    if not events:
        return
    listeners = _listeners(tx, origin, workspace_id, tuple({event.type for event in events}))
    if not listeners:
        return
    picked = [event for event in events if any(_wants(one.patterns, event.type) for one in listeners)]
    stored = _store(tx, origin, workspace_id, picked)
    waiting = waiting_webhooks(tx)
    at_once = sum(1 for event in stored for one in listeners if _wants(one.patterns, event.type)) <= _AT_ONCE
    later: list[tuple[int, Sequence[str]]] = []
    for one in listeners:
        if at_once and one.number not in waiting:
            deliver(tx, one.number, [row for row in stored if _wants(one.patterns, row.type)], coalesce=one.coalesce)
        else:
            later.append((one.number, one.patterns))
    if later:
        queue_fan_out(tx, later, first=stored[0].number, last=stored[-1].number)


def emit_to(tx: Transaction, origin: Origin, webhook: int, event: DomainEvent) -> str:
    """Queue an event that belongs to no workspace for one webhook only; the delivery's id."""
    return deliver(tx, webhook, _store(tx, origin, "", [event]), coalesce=False)[0]


def _store(tx: Transaction, origin: Origin, workspace_id: str, events: Sequence[DomainEvent]) -> list[QueuedEvent]:
    """The stored events, with numbers in a row.

    The sequence is taken before the numbers: it locks the workspace's row, so numbers follow the sequence.
    """
    sequence = _take_sequence(tx, workspace_id, len(events)) if workspace_id else -len(events)
    number = take_numbers(tx, len(events))
    rows: list[Row] = []
    stored: list[QueuedEvent] = []
    for place, event in enumerate(events, start=1):
        event_id = f"evt_{secrets.token_hex(16)}"
        told = max(sequence + place, 0)
        body = body_of(event, event_id=event_id, origin=origin, workspace_id=workspace_id, sequence=told)
        rows.append((number + place, event_id, event.type, workspace_id, told, body, origin.now, event.resource))
        stored.append(QueuedEvent(number + place, event.type, event.resource, origin.now))
    tx.load(_SQL["insert_events"], rows)
    return stored


def _take_sequence(tx: Transaction, workspace_id: str, count: int) -> int:
    """The number before the first of ``count`` new ones."""
    row = tx.one(_SQL["take_sequence"], {"count": count, "workspace_id": workspace_id})
    if row is None:
        raise LookupError("the database has lost its row of event numbers")
    return int(row[0]) - count


def _listeners(reader: ReadTransaction, origin: Origin, workspace_id: str, types: Sequence[str]) -> list[_Listener]:
    rows = reader.all(_SQL["enabled_webhooks"])
    if not rows:
        return []
    found: list[_Listener] = []
    owners: dict[str, Sequence[Principal]] = {}
    for number, owner, data_events, workspace_ids, ignored, coalesce in rows:
        patterns = _texts(data_events)
        wanted = [name for name in types if _wants(patterns, name)]
        if not wanted or origin.client_id in _texts(ignored):
            continue
        if workspace_ids != "[]" and workspace_id not in _texts(workspace_ids):
            continue
        if owner not in owners:
            owners[owner] = _principals(reader, owner, origin.now)
        readable = frozenset(name for name in wanted if _may(owners[owner], name, workspace_id))
        if readable:
            # what the owner may not read drops out of what is picked
            found.append(
                _Listener(number=number, owner=owner, patterns=tuple(sorted(readable)), coalesce=bool(coalesce))
            )
    return found


def _may(principals: Sequence[Principal], name: str, workspace_id: str) -> bool:
    return any(principal.may(EVENT_TYPES[name].scope, workspace_id) for principal in principals)


def _principals(reader: ReadTransaction, owner: str, now: int) -> Sequence[Principal]:
    """What the owner may do through each key that is good now: a webhook reads no more than its owner could."""
    keys = reader.all(_SQL["scopes_of_live_keys"], {"principal": owner, "now": now})
    grants = {guest: live_grants(reader, owner, guest=bool(guest)) for guest in {row[1] for row in keys}}
    return [
        principal_of(name=owner, key_id="", key_scopes=frozenset(_texts(row[0])), grants=grants[row[1]]) for row in keys
    ]


@lru_cache(maxsize=1_024)
def _texts(json_list: str) -> tuple[str, ...]:
    return tuple(json.loads(json_list))


@lru_cache(maxsize=4_096)
def _wants(patterns: tuple[str, ...], name: str) -> bool:
    return any(picks(pattern, name) for pattern in patterns)
