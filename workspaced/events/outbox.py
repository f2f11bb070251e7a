"""Events on their way out, written in the transaction of the change they tell of: none is lost, none is made up (H7)."""

from __future__ import annotations

import json
import secrets
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ingestd.process.statements import load_statements
from workspaced.access.permissions import Principal, principal_of
from workspaced.access.store import live_grants
from workspaced.events.catalogue import EVENT_TYPES, picks
from workspaced.events.payload import Event, Origin, body_of, with_previous
from workspaced.storage.port import Reader, Row, Transaction

_SQL = load_statements("workspaced.events", "queries.sql")

DELIVERIES = "deliveries"
"""The channel on which a commit says that something is to be delivered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listener:
    """An enabled webhook as far as it decides what it is told."""

    number: int
    owner: str
    patterns: tuple[str, ...]
    coalesce: bool


def listening(reader: Reader, origin: Origin, workspace_id: str, *types: str) -> bool:
    """Whether anybody is to be told of any of these types in this workspace."""
    return bool(_listeners(reader, origin, workspace_id, types))


def anybody_listens(reader: Reader) -> bool:
    """Whether there is any enabled webhook."""
    return bool(reader.all(_SQL["enabled_webhooks"]))


def emit(tx: Transaction, origin: Origin, workspace_id: str, *events: Event) -> None:
    """Queue the events, in their order, for every enabled webhook that wants them and whose owner may read them now.

    The sequence numbers of a workspace follow the order of the commits. Where nobody listens nothing is written.
    """
    if not events:
        return
    listeners = _listeners(tx, origin, workspace_id, tuple({event.type for event in events}))
    if not listeners:
        return
    told = [
        (event, receivers)
        for event in events
        if (receivers := [one for one in listeners if _wants(one.patterns, event.type)])
    ]
    _queue(tx, origin, workspace_id, told)


def emit_to(tx: Transaction, origin: Origin, webhook: int, event: Event) -> str:
    """Queue an event that belongs to no workspace for one webhook only; the delivery's id."""
    listener = _Listener(number=webhook, owner="", patterns=(), coalesce=False)
    return _queue(tx, origin, "", [(event, [listener])])[0]


def _queue(
    tx: Transaction, origin: Origin, workspace_id: str, told: Sequence[tuple[Event, Sequence[_Listener]]]
) -> list[str]:
    """The ids of the deliveries that were queued.

    The sequence is taken before the numbers: it locks the workspace's row, so numbers follow the sequence.
    """
    sequence = _take(tx, "take_sequence", len(told), workspace_id=workspace_id) if workspace_id else -len(told)
    number = _take(tx, "take_numbers", sum(1 + len(receivers) for _, receivers in told))
    events: list[Row] = []
    deliveries: list[Row] = []
    replaced: list[dict[str, object]] = []
    for event, receivers in told:
        sequence += 1
        number += 1
        shared = number
        body = b""
        for listener in receivers:
            number += 1
            resource = f"{event.type.rpartition('.')[0]}/{event.id}"
            waiting = _replaceable(tx, listener, event, resource)
            own, former = (number, waiting[2]) if waiting else (shared, None)
            if former is not None or not body:
                event_id = f"evt_{secrets.token_hex(16)}"
                text = body_of(
                    event, event_id=event_id, origin=origin, workspace_id=workspace_id, sequence=max(sequence, 0)
                )
                if former is None:
                    body = text
                else:
                    text = with_previous(text, former)
                events.append((own, event_id, event.type, workspace_id, max(sequence, 0), text, origin.now))
            if waiting:
                replaced.append({"number": waiting[0], "event": own})
            else:
                row = (number, str(uuid.uuid4()), listener.number, own, resource, "pending", origin.now, origin.now)
                deliveries.append(row)
    tx.load(_SQL["insert_events"], events)
    tx.load(_SQL["insert_deliveries"], deliveries)
    for values in replaced:
        tx.run(_SQL["replace_event"], values)
    tx.notify(DELIVERIES)
    return [row[1] for row in deliveries]


def _replaceable(tx: Transaction, listener: _Listener, event: Event, resource: str) -> Row | None:
    """The waiting delivery whose place an update takes (H12): an update that is the last thing to be told of its resource.

    The last, since otherwise the update would come before what happened before it; in its place, since at the end of the
    queue a value that changes faster than the queue moves would never be told.
    """
    if not listener.coalesce or not event.type.endswith(".updated"):
        return None
    row = tx.one(_SQL["last_waiting"], {"webhook": listener.number, "resource": resource})
    return row if row and row[1] == event.type and row[3] else None


def _take(tx: Transaction, statement: str, count: int, **values: object) -> int:
    """The number before the first of ``count`` new ones."""
    row = tx.one(_SQL[statement], {"count": count, **values})
    if row is None:
        raise LookupError("the database has lost its row of event numbers")
    return int(row[0]) - count


def _listeners(reader: Reader, origin: Origin, workspace_id: str, types: Sequence[str]) -> list[_Listener]:
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


def _principals(reader: Reader, owner: str, now: int) -> Sequence[Principal]:
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
