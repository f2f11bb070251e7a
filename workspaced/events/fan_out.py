"""From events to deliveries, one for each webhook that wants an event.

Few deliveries are made in the transaction of the change. Many are left to a job: the transaction then stores the events and a
row for each webhook, and the job makes the deliveries in bounded steps. Either way a webhook's deliveries have numbers in the
order of the events: while rows of a webhook wait for the job, its further events wait behind them.

Which webhooks get an event is decided when the event is committed, also where its deliveries are made later.
"""

from __future__ import annotations

import json
import secrets
import uuid
from collections.abc import Sequence
from typing import Final, NamedTuple

from workspaced.events.payload import with_previous
from workspaced.storage.port import ReadTransaction, Row, Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.events", "queries.sql")

DELIVERIES: Final = "deliveries"
"""The channel on which a commit says that something is to be delivered."""
FAN_OUT: Final = "event_fan_out"
"""The channel on which a commit says that events wait for `fan_out`."""
# What a step spends on a row that waits, however few events it has, in events.
_ROW_COST = 10


class QueuedEvent(NamedTuple):
    """A stored event as far as its deliveries need it. ``resource`` is the type and the id of what it is about."""

    number: int
    type: str
    resource: str
    created_at: int


def take_numbers(tx: Transaction, count: int) -> int:
    """The number before the first of ``count`` new ones, of events and deliveries alike."""
    row = tx.one(_SQL["take_numbers"], {"count": count})
    if row is None:
        raise LookupError("the database has lost its row of event numbers")
    return int(row[0]) - count


def any_waiting(reader: ReadTransaction) -> bool:
    """Whether `fan_out` has anything to do."""
    return reader.one(_SQL["any_fan_out"]) is not None


def waiting_webhooks(reader: ReadTransaction) -> frozenset[int]:
    """The enabled webhooks whose further events must wait for `fan_out`."""
    return frozenset(row[0] for row in reader.all(_SQL["waiting_webhooks"]))


def queue_fan_out(tx: Transaction, webhooks: Sequence[tuple[int, Sequence[str]]], *, first: int, last: int) -> None:
    """Leave the events with numbers from ``first`` to ``last`` to `fan_out`, for each webhook those of its types."""
    number = take_numbers(tx, len(webhooks))
    rows: list[Row] = [
        (number + place, webhook, json.dumps(sorted(types)), first, last)
        for place, (webhook, types) in enumerate(webhooks, start=1)
    ]
    tx.load(_SQL["insert_fan_outs"], rows)
    tx.notify(FAN_OUT)


def deliver(tx: Transaction, webhook: int, events: Sequence[QueuedEvent], *, coalesce: bool) -> list[str]:
    """Queue deliveries of stored events, in their order, for one webhook; their ids. The events are of different resources.

    With ``coalesce``, an update takes the place of one that waits (contract H12).
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
        tx.run(_SQL["replace_event"], values)
    tx.notify(DELIVERIES)
    return [row[1] for row in deliveries]


def fan_out(tx: Transaction, most: int) -> int:
    """Make about ``most`` deliveries of what waits; how many it was, 0 when nothing waits or another process is at it."""
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
    """The waiting delivery whose place an update takes (contract H12): an update that is the last event of its resource.

    The last, since otherwise the update would come before what happened before it; in its place, since at the end of the
    queue a value that changes faster than the queue moves would never be told.
    """
    if not event.type.endswith(".updated"):
        return None
    row = tx.one(_SQL["last_waiting"], {"webhook": webhook, "resource": event.resource})
    return row if row and row[1] == event.type and row[3] else None


def _merged(tx: Transaction, event: QueuedEvent, former: bytes, *, number: int) -> Row:
    """The event's row for one webhook: with an id of its own, and what changed since the body that is not sent."""
    row = tx.one(_SQL["event_of"], {"number": event.number})
    if row is None:
        raise LookupError(f"event {event.number} is gone before its deliveries were made")
    _, workspace_id, sequence, body = row
    event_id = f"evt_{secrets.token_hex(16)}"
    text = with_previous(body, former, event_id=event_id)
    return (number, event_id, event.type, workspace_id, sequence, text, event.created_at, event.resource)
