"""The log of deliveries in the database: list, read, queue again, remove (contract H13)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from workspaced.core.problems import NotFoundProblem
from workspaced.events.fan_out import DELIVERIES
from workspaced.resources.webhooks.values import StoredWebhook
from workspaced.storage.bounded_walk import walk
from workspaced.storage.incremental_job import repeat
from workspaced.storage.port import ReadTransaction, Row, Transaction
from workspaced.storage.statements import load_statements
from workspaced.storage.store import Store

_SQL = load_statements("workspaced.resources.webhooks", "deliveries.sql")
_REMOVED_AT_ONCE = 50
_NEWEST = 2**62


class StoredDelivery(NamedTuple):
    """A row of a delivery in the log."""

    number: int
    id: str
    event_id: str
    type: str
    workspace_id: str
    sequence: int
    status: str
    attempts: int
    due_at: int
    created_at: int
    finished_at: int | None


class StoredAttempt(NamedTuple):
    """A row of an attempt in the log."""

    ordinal: int
    at: int
    milliseconds: int
    status_code: int | None
    error: str | None
    response: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryPage:
    """A page of deliveries, the newest first.

    ``total`` None: the deliveries were not counted, because there are too many, or because this is not the first page.
    ``next_after``: the id of the last delivery before the next page; None: this is the last page.
    """

    deliveries: list[StoredDelivery]
    total: int | None
    next_after: str | None


def list_deliveries(
    reader: ReadTransaction, webhook: StoredWebhook, *, status: str, take: int, skip: int, after: str | None, most: int
) -> DeliveryPage:
    """Return a page of deliveries with this status (empty: any). At most ``most`` deliveries are examined.

    ``after``: the id of the last delivery before the page; None: the page begins with the newest delivery.

    Raises:
        NotFoundProblem: there is no delivery ``after``.
        Invalid: ``skip`` is larger than ``most``.
    """
    wanted = {"webhook": webhook.number, "status": status}

    def number_of(delivery_id: str | None) -> int:
        return _NEWEST if delivery_id is None else get_delivery(reader, webhook, delivery_id).number

    def matching(position: str | None, count: int, limit: int) -> list[Row]:
        values = {**wanted, "after": number_of(position), "walk": count, "take": limit}
        return reader.all(_SQL["list_deliveries"], values)

    def end(position: str | None, count: int) -> str | None:
        values = {"webhook": webhook.number, "after": number_of(position), "walk": count - 1}
        row = reader.one(_SQL["deliveries_end"], values)
        return row[0] if row else None

    found = walk(after, take=take, skip=skip, most=most, matching=matching, end=end, position=lambda row: str(row[1]))
    total = None
    if after is None:
        walked, matches = reader.one(_SQL["count_deliveries"], {**wanted, "walk": most + 1}) or (0, 0)
        total = matches if walked <= most else None
    return DeliveryPage(
        deliveries=[StoredDelivery._make(row) for row in found.rows], total=total, next_after=found.next_after
    )


def get_delivery(reader: ReadTransaction, webhook: StoredWebhook, delivery_id: str | None) -> StoredDelivery:
    """Return a delivery of the webhook. Raises NotFoundProblem: there is no such delivery."""
    row = reader.one(_SQL["find_delivery"], {"webhook": webhook.number, "id": delivery_id}) if delivery_id else None
    if row is None:
        raise NotFoundProblem("delivery_not_found", "This webhook has no such delivery.")
    return StoredDelivery._make(row)


def attempts_of(reader: ReadTransaction, delivery: StoredDelivery) -> list[StoredAttempt]:
    """Return the attempts of a delivery, in their order."""
    return [StoredAttempt._make(row) for row in reader.all(_SQL["attempts_of"], {"delivery": delivery.number})]


def body_of(reader: ReadTransaction, delivery: StoredDelivery) -> bytes:
    """Return the body of the event that was or will be sent."""
    return bytes(reader.existing(_SQL["body_of"], {"delivery": delivery.number})[0])


def queue_again(tx: Transaction, delivery: StoredDelivery, *, now: int) -> None:
    """Queue a delivery again, under the same webhook-id, unless it waits or is in progress."""
    tx.run(_SQL["queue_again"], {"number": delivery.number, "now": now})
    tx.notify(DELIVERIES)


async def remove_older(service_store: Store, *, before: int) -> int:
    """Remove the events before an instant, with their deliveries. Return the number of removed events."""
    values = {"before": before, "most": _REMOVED_AT_ONCE}
    return await repeat(service_store, lambda tx: tx.run(_SQL["drop_old_events"], values), rows=_REMOVED_AT_ONCE)
