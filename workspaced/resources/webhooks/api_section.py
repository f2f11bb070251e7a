"""The webhooks' section of the API description; `workspaced.resources.webhooks.rules` is what validates."""

from __future__ import annotations

from typing import Final

from workspaced.events.catalogue import PATTERN_LENGTH
from workspaced.http.openapi.description import ApiSection, Body, Link, OperationDescription, Parameter, Success
from workspaced.http.openapi.schema import (
    COUNT,
    FLAG,
    NAME,
    NAMES,
    NOT_BLANK,
    OBJECT,
    STAMP,
    UUID,
    Schema,
    choice,
    given,
    listed,
    nullable,
    record,
    ref,
    text,
    texts,
    told,
)
from workspaced.http.openapi.shared import LISTED, WALKED, WALKED_LIST, paging
from workspaced.resources.webhooks.delivery_routes import STATUSES
from workspaced.resources.webhooks.routes import SORTABLE
from workspaced.resources.webhooks.rules import LONGEST_GRACE
from workspaced.settings.model import Limits

_ID: Final = Parameter(name="id", description="The webhook.", schema=UUID)
_DELIVERY: Final = Parameter(name="deliveryId", description="The delivery.", schema=UUID)

_ABOUT: Final = """\
A webhook is a receiver that is told of changes: at least once, signed by Standard Webhooks 1.0. It belongs to the
principal of the key that made it. What is sent stands under the document's `webhooks`.
"""
_NO_WEBHOOK: Final = "`webhook_not_found`: there is none, or it is another's."
_NO_DELIVERY: Final = f"{_NO_WEBHOOK} `delivery_not_found`: it has no such delivery."
_UNSAFE: Final = "`unsafe_url`: a URL leads to what deliveries may not reach."
_DISABLED: Final = "`webhook_disabled`: enable it first."
_CACHE: Final = "Cache"
_FOLLOWING: Final = {
    "get": "get",
    "update": "update",
    "delete": "delete",
    "rotateSecret": "rotate_secret",
    "test": "test",
    "listDeliveries": "list_deliveries",
}


def api_section(limits: Limits) -> ApiSection:
    """The document's six rows, the kinds of events, and the log of deliveries."""
    return ApiSection(
        title="Webhooks",
        description=_ABOUT,
        operations=(*_reads(limits), *_writes(), *_deliveries(limits)),
        path={"webhook": _ID, "delivery": _DELIVERY},
        schemas={**_records(), **_requests(limits)},
    )


def _records() -> dict[str, Schema]:
    webhook = {
        "id": UUID,
        "label": NAME,
        "url": NAME,
        "signingSecret": told(NAME, "Masked for who may read the webhook only."),
        "headers": told(NAMES, "Their values are masked for who may read the webhook only."),
        "dataEvents": NAMES,
        "oauthConnection": told(OBJECT, "Without its clientSecret; `{}` where there is none."),
        "createdBy": NAME,
        "createdAt": STAMP,
        "updatedAt": STAMP,
        "updatedBy": NAME,
        "enabled": FLAG,
        "disabledReason": told(NAME, "Why it was disabled; empty where it was not."),
        "workspaceIds": NAMES,
        "ignoreClientIds": NAMES,
        "coalesce": FLAG,
        "inOrder": FLAG,
        "batchEntries": FLAG,
        "unknownDataEvents": told(NAMES, "Of dataEvents those that stand for no event there is."),
    }
    delivery = {
        "id": UUID,
        "eventId": NAME,
        "type": NAME,
        "workspaceId": nullable(UUID),
        "sequence": COUNT,
        "status": choice(*STATUSES),
        "attemptCount": COUNT,
        "nextAttemptAt": nullable(STAMP),
        "createdAt": STAMP,
        "finishedAt": nullable(STAMP),
    }
    attempt = {
        "number": COUNT,
        "at": STAMP,
        "milliseconds": COUNT,
        "statusCode": nullable({"type": "integer"}),
        "error": nullable(NAME),
        "answer": nullable(told(NAME, "The beginning of what came back; for the webhook's owner only.")),
    }
    whole = {**delivery, "attempts": listed(record(attempt)), "event": told(OBJECT, "For the webhook's owner only.")}
    return {
        "Webhook": record(webhook),
        "Delivery": record(delivery),
        "DeliveryWithAttempts": record(whole, optional={"event"}),
        "EventType": record({"type": NAME, "description": NAME, "schema": OBJECT}),
    }


def _requests(limits: Limits) -> dict[str, Schema]:
    most = limits.webhook_list_items
    short = text(longest=limits.webhook_url_length)
    oauth = given(
        {"tokenUrl": short, "clientId": short, "clientSecret": short, "scope": short, "audience": short},
        required={"tokenUrl", "clientId"},
    )
    url = text(longest=limits.webhook_url_length, about="https, to a public host unless the service allows more.")
    fields = {
        "url": url,
        "label": text(longest=limits.label_length, pattern=NOT_BLANK, about="The URL's host unless given."),
        "dataEvents": texts(
            most=most,
            longest=PATTERN_LENGTH,
            item=text(shortest=1, longest=PATTERN_LENGTH, pattern="^[A-Za-z0-9_.*:/-]+$"),
            about="Names of events, `prefix.*` or `*`; everything unless given.",
        ),
        "headers": texts(
            most=limits.webhook_headers,
            longest=limits.webhook_header_length,
            item=text(
                longest=limits.webhook_header_length,
                pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\x00-\x08\x0a-\x1f\x7f]*$",
            ),
            about="`Name: value`, sent with each delivery; not those that the delivery itself sets.",
        ),
        "oauthConnection": {
            "anyOf": [oauth, {"type": "object", "maxProperties": 0}],
            "description": "Client credentials for a bearer token; the clientSecret is kept where it is left out.",
        },
        "signingSecret": text(
            pattern="^whsec_([A-Za-z0-9+/]{4}){8,21}$|^whsec_([A-Za-z0-9+/]{4}){10}[A-Za-z0-9+/]{3}=$",
            about="`whsec_` and base64 of 24 to 64 bytes; made by the service unless given.",
        ),
        "enabled": FLAG,
        "coalesce": told(FLAG, "Whether a newer update of a resource replaces one that was not tried yet."),
        "inOrder": told(
            FLAG,
            "Whether first attempts go one at a time, in the order of the events; else only those of one entry, by sink "
            "and key, or of one other resource do.",
        ),
        "batchEntries": told(
            FLAG,
            "Whether events of entries share requests: up to 100 as `events` of a `data_sink.entry.batch`, in their order. "
            "Each has the id that it would have alone; a request that failed is repeated with others.",
        ),
        "workspaceIds": texts(
            most=most, longest=36, item=UUID, about="Only these; all that the owner may read unless given."
        ),
        "ignoreClientIds": texts(
            most=most, longest=limits.client_id_length, about="Changes that came with these ClientIds are not told."
        ),
    }
    changes = given(fields)
    changes["properties"]["url"] = url
    seconds: Schema = {"type": "integer", "minimum": 0, "maximum": LONGEST_GRACE}
    return {
        "NewWebhook": given({"id": UUID, **fields}, required={"url"}),
        "WebhookChanges": changes,
        "SecretRotation": given({"gracePeriodSeconds": told(seconds, "How long the old secret goes on signing.")}),
    }


def _reads(limits: Limits) -> tuple[OperationDescription, ...]:
    search = Parameter(name="search", description="A part of the label or of the URL, in any case.", schema=NAME)
    return (
        OperationDescription(
            name="webhooks.list",
            summary="List webhooks",
            description="The caller's webhooks; everybody's for who administers the service. The newest first.",
            query=(search, *paging(limits, SORTABLE, take="10", order="DESC")),
            success=(Success(description="The webhooks.", schema=listed(ref("Webhook")), headers=(*LISTED, _CACHE)),),
        ),
        OperationDescription(
            name="webhooks.get",
            summary="Get a webhook",
            description="One webhook.",
            success=(Success(description="The webhook.", schema=ref("Webhook"), headers=("ETag", _CACHE)),),
            refusals={404: _NO_WEBHOOK},
            etag=True,
        ),
        OperationDescription(
            name="webhooks.event_types",
            summary="List the kinds of events",
            description="Every event there is, with the JSON Schema of what is sent.",
            success=(Success(description="The kinds.", schema=listed(ref("EventType"))),),
        ),
    )


def _writes() -> tuple[OperationDescription, ...]:
    shown = Success(description="The webhook.", schema=ref("Webhook"), headers=("ETag", _CACHE))
    return (
        OperationDescription(
            name="webhooks.create",
            summary="Create a webhook",
            description="A receiver; only its URL is needed. `Location` names it.",
            body=Body(
                schema=ref("NewWebhook"),
                example={"url": "https://example.com/hook", "dataEvents": ["data_sink.*"]},
            ),
            success=(
                Success(
                    status=201,
                    description="It is there.",
                    headers=("ETag", "Location"),
                    links={
                        name: Link(operation=f"webhooks.{operation}", parameters={"id": "$request.body#/id"})
                        for name, operation in _FOLLOWING.items()
                    },
                ),
            ),
            refusals={409: "`id_in_use`: the id is taken. `quota_exceeded`: there is no room for more.", 422: _UNSAFE},
        ),
        OperationDescription(
            name="webhooks.update",
            summary="Change a webhook",
            description="Only the members that are given change; lists are replaced whole.",
            body=Body(schema=ref("WebhookChanges"), example={"enabled": True}),
            success=(shown,),
            refusals={404: _NO_WEBHOOK, 422: _UNSAFE},
            etag=True,
        ),
        OperationDescription(
            name="webhooks.delete",
            summary="Delete a webhook",
            description="The webhook; what waits for it is not sent any more.",
            success=(Success(description="The webhook as it was.", schema=ref("Webhook"), headers=(_CACHE,)),),
            refusals={404: _NO_WEBHOOK},
            etag=True,
        ),
        OperationDescription(
            name="webhooks.rotate_secret",
            summary="Rotate a webhook's secret",
            description="A new secret; the old ones go on signing for 24 hours, or as the body says.",
            body=Body(schema=ref("SecretRotation"), example={"gracePeriodSeconds": 3600}, required=False),
            success=(shown,),
            refusals={404: _NO_WEBHOOK},
        ),
        OperationDescription(
            name="webhooks.test",
            summary="Try a webhook",
            description="Queues an event of the type webhook.test, whatever the webhook is subscribed to.",
            success=(_queued(),),
            refusals={404: _NO_WEBHOOK, 409: _DISABLED},
        ),
    )


def _deliveries(limits: Limits) -> tuple[OperationDescription, ...]:
    status = Parameter(name="status", description="Only those in this state.", schema=choice(*STATUSES))
    return (
        OperationDescription(
            name="webhooks.list_deliveries",
            summary="List deliveries",
            description=(
                "What was and will be sent to a webhook, the newest first. Events of a large change are among it a moment "
                f"later. {WALKED.format(limits.walked_rows)}"
            ),
            query=(status, *paging(limits, (), take="100", most_skipped=limits.walked_rows, cursors=True)),
            success=(Success(description="The deliveries.", schema=listed(ref("Delivery")), headers=WALKED_LIST),),
            refusals={404: _NO_WEBHOOK},
        ),
        OperationDescription(
            name="webhooks.get_delivery",
            summary="Get a delivery",
            description="One delivery with its attempts.",
            success=(Success(description="The delivery.", schema=ref("DeliveryWithAttempts")),),
            refusals={404: _NO_DELIVERY},
        ),
        OperationDescription(
            name="webhooks.redeliver",
            summary="Deliver once more",
            description="Queues the same event again, under the same webhook-id.",
            success=(_queued(),),
            refusals={404: _NO_DELIVERY, 409: _DISABLED},
        ),
    )


def _queued() -> Success:
    both = {"id": "$request.path.id", "deliveryId": "$response.body#/id"}
    return Success(
        status=202,
        description="The delivery, which will be tried soon.",
        schema=ref("Delivery"),
        headers=("Location",),
        links={"get": Link(operation="webhooks.get_delivery", parameters=both)},
    )
