"""Webhooks, what became of their deliveries, and having one sent once more."""

from __future__ import annotations

from typing import Final

import msgspec

from workspaced.core.json_body import encode
from workspaced.http.responses import Response
from workspaced.ui.addresses import address, see_other
from workspaced.ui.pager import Turn
from workspaced.ui.renderer import PageView
from workspaced.ui.visit import Visit

SECTION: Final = "webhooks"
STATUSES: Final = ("pending", "succeeded", "failed", "dead")
_AT_ONCE: Final = 50


async def list_webhooks(visit: Visit) -> PageView:
    """Those that the key may know of."""
    turn = Turn(take=_AT_ONCE, skip=visit.number("skip"))
    found = await visit.get("webhooks", sortedBy="label", sortOrder="ASC", **turn.query)
    return PageView(
        template="webhooks.html",
        title="Webhooks",
        section=SECTION,
        values={"webhooks": found.value, "pager": turn.pager(found.total, "webhooks")},
    )


async def show_webhook(visit: Visit) -> PageView:
    """A webhook and its deliveries, the newest first."""
    webhook_id = visit.names["webhook"]
    status = visit.query.get("status", "")
    turn = Turn(take=_AT_ONCE, skip=visit.number("skip"), cursor=visit.query.get("cursor", ""))
    webhook = await visit.get("webhooks", webhook_id)
    chosen = {"status": status} if status else {}
    deliveries = await visit.get("webhooks", webhook_id, "deliveries", **chosen, **turn.query)
    return PageView(
        template="webhook.html",
        title=webhook.record["label"],
        section=SECTION,
        values={
            "webhook": webhook.record,
            "deliveries": deliveries.value,
            "status": status,
            "statuses": STATUSES,
            "pager": turn.cursor_pager(
                len(deliveries.value), deliveries.counted, deliveries.next_cursor, "webhooks", webhook_id, status=status
            ),
        },
    )


async def show_delivery(visit: Visit) -> PageView:
    """A delivery and its attempts."""
    webhook_id = visit.names["webhook"]
    webhook = await visit.get("webhooks", webhook_id)
    delivery = await visit.get("webhooks", webhook_id, "deliveries", visit.names["delivery"])
    return PageView(
        template="delivery.html",
        title=delivery.record["type"],
        section=SECTION,
        values={
            "webhook": webhook.record,
            "delivery": delivery.record,
            "event": _readable(delivery.record["event"]) if "event" in delivery.record else "",
            "queued": visit.query.get("queued") == "1",
        },
    )


async def redeliver(visit: Visit) -> Response:
    """Have it sent once more, and show what comes of it."""
    webhook_id, delivery_id = visit.names["webhook"], visit.names["delivery"]
    await visit.post("webhooks", webhook_id, "deliveries", delivery_id, "redeliver")
    return see_other(address("webhooks", webhook_id, "deliveries", delivery_id, queued=1))


async def test(visit: Visit) -> Response:
    """Have an event sent for trial, and show what comes of it."""
    webhook_id = visit.names["webhook"]
    accepted = await visit.post("webhooks", webhook_id, "test")
    return see_other(address("webhooks", webhook_id, "deliveries", accepted.record["id"], queued=1))


def _readable(event: object) -> str:
    """JSON with a line a member."""
    return msgspec.json.format(encode(event), indent=2).decode()
