"""The section of the API description for webhooks."""

from __future__ import annotations

from typing import Final, get_args

from workspaced.core.json_schema import STRING, UUID, array, choice, record_schemas, ref
from workspaced.core.members import body_schemas
from workspaced.http.openapi.description import (
    ApiSection,
    Body,
    OperationDescription,
    Parameter,
    Success,
    links,
    listed,
)
from workspaced.http.openapi.shared import WALKED, paging
from workspaced.resources.webhooks import records
from workspaced.resources.webhooks.routes import SORTABLE
from workspaced.resources.webhooks.values import NewWebhook, SecretRotation, WebhookChanges
from workspaced.settings.model import Limits

_ABOUT: Final = """\
A webhook receives events at least once, signed by Standard Webhooks 1.0. It belongs to the principal of the key that
created it. The document's `webhooks` describe what is sent.
"""
_NO_WEBHOOK: Final = "`webhook_not_found`: there is none, or it belongs to another principal."
_NO_DELIVERY: Final = f"{_NO_WEBHOOK} `delivery_not_found`: it has no such delivery."
_UNSAFE: Final = "`unsafe_url`: deliveries may not be sent to the address of a URL."
_DISABLED: Final = "`webhook_disabled`: enable it first."
_LINKS: Final = links(
    {"id": "$request.body#/id"},
    get="webhooks.get",
    update="webhooks.update",
    delete="webhooks.delete",
    rotateSecret="webhooks.rotate_secret",
    test="webhooks.test",
    listDeliveries="webhooks.list_deliveries",
)
_QUEUED: Final = Success(
    "The delivery, which is attempted soon.",
    ref("Delivery"),
    status=202,
    headers=("Location",),
    links=links({"id": "$request.path.id", "deliveryId": "$response.body#/id"}, get="webhooks.get_delivery"),
)
_SHOWN: Final = Success("The webhook.", ref("Webhook"), headers=("ETag", "Cache"))


def api_section(limits: Limits) -> ApiSection:
    """Return the section: webhooks, the types of events, and the log of deliveries."""
    return ApiSection(
        title="Webhooks",
        description=_ABOUT,
        operations=(*_reads(limits), *_writes(), *_deliveries(limits)),
        path={
            "webhook": Parameter("id", "The webhook.", UUID),
            "delivery": Parameter("deliveryId", "The delivery.", UUID),
        },
        schemas={
            **record_schemas(
                records.WebhookRecord,
                records.DeliveryRecord,
                records.DeliveryWithAttemptsRecord,
                records.EventTypeRecord,
            ),
            **body_schemas(limits, NewWebhook, SecretRotation, WebhookChanges),
        },
    )


def _reads(limits: Limits) -> tuple[OperationDescription, ...]:
    search = Parameter("search", "A part of the label or of the URL, in any case.", STRING)
    return (
        OperationDescription(
            "webhooks.list",
            "List webhooks",
            "The caller's webhooks, the newest first. An administrator of the service gets all webhooks.",
            listed("The webhooks.", "Webhook", "Cache"),
            query=(search, *paging(limits, SORTABLE, take="10", order="DESC")),
        ),
        OperationDescription(
            "webhooks.get", "Get a webhook", "One webhook.", _SHOWN, refusals={404: _NO_WEBHOOK}, etag=True
        ),
        OperationDescription(
            "webhooks.event_types",
            "List event types",
            "Every event type, with the JSON Schema of the body that is sent.",
            Success("The types.", array(ref("EventType"))),
        ),
    )


def _writes() -> tuple[OperationDescription, ...]:
    return (
        OperationDescription(
            "webhooks.create",
            "Create a webhook",
            "A receiver; only its URL is required. `Location` has its path.",
            Success("It is created.", status=201, headers=("ETag", "Location"), links=_LINKS),
            body=Body(ref("NewWebhook"), {"url": "https://example.com/hook", "dataEvents": ["data_sink.*"]}),
            refusals={
                409: "`id_in_use`: the id is in use. `quota_exceeded`: the owner has as many as one may have.",
                422: _UNSAFE,
            },
        ),
        OperationDescription(
            "webhooks.update",
            "Change a webhook",
            "Only the given members change; a list is replaced as a whole.",
            _SHOWN,
            body=Body(ref("WebhookChanges"), {"enabled": True}),
            refusals={404: _NO_WEBHOOK, 422: _UNSAFE},
            etag=True,
        ),
        OperationDescription(
            "webhooks.delete",
            "Delete a webhook",
            "Deletes the webhook. Deliveries that wait are not sent.",
            Success("The webhook before it was deleted.", ref("Webhook"), headers=("Cache",)),
            refusals={404: _NO_WEBHOOK},
            etag=True,
        ),
        OperationDescription(
            "webhooks.rotate_secret",
            "Rotate a webhook's secret",
            "A new secret. The old ones still sign for 24 hours, or as long as the body says.",
            _SHOWN,
            body=Body(ref("SecretRotation"), {"gracePeriodSeconds": 3600}, required=False),
            refusals={404: _NO_WEBHOOK},
        ),
        OperationDescription(
            "webhooks.test",
            "Test a webhook",
            "Queues an event of the type webhook.test, whatever the subscription.",
            _QUEUED,
            refusals={404: _NO_WEBHOOK, 409: _DISABLED},
        ),
    )


def _deliveries(limits: Limits) -> tuple[OperationDescription, ...]:
    status = Parameter("status", "Only deliveries in this state.", choice(*get_args(records.Status)))
    return (
        OperationDescription(
            "webhooks.list_deliveries",
            "List deliveries",
            "The deliveries that were or will be sent to a webhook, the newest first. Large changes appear a moment later. "
            f"{WALKED.format(limits.walked_rows)}",
            listed("The deliveries.", "Delivery", counted=False),
            query=(status, *paging(limits, (), take="100", most_skipped=limits.walked_rows, cursors=True)),
            refusals={404: _NO_WEBHOOK},
        ),
        OperationDescription(
            "webhooks.get_delivery",
            "Get a delivery",
            "One delivery with its attempts.",
            Success("The delivery.", ref("DeliveryWithAttempts")),
            refusals={404: _NO_DELIVERY},
        ),
        OperationDescription(
            "webhooks.redeliver",
            "Deliver again",
            "Queues the same event again, under the same webhook-id.",
            _QUEUED,
            refusals={404: _NO_DELIVERY, 409: _DISABLED},
        ),
    )
