"""The deliveries of events, one for each subscribed webhook.

A small number of deliveries is created in the transaction of the change. For a larger number, the transaction stores the events
and a row for each webhook, and a job creates the deliveries in bounded steps. The deliveries of a webhook are numbered in the
order of the events. So while rows of a webhook wait for the job, later events of this webhook wait, too.

The webhooks that get an event are always selected in the transaction of the change.
"""

from __future__ import annotations

import json
import secrets
import uuid
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from workspaced.events.payload import with_previous
from workspaced.storage.port import ReadTransaction, Row, Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.events", "queries.sql")

DELIVERIES: Final = "deliveries"
"""The channel that a commit notifies when it queues deliveries."""
FAN_OUT: Final = "event_fan_out"
"""The channel that a commit notifies when it queues events for `fan_out`."""
# The cost of one row of the queue, counted as events. The row's events are counted in addition.
_ROW_COST = 10


class QueuedEvent(NamedTuple):
    """The part of a stored event that its deliveries need. ``resource``: see `workspaced.events.payload`."""

    number: int
    type: str
    resource: str
    created_at: int


class WaitingEvents(NamedTuple):
    """Events that wait for deliveries to a webhook: events of ``types`` with numbers from ``first`` to ``last``."""

    webhook: int
    types: Collection[str]
    first: int
    last: int


def take_numbers(tx: Transaction, count: int) -> int:
    """Take ``count`` numbers of the sequence that events and deliveries share. Return the number before the first of them."""
    return int(tx.existing(_SQL["take_numbers"], {"count": count})[0]) - count


def any_waiting(reader: ReadTransaction) -> bool:
    """Return whether events wait for `fan_out`."""
    return reader.one(_SQL["any_fan_out"]) is not None


def waiting_webhooks(reader: ReadTransaction) -> frozenset[int]:
    """Return the enabled webhooks with events that wait for `fan_out`: later events must wait, too."""
    return frozenset(row[0] for row in reader.all(_SQL["waiting_webhooks"]))


def queue_fan_out(tx: Transaction, waiting: Sequence[WaitingEvents]) -> None:
    """Queue events for `fan_out`."""
    before = take_numbers(tx, len(waiting))
    rows: list[Row] = [
        (number, one.webhook, json.dumps(sorted(one.types)), one.first, one.last)
        for number, one in enumerate(waiting, start=before + 1)
    ]
    tx.load(_SQL["insert_fan_outs"], rows)
    tx.notify(FAN_OUT)


def deliver(tx: Transaction, webhook: int, events: Sequence[QueuedEvent], *, coalesce: bool) -> list[str]:
    """Queue deliveries of events for one webhook, in order. Return the ids of the new deliveries.

    The events are of different resources. With ``coalesce``, an update replaces a waiting update (contract H12).
    """
    before = take_numbers(tx, len(events))
    own_events: list[Row] = []
    deliveries: list[Row] = []
    replaced: list[dict[str, object]] = []
    for number, event in enumerate(events, start=before + 1):
        waiting = _replaceable(tx, webhook, event) if coalesce else None
        if waiting:
            own_events.append(_merged(tx, event, waiting[2], number=number))
            replaced.append({"number": waiting[0], "event": number})
        else:
            queued = (event.resource, "pending", event.created_at, event.created_at)
            deliveries.append((number, str(uuid.uuid4()), webhook, event.number, *queued))
    tx.load(_SQL["insert_events"], own_events)
    tx.load(_SQL["insert_deliveries"], deliveries)
    for values in replaced:
        tx.later(_SQL["replace_event"], values)
    tx.notify(DELIVERIES)
    return [row[1] for row in deliveries]


def fan_out(tx: Transaction, most: int) -> int:
    """Create about ``most`` deliveries of waiting events. Return the cost of the step; 0: nothing to do."""
    if tx.one(_SQL["queue_for_fan_out"]) is None:
        return 0
    done = 0
    while done < most and (row := tx.one(_SQL["first_fan_out"])):
        number, webhook, types, first, last, coalesce = row
        count = most - done
        found = tx.all(_SQL["events_from"], {"first": first, "last": last, "most": count})
        events = [QueuedEvent._make(one) for one in found]
        wanted = frozenset(json.loads(types))
        if picked := [event for event in events if event.type in wanted]:
            deliver(tx, webhook, picked, coalesce=bool(coalesce))
        if len(events) < count or events[-1].number >= last:
            tx.run(_SQL["end_fan_out"], {"number": number})
        else:
            tx.run(_SQL["advance_fan_out"], {"number": number, "first": events[-1].number + 1})
        done += len(events) + _ROW_COST
    return done


def _replaceable(tx: Transaction, webhook: int, event: QueuedEvent) -> Row | None:
    """Return the waiting delivery that an update replaces (contract H12): the resource's last delivery, or None.

    Only the last delivery can be replaced, because an update must not precede earlier events. The replacement keeps the
    position in the queue. Otherwise a value that changes faster than the queue moves would never be sent.
    """
    if not event.type.endswith(".updated"):
        return None
    row = tx.one(_SQL["last_waiting"], {"webhook": webhook, "resource": event.resource})
    return row if row and row[1] == event.type and row[3] else None


def _merged(tx: Transaction, event: QueuedEvent, old: bytes, *, number: int) -> Row:
    """Return the row of a new event for one webhook: ``event``, merged with the body ``old``, which was not sent."""
    _, workspace_id, sequence, body = tx.existing(_SQL["event_of"], {"number": event.number})
    event_id = f"evt_{secrets.token_hex(16)}"
    text = with_previous(body, old, event_id=event_id)
    return (number, event_id, event.type, workspace_id, sequence, text, event.created_at, event.resource)
