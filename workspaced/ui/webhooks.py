"""Webhooks, their deliveries, and a repetition of a delivery."""

from __future__ import annotations

from typing import Final

import msgspec

from workspaced.core.json_body import encode
from workspaced.http.responses import Response
from workspaced.ui.addresses import address, see_other
from workspaced.ui.page_request import PageRequest
from workspaced.ui.pager import PagePosition
from workspaced.ui.renderer import PageView, page_view

SECTION: Final = "webhooks"
STATUSES: Final = ("pending", "succeeded", "failed", "dead")
_PAGE_LENGTH: Final = 50


async def list_webhooks(request: PageRequest) -> PageView:
    """Show the webhooks that the key may read."""
    list_page = PagePosition(take=_PAGE_LENGTH, skip=request.number("skip"))
    found = await request.get("webhooks", sortedBy="label", sortOrder="ASC", **list_page.query)
    return page_view(
        "webhooks.html",
        "Webhooks",
        SECTION,
        webhooks=found.value,
        pager=list_page.pager(found.total, "webhooks"),
    )


async def show_webhook(request: PageRequest) -> PageView:
    """Show a webhook and its deliveries, the newest first."""
    webhook_id = request.names["webhook"]
    status = request.query.get("status", "")
    list_page = PagePosition(take=_PAGE_LENGTH, skip=request.number("skip"), cursor=request.query.get("cursor", ""))
    webhook = await request.get("webhooks", webhook_id)
    chosen = {"status": status} if status else {}
    deliveries = await request.get("webhooks", webhook_id, "deliveries", **chosen, **list_page.query)
    return page_view(
        "webhook.html",
        webhook.record["label"],
        SECTION,
        webhook=webhook.record,
        deliveries=deliveries.value,
        status=status,
        statuses=STATUSES,
        pager=list_page.cursor_pager(
            len(deliveries.value), deliveries.counted, deliveries.next_cursor, "webhooks", webhook_id, status=status
        ),
    )


async def show_delivery(request: PageRequest) -> PageView:
    """Show a delivery and its attempts."""
    webhook_id = request.names["webhook"]
    webhook = await request.get("webhooks", webhook_id)
    delivery = await request.get("webhooks", webhook_id, "deliveries", request.names["delivery"])
    return page_view(
        "delivery.html",
        delivery.record["type"],
        SECTION,
        webhook=webhook.record,
        delivery=delivery.record,
        event=_readable(delivery.record["event"]) if "event" in delivery.record else "",
        queued=request.query.get("queued") == "1",
    )


async def redeliver(request: PageRequest) -> Response:
    """Send a delivery again, then show it."""
    webhook_id, delivery_id = request.names["webhook"], request.names["delivery"]
    await request.post("webhooks", webhook_id, "deliveries", delivery_id, "redeliver")
    return see_other(address("webhooks", webhook_id, "deliveries", delivery_id, queued=1))


async def test(request: PageRequest) -> Response:
    """Send a test event, then show its delivery."""
    webhook_id = request.names["webhook"]
    accepted = await request.post("webhooks", webhook_id, "test")
    return see_other(address("webhooks", webhook_id, "deliveries", accepted.record["id"], queued=1))


def _readable(event: object) -> str:
    """Return JSON with one member per line."""
    return msgspec.json.format(encode(event), indent=2).decode()
