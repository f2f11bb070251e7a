"""Looking after deliveries: the log, once more, a trial (contract H13)."""

from __future__ import annotations

from functools import partial
from typing import Final, get_args

import msgspec
from msgspec import UNSET

from workspaced.core.problems import ConflictProblem, Invalid, NotFoundProblem
from workspaced.core.text import as_uuid
from workspaced.events.outbox import emit_to
from workspaced.events.payload import DomainEvent
from workspaced.http.operations import Call, Operation, Work
from workspaced.http.pagination import Cursor, read_page
from workspaced.http.responses import Response, json_response
from workspaced.resources.webhooks import delivery_store
from workspaced.resources.webhooks.delivery_store import DeliveryPage, StoredDelivery
from workspaced.resources.webhooks.records import (
    DeliveryRecord,
    DeliveryWithAttemptsRecord,
    Status,
    attempt_record,
    delivery_members,
)
from workspaced.resources.webhooks.routes import ONE, READ, WRITE, found
from workspaced.resources.webhooks.values import StoredWebhook
from workspaced.security.secret_box import SecretBox
from workspaced.storage.port import ReadTransaction, Transaction

_STATUSES: Final = get_args(Status)
_LOG: Final = f"{ONE}/deliveries"
_DEFAULT_TAKE: Final = "100"


async def list_deliveries(secret_box: SecretBox, call: Call) -> Response:
    """The newest first; a hundred where nothing is said, since there is no end to them."""
    limits = call.settings.limits
    query = {"take": _DEFAULT_TAKE, **call.query}
    page = read_page(query, longest=limits.page_length, sortable=frozenset(), walk=limits.walked_rows)
    behind = _behind(page.cursor) if page.cursor else None
    status = call.query.get("status", "")
    if status and status not in _STATUSES:
        raise Invalid("bad_status", f"status must be one of {', '.join(_STATUSES)}.")

    def question(reader: ReadTransaction) -> DeliveryPage:
        webhook = found(reader, secret_box, call)
        try:
            return delivery_store.list_deliveries(
                reader,
                webhook,
                status=status,
                take=page.take or 0,
                skip=page.skip,
                behind=behind,
                most=limits.walked_rows,
            )
        except NotFoundProblem:  # dropped since the page before, with all that are older
            raise Cursor.refused() from None

    listed = await call.store.read(question)
    headers = page.cursor_headers(
        total=listed.total,
        following=page.cursor_behind(listed.behind) if listed.behind else "",
        path=call.path,
        query=call.query,
    )
    return json_response([DeliveryRecord(**delivery_members(one)) for one in listed.deliveries], headers=headers)


def _behind(cursor: Cursor) -> str:
    """The id of the delivery behind which the cursor begins.

    Raises:
        Invalid: it is the cursor of another list.
    """
    delivery_id = as_uuid(cursor.position[0]) if len(cursor.position) == 1 else None
    if delivery_id is None:
        raise Cursor.refused()
    return delivery_id


async def get_delivery(secret_box: SecretBox, call: Call) -> Response:
    """With its attempts; what was sent and what came back is shown to the owner only (contract H13)."""

    def question(reader: ReadTransaction) -> DeliveryWithAttemptsRecord:
        webhook, delivery = _found(reader, secret_box, call)
        owned = call.actor == webhook.owner
        attempts = [attempt_record(one, owned=owned) for one in delivery_store.attempts_of(reader, delivery)]
        event = msgspec.Raw(delivery_store.body_of(reader, delivery)) if owned else UNSET
        return DeliveryWithAttemptsRecord(**delivery_members(delivery), attempts=attempts, event=event)

    return json_response(await call.store.read(question))


def redeliver(secret_box: SecretBox, call: Call) -> Work:
    """Once more, under the same webhook-id."""

    def act(tx: Transaction) -> Response:
        webhook, delivery = _found(tx, secret_box, call)
        _require_enabled(webhook)
        delivery_store.queue_again(tx, delivery, now=call.now)
        return _accepted(webhook, delivery_store.get_delivery(tx, webhook, delivery.id))

    return Work(act=act)


def test_webhook(secret_box: SecretBox, call: Call) -> Work:
    """An event of the type webhook.test, whatever the webhook is subscribed to."""

    def act(tx: Transaction) -> Response:
        webhook = found(tx, secret_box, call)
        _require_enabled(webhook)
        event = DomainEvent(type="webhook.test", id=webhook.id, record={"webhookId": webhook.id})
        delivery_id = emit_to(tx, call, webhook.number, event)
        return _accepted(webhook, delivery_store.get_delivery(tx, webhook, delivery_id))

    return Work(act=act)


def _accepted(webhook: StoredWebhook, delivery: StoredDelivery) -> Response:
    location = f"/v1/webhooks/{webhook.id}/deliveries/{delivery.id}"
    return json_response(DeliveryRecord(**delivery_members(delivery)), status=202, headers=(("Location", location),))


def _require_enabled(webhook: StoredWebhook) -> None:
    if not webhook.definition.enabled:
        raise ConflictProblem(
            "webhook_disabled", f"The webhook is disabled ({webhook.disabled_reason}): enable it first."
        )


def _found(reader: ReadTransaction, secret_box: SecretBox, call: Call) -> tuple[StoredWebhook, StoredDelivery]:
    webhook = found(reader, secret_box, call)
    return webhook, delivery_store.get_delivery(reader, webhook, as_uuid(call.names["delivery"]))


def operations(secret_box: SecretBox) -> tuple[Operation, ...]:
    """The table's rows; who may see the webhook may see its log, who may write it may have things sent."""
    return (
        Operation(
            name="webhooks.list_deliveries",
            method="GET",
            path=_LOG,
            scope=READ,
            anywhere=True,
            read=partial(list_deliveries, secret_box),
        ),
        Operation(
            name="webhooks.get_delivery",
            method="GET",
            path=f"{_LOG}/{{delivery}}",
            scope=READ,
            anywhere=True,
            read=partial(get_delivery, secret_box),
        ),
        Operation(
            name="webhooks.redeliver",
            method="POST",
            path=f"{_LOG}/{{delivery}}/redeliver",
            scope=WRITE,
            anywhere=True,
            prepare=partial(redeliver, secret_box),
        ),
        Operation(
            name="webhooks.test",
            method="POST",
            path=f"{ONE}/test",
            scope=WRITE,
            anywhere=True,
            prepare=partial(test_webhook, secret_box),
        ),
    )
