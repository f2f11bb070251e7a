"""The pages of webhooks and their deliveries, test events, and repeated deliveries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from workspaced.http.responses import Response
from workspaced.security.permissions import WEBHOOKS_WRITE
from workspaced.ui.addresses import address, see_other
from workspaced.ui.keys import GRACE_SECONDS
from workspaced.ui.page_request import PageRequest, readable_json
from workspaced.ui.pager import PagePosition
from workspaced.ui.renderer import PageView, page_view, title_of

SECTION: Final = "webhooks"
STATUSES: Final = ("pending", "succeeded", "failed", "dead")
_PAGE_LENGTH: Final = 50


async def list_webhooks(request: PageRequest) -> PageView:
    """Show the webhooks that the key may read; ``search`` is a part of the label or the URL."""
    search = request.query.get("search", "").strip()
    list_page = PagePosition(take=_PAGE_LENGTH, skip=request.number("skip"))
    found = await request.get("webhooks", search=search, sortedBy="label", sortOrder="ASC", **list_page.query)
    return page_view(
        "webhooks.html",
        "Webhooks",
        SECTION,
        webhooks=found.value,
        search=search,
        may_write=may_write(request),
        pager=list_page.pager(found.total, "webhooks", search=search),
    )


async def list_event_types(request: PageRequest) -> PageView:
    """Show the types of events, each with the schema of its body."""
    found = await request.get("webhooks", "event-types")
    types = [(kind, readable_json(kind["schema"])) for kind in found.value]
    return page_view("event_types.html", title_of("Event types", "Webhooks"), SECTION, types=types)


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
        title_of(webhook.record["label"], "Webhooks"),
        SECTION,
        webhook=webhook.record,
        about={name: value for name, value in webhook.record.items() if name != "signingSecret"},
        may_write=may_write(request),
        is_owner=is_owner(request, webhook.record),
        grace=GRACE_SECONDS,
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
        title_of(delivery.record["type"], webhook.record["label"]),
        SECTION,
        webhook=webhook.record,
        may_write=may_write(request),
        delivery=delivery.record,
        about={name: value for name, value in delivery.record.items() if name not in {"attempts", "event"}},
        event=readable_json(delivery.record["event"]) if "event" in delivery.record else "",
        queued=request.query.get("queued") == "1",
    )


async def redeliver(request: PageRequest) -> Response:
    """Send a delivery again, then show it."""
    webhook_id, delivery_id = request.names["webhook"], request.names["delivery"]
    await request.send("POST", "webhooks", webhook_id, "deliveries", delivery_id, "redeliver")
    return see_other(address("webhooks", webhook_id, "deliveries", delivery_id, queued=1))


async def test(request: PageRequest) -> Response:
    """Send a test event, then show its delivery."""
    webhook_id = request.names["webhook"]
    accepted = await request.send("POST", "webhooks", webhook_id, "test")
    return see_other(address("webhooks", webhook_id, "deliveries", accepted.record["id"], queued=1))


def may_write(request: PageRequest) -> bool:
    """Return whether the key may write webhooks. A webhook belongs to no workspace, so the permission on any is enough."""
    return request.session.principal.may_somewhere(WEBHOOKS_WRITE)


def is_owner(request: PageRequest, record: Mapping[str, Any]) -> bool:
    """Return whether this key may see the secret of a webhook and the values of its headers."""
    return may_write(request) and bool(record["createdBy"] == request.session.principal.name)
