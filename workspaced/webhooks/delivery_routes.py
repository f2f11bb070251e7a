"""Looking after deliveries: the log, once more, a trial (contract, H13)."""

from __future__ import annotations

from functools import partial
from typing import Final

import msgspec

from workspaced.events.outbox import emit_to
from workspaced.events.payload import Event
from workspaced.problems import Conflict, Invalid, NotFound
from workspaced.sealing import Vault
from workspaced.storage.port import Reader, Transaction
from workspaced.text import as_uuid
from workspaced.timestamps import stamp
from workspaced.web.answers import Answer, json_answer
from workspaced.web.operations import Call, Operation, Work
from workspaced.web.paging import Cursor, read_page
from workspaced.webhooks import delivery_store
from workspaced.webhooks.delivery_store import DeliveryPage, StoredAttempt, StoredDelivery
from workspaced.webhooks.routes import ONE, READ, WRITE, found
from workspaced.webhooks.values import StoredWebhook

STATUSES: Final = ("pending", "succeeded", "failed", "dead")
_LOG: Final = f"{ONE}/deliveries"
_DEFAULT_TAKE: Final = "100"


async def list_deliveries(vault: Vault, call: Call) -> Answer:
    """The newest first; a hundred where nothing is said, since there is no end to them."""
    limits = call.settings.limits
    query = {"take": _DEFAULT_TAKE, **call.query}
    page = read_page(query, longest=limits.page_length, sortable=frozenset(), walk=limits.walked_rows)
    behind = _behind(page.cursor) if page.cursor else None
    status = call.query.get("status", "")
    if status and status not in STATUSES:
        raise Invalid("bad_status", f"status must be one of {', '.join(STATUSES)}.")

    def question(reader: Reader) -> DeliveryPage:
        webhook = found(reader, vault, call)
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
        except NotFound:  # dropped since the page before, with all that are older
            raise Cursor.refused() from None

    listed = await call.store.read(question)
    headers = page.cursor_headers(
        total=listed.total,
        following=page.cursor_behind(listed.behind) if listed.behind else "",
        path=call.path,
        query=call.query,
    )
    return json_answer([_record(one) for one in listed.deliveries], headers=headers)


def _behind(cursor: Cursor) -> str:
    """The id of the delivery behind which the cursor begins.

    Raises:
        Invalid: it is the cursor of another list.
    """
    delivery_id = as_uuid(cursor.position[0]) if len(cursor.position) == 1 else None
    if delivery_id is None:
        raise Cursor.refused()
    return delivery_id


async def get_delivery(vault: Vault, call: Call) -> Answer:
    """With its attempts; what was sent and what came back is shown to the owner only (H15)."""

    def question(reader: Reader) -> dict[str, object]:
        webhook, delivery = _found(reader, vault, call)
        owned = call.actor == webhook.owner
        attempts = [_attempt(one, owned=owned) for one in delivery_store.attempts_of(reader, delivery)]
        sent = {"event": msgspec.Raw(delivery_store.body_of(reader, delivery))} if owned else {}
        return {**_record(delivery), "attempts": attempts, **sent}

    return json_answer(await call.store.read(question))


def redeliver(vault: Vault, call: Call) -> Work:
    """Once more, under the same webhook-id."""

    def act(tx: Transaction) -> Answer:
        webhook, delivery = _found(tx, vault, call)
        _require_enabled(webhook)
        delivery_store.queue_again(tx, delivery, now=call.now)
        return _accepted(webhook, delivery_store.get_delivery(tx, webhook, delivery.id))

    return Work(act=act)


def test_webhook(vault: Vault, call: Call) -> Work:
    """An event of the type webhook.test, whatever the webhook is subscribed to."""

    def act(tx: Transaction) -> Answer:
        webhook = found(tx, vault, call)
        _require_enabled(webhook)
        event = Event(type="webhook.test", id=webhook.id, record={"webhookId": webhook.id})
        delivery_id = emit_to(tx, call, webhook.number, event)
        return _accepted(webhook, delivery_store.get_delivery(tx, webhook, delivery_id))

    return Work(act=act)


def _accepted(webhook: StoredWebhook, delivery: StoredDelivery) -> Answer:
    location = f"/v1/webhooks/{webhook.id}/deliveries/{delivery.id}"
    return json_answer(_record(delivery), status=202, headers=(("Location", location),))


def _require_enabled(webhook: StoredWebhook) -> None:
    if not webhook.definition.enabled:
        raise Conflict("webhook_disabled", f"The webhook is disabled ({webhook.disabled_reason}): enable it first.")


def _found(reader: Reader, vault: Vault, call: Call) -> tuple[StoredWebhook, StoredDelivery]:
    webhook = found(reader, vault, call)
    return webhook, delivery_store.get_delivery(reader, webhook, as_uuid(call.names["delivery"]))


def _record(delivery: StoredDelivery) -> dict[str, object]:
    waiting = delivery.status in {"pending", "failed"}
    return {
        "id": delivery.id,
        "eventId": delivery.event_id,
        "type": delivery.type,
        "workspaceId": delivery.workspace_id or None,
        "sequence": delivery.sequence,
        "status": delivery.status,
        "attemptCount": delivery.attempts,
        "nextAttemptAt": stamp(delivery.due_at) if waiting else None,
        "createdAt": stamp(delivery.created_at),
        "finishedAt": stamp(delivery.finished_at) if delivery.finished_at is not None else None,
    }


def _attempt(attempt: StoredAttempt, *, owned: bool) -> dict[str, object]:
    return {
        "number": attempt.ordinal,
        "at": stamp(attempt.at),
        "milliseconds": attempt.milliseconds,
        "statusCode": attempt.status_code,
        "error": attempt.error,
        "answer": attempt.answer if owned else None,
    }


def operations(vault: Vault) -> tuple[Operation, ...]:
    """The table's rows; who may see the webhook may see its log, who may write it may have things sent."""
    return (
        Operation(
            name="webhooks.list_deliveries",
            method="GET",
            path=_LOG,
            scope=READ,
            anywhere=True,
            read=partial(list_deliveries, vault),
        ),
        Operation(
            name="webhooks.get_delivery",
            method="GET",
            path=f"{_LOG}/{{delivery}}",
            scope=READ,
            anywhere=True,
            read=partial(get_delivery, vault),
        ),
        Operation(
            name="webhooks.redeliver",
            method="POST",
            path=f"{_LOG}/{{delivery}}/redeliver",
            scope=WRITE,
            anywhere=True,
            prepare=partial(redeliver, vault),
        ),
        Operation(
            name="webhooks.test",
            method="POST",
            path=f"{ONE}/test",
            scope=WRITE,
            anywhere=True,
            prepare=partial(test_webhook, vault),
        ),
    )
