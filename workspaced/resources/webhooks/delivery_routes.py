"""The operations on webhook deliveries: list, get, deliver again, test (contract H13)."""

from __future__ import annotations

from typing import Final, get_args

import msgspec
from msgspec import UNSET

from workspaced.core.json_schema import choice
from workspaced.core.problems import ConflictProblem, Invalid, NotFoundProblem
from workspaced.core.text import as_uuid
from workspaced.events.outbox import emit_to
from workspaced.events.payload import DomainEvent
from workspaced.http.description import Parameter, Success, links, listed
from workspaced.http.openapi.shared import paging
from workspaced.http.operations import Call, Operation
from workspaced.http.pagination import Cursor, read_page
from workspaced.http.responses import Response, json_response
from workspaced.resources.operation_rows import get, post
from workspaced.resources.webhooks import delivery_log
from workspaced.resources.webhooks.delivery_log import DeliveryPage, StoredDelivery
from workspaced.resources.webhooks.records import (
    DeliveryRecord,
    DeliveryWithAttemptsRecord,
    Status,
    attempt_record,
    delivery_record,
)
from workspaced.resources.webhooks.routes import ONE, find_webhook
from workspaced.resources.webhooks.values import StoredWebhook
from workspaced.security.permissions import WEBHOOKS_READ, WEBHOOKS_WRITE
from workspaced.security.secret_box import SecretBox
from workspaced.settings.model import Limits
from workspaced.storage.port import ReadTransaction, Transaction

_STATUSES: Final = get_args(Status)
_ALL: Final = f"{ONE}/deliveries"
_DEFAULT_TAKE: Final = "100"


class _DeliveryOperations:
    """The handlers of the operations on deliveries."""

    def __init__(self, secret_box: SecretBox) -> None:
        self._secret_box = secret_box

    async def list_deliveries(self, call: Call) -> Response:
        """List deliveries.

        The deliveries that were or will be sent to a webhook, the newest first. The deliveries of a large change appear
        after a moment. A page examines at most $walked_rows deliveries. With a filter it may have fewer deliveries than
        `take`, or none, and still have a Link rel=next. The first page has X-Total-Count, unless there are more than
        $walked_rows deliveries.
        200: The deliveries.
        """
        limits = call.settings.limits
        query = {"take": _DEFAULT_TAKE, **call.query}
        page = read_page(query, longest=limits.page_length, sortable=frozenset(), walk=limits.walked_rows)
        after = _delivery_id_of(page.cursor) if page.cursor else None
        status = call.query.get("status", "")
        if status and status not in _STATUSES:
            raise Invalid("bad_status", f"status must be one of {', '.join(_STATUSES)}.")

        def find(reader: ReadTransaction) -> DeliveryPage:
            webhook = find_webhook(reader, self._secret_box, call)
            try:
                return delivery_log.list_deliveries(
                    reader,
                    webhook,
                    status=status,
                    take=page.take or 0,
                    skip=page.skip,
                    after=after,
                    most=limits.walked_rows,
                )
            except NotFoundProblem:  # removed after the previous page was read, with all older deliveries
                raise Cursor.refused() from None

        found = await call.store.read(find)
        following = page.cursor_after(found.next_after) if found.next_after else ""
        headers = page.cursor_headers(total=found.total, following=following, path=call.path, query=call.query)
        return json_response([delivery_record(DeliveryRecord, one) for one in found.deliveries], headers=headers)

    async def get_delivery(self, call: Call) -> Response:
        """Get a delivery (contract H13).

        One delivery with its attempts.
        200: The delivery.
        """

        def find(reader: ReadTransaction) -> DeliveryWithAttemptsRecord:
            webhook, delivery = self._get_by_path(reader, call)
            owned = call.actor == webhook.owner
            attempts = [attempt_record(one, owned=owned) for one in delivery_log.attempts_of(reader, delivery)]
            event = msgspec.Raw(delivery_log.body_of(reader, delivery)) if owned else UNSET
            return delivery_record(DeliveryWithAttemptsRecord, delivery, attempts=attempts, event=event)

        return json_response(await call.store.read(find))

    def redeliver(self, tx: Transaction, call: Call) -> Response:
        """Deliver again.

        Queues the same event again, under the same webhook-id.
        202: The delivery, which is attempted soon.
        409: `webhook_disabled`: enable it first.
        """
        webhook, delivery = self._get_by_path(tx, call)
        _require_enabled(webhook)
        delivery_log.queue_again(tx, delivery, now=call.now)
        return _queued_response(webhook, delivery_log.get_delivery(tx, webhook, delivery.id))

    def test_webhook(self, tx: Transaction, call: Call) -> Response:
        """Test a webhook.

        Queues an event of the type webhook.test, also if the webhook does not subscribe to this type.
        202: The delivery, which is attempted soon.
        409: `webhook_disabled`: enable it first.
        """
        webhook = find_webhook(tx, self._secret_box, call)
        _require_enabled(webhook)
        event = DomainEvent(type="webhook.test", id=webhook.id, record={"webhookId": webhook.id})
        delivery_id = emit_to(tx, call, webhook.number, event)
        return _queued_response(webhook, delivery_log.get_delivery(tx, webhook, delivery_id))

    def _get_by_path(self, reader: ReadTransaction, call: Call) -> tuple[StoredWebhook, StoredDelivery]:
        webhook = find_webhook(reader, self._secret_box, call)
        return webhook, delivery_log.get_delivery(reader, webhook, as_uuid(call.names["delivery"]))


def _delivery_id_of(cursor: Cursor) -> str:
    """Return the id of the last delivery before the page. Raises Invalid: the cursor is of another list."""
    delivery_id = as_uuid(cursor.position[0]) if len(cursor.position) == 1 else None
    if delivery_id is None:
        raise Cursor.refused()
    return delivery_id


def _queued_response(webhook: StoredWebhook, delivery: StoredDelivery) -> Response:
    location = f"/v1/webhooks/{webhook.id}/deliveries/{delivery.id}"
    return json_response(delivery_record(DeliveryRecord, delivery), status=202, headers=(("Location", location),))


def _require_enabled(webhook: StoredWebhook) -> None:
    if not webhook.definition.enabled:
        raise ConflictProblem(
            "webhook_disabled", f"The webhook is disabled ({webhook.disabled_reason}): enable it first."
        )


def operations(limits: Limits, secret_box: SecretBox) -> tuple[Operation, ...]:
    """Return the operations on deliveries. They need the scopes for reading and writing webhooks."""
    handlers = _DeliveryOperations(secret_box)
    one = f"{_ALL}/{{delivery}}"
    status = Parameter("status", "Only deliveries in this state.", choice(*_STATUSES))
    following = links({"id": "$request.path.id", "deliveryId": "$response.body#/id"}, get="webhooks.get_delivery")
    queued = Success(DeliveryRecord, ("Location",), status=202, links=following)
    return (
        get("webhooks.list_deliveries", _ALL, WEBHOOKS_READ, handlers.list_deliveries, anywhere=True).described(
            success=listed(DeliveryRecord, counted=False),
            query=(status, *paging(limits, (), take="100", most_skipped=limits.walked_rows, cursors=True)),
        ),
        get("webhooks.get_delivery", one, WEBHOOKS_READ, handlers.get_delivery, anywhere=True).described(
            success=Success(DeliveryWithAttemptsRecord)
        ),
        post("webhooks.redeliver", f"{one}/redeliver", WEBHOOKS_WRITE, handlers.redeliver, anywhere=True).described(
            success=queued
        ),
        post("webhooks.test", f"{ONE}/test", WEBHOOKS_WRITE, handlers.test_webhook, anywhere=True).described(
            success=queued
        ),
    )
