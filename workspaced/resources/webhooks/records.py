"""Records of webhooks and deliveries, as the caller may see them (contract H3, H4, H5, H13, H15)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from workspaced.core.json_schema import Count, RawObject, Timestamp, Uuid
from workspaced.core.records import record_from
from workspaced.core.timestamps import stamp
from workspaced.events.catalogue import unknown
from workspaced.resources.webhooks.delivery_log import StoredAttempt, StoredDelivery
from workspaced.resources.webhooks.signature import masked
from workspaced.resources.webhooks.values import OAuth, StoredWebhook

Status: TypeAlias = Literal["pending", "succeeded", "failed", "dead"]


class WebhookRecord(msgspec.Struct, kw_only=True, rename="camel"):
    """A webhook."""

    id: Uuid
    label: str
    url: str
    signing_secret: Annotated[str, Meta(description="Masked for callers that may only read the webhook.")]
    headers: Annotated[list[str], Meta(description="The values are masked for callers that may only read the webhook.")]
    data_events: tuple[str, ...]
    oauth_connection: Annotated[dict[str, str], Meta(description="Without its clientSecret; `{}`: no connection.")]
    created_by: str
    created_at: Timestamp
    updated_at: Timestamp
    updated_by: str
    enabled: bool
    disabled_reason: Annotated[
        str,
        Meta(description="Why it was disabled, or why it can't be used now; empty if it is enabled and can be used."),
    ]
    workspace_ids: tuple[str, ...]
    ignore_client_ids: tuple[str, ...]
    coalesce: bool
    in_order: bool
    batch_entries: bool
    unknown_data_events: Annotated[tuple[str, ...], Meta(description="The items of dataEvents that match no event.")]


class DeliveryRecord(msgspec.Struct, kw_only=True, rename="camel"):
    """A delivery."""

    id: Uuid
    event_id: str
    type: str
    workspace_id: Uuid | None
    sequence: Count
    status: Status
    attempt_count: Count
    next_attempt_at: Timestamp | None
    created_at: Timestamp
    finished_at: Timestamp | None


class AttemptRecord(msgspec.Struct, kw_only=True, rename="camel"):
    """An attempt of a delivery."""

    number: Count
    at: Timestamp
    milliseconds: Count
    status_code: int | None
    error: str | None
    response: Annotated[
        str | None, Meta(description="The beginning of the response; for the owner of the webhook only.")
    ]


class DeliveryWithAttemptsRecord(DeliveryRecord, kw_only=True, rename="camel"):
    """A delivery with its attempts."""

    attempts: list[AttemptRecord]
    event: Annotated[RawObject, Meta(description="For the owner of the webhook only.")] | UnsetType = UNSET


DeliveryT = TypeVar("DeliveryT", bound=DeliveryRecord)


class EventTypeRecord(msgspec.Struct, kw_only=True):
    """A type of events."""

    type: str
    description: str
    schema: dict[str, Any]


def webhook_record(webhook: StoredWebhook, *, full: bool) -> WebhookRecord:
    """Return the record of a webhook. ``full``: show its secret and the values of its headers, if they can be decrypted."""
    definition = webhook.definition
    full = full and webhook.sealed is None
    same = {name: value for name, value in vars(definition).items() if name not in {"headers", "oauth"}}
    return record_from(
        WebhookRecord,
        webhook,
        **same,
        signing_secret=webhook.secret if full else masked(webhook.secret),
        headers=[text if full else f"{text.partition(':')[0]}: …" for text in definition.headers],
        oauth_connection=_oauth(definition.oauth),
        disabled_reason=webhook.disabled_reason or (webhook.sealed.detail if webhook.sealed else ""),
        unknown_data_events=unknown(definition.data_events),
    )


def _oauth(oauth: OAuth | None) -> dict[str, str]:
    if oauth is None:
        return {}
    optional = {"scope": oauth.scope, "audience": oauth.audience}
    return {
        "tokenUrl": oauth.token_url,
        "clientId": oauth.client_id,
        **{name: text for name, text in optional.items() if text},
    }


def delivery_record(record_type: type[DeliveryT], delivery: StoredDelivery, **others: Any) -> DeliveryT:
    """Return the record of a delivery. ``others``: the members that only `DeliveryWithAttemptsRecord` has."""
    is_waiting = delivery.status in {"pending", "failed"}
    members = {
        "workspace_id": delivery.workspace_id or None,
        "attempt_count": delivery.attempts,
        "next_attempt_at": stamp(delivery.due_at) if is_waiting else None,
        **others,
    }
    return record_from(record_type, delivery, **members)


def attempt_record(attempt: StoredAttempt, *, owned: bool) -> AttemptRecord:
    """Return the record of an attempt; ``owned``: the caller owns the webhook, so the record has the response."""
    response = attempt.response if owned else None
    return record_from(AttemptRecord, attempt, number=attempt.ordinal, response=response)
