"""Deliveries to webhooks (contract H13)."""

from __future__ import annotations

from ingestd.client import operations
from ingestd.client.paging import Listing
from ingestd.client.reading import many, one
from ingestd.client.records import Delivery, DeliveryDetail, DeliveryStatus
from ingestd.client.request import Request
from ingestd.client.requests.building import headers, query

_DELIVERY = one(Delivery)
_DELIVERIES = many(Delivery)
_DETAIL = one(DeliveryDetail)


def list_deliveries(
    webhook: str, *, status: DeliveryStatus | None = None, take: int | None = None, skip: int | None = None
) -> Request[tuple[Delivery, ...]]:
    """The newest hundred deliveries to a webhook, unless told otherwise; those of one status only."""
    return Request(
        operation=operations.LIST_DELIVERIES,
        read=_DELIVERIES,
        names={"webhook": webhook},
        query=query(status=status, take=take, skip=skip),
    )


def iter_deliveries(webhook: str, *, status: DeliveryStatus | None = None, page_length: int = 500) -> Listing[Delivery]:
    """Every delivery to a webhook, the newest first, asked for page by page."""
    whole = list_deliveries(webhook, status=status)
    return Listing(whole=whole, page_length=page_length, identity=lambda delivery: delivery.id)


def get_delivery(webhook: str, delivery: str) -> Request[DeliveryDetail]:
    """One delivery with its attempts."""
    return Request(operation=operations.GET_DELIVERY, read=_DETAIL, names={"webhook": webhook, "delivery": delivery})


def redeliver(
    webhook: str, delivery: str, *, idempotency_key: str | None = None, client_id: str | None = None
) -> Request[Delivery]:
    """Have a delivery sent once more, under the same webhook-id."""
    return Request(
        operation=operations.REDELIVER,
        read=_DELIVERY,
        names={"webhook": webhook, "delivery": delivery},
        headers=headers(idempotency_key=idempotency_key, client_id=client_id),
    )


def send_test_event(
    webhook: str, *, idempotency_key: str | None = None, client_id: str | None = None
) -> Request[Delivery]:
    """Have an event ``webhook.test`` sent, whatever the webhook is subscribed to."""
    return Request(
        operation=operations.TEST_WEBHOOK,
        read=_DELIVERY,
        names={"webhook": webhook},
        headers=headers(idempotency_key=idempotency_key, client_id=client_id),
    )
