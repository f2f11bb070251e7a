"""Webhooks and their deliveries in responses, as far as the caller may see them (contract H3, H4, H5, H13, H15)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from workspaced.core.json_schema import Count, RawObject, Timestamp, Uuid
from workspaced.core.timestamps import stamp
from workspaced.events.catalogue import unknown
from workspaced.resources.webhooks.delivery_store import StoredAttempt, StoredDelivery
from workspaced.resources.webhooks.signature import masked
from workspaced.resources.webhooks.values import OAuth, StoredWebhook

Status: TypeAlias = Literal["pending", "succeeded", "failed", "dead"]


class WebhookRecord(msgspec.Struct, kw_only=True, rename="camel"):
    """A webhook."""

    id: Uuid
    label: str
    url: str
    signing_secret: Annotated[str, Meta(description="Masked for callers who may only read the webhook.")]
    headers: Annotated[
        list[str], Meta(description="Their values are masked for callers who may only read the webhook.")
    ]
    data_events: tuple[str, ...]
    oauth_connection: Annotated[dict[str, str], Meta(description="Without its clientSecret; `{}` if there is none.")]
    created_by: str
    created_at: Timestamp
    updated_at: Timestamp
    updated_by: str
    enabled: bool
    disabled_reason: Annotated[str, Meta(description="Why it was disabled; empty if it was not.")]
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
    answer: Annotated[str | None, Meta(description="The beginning of the response; for the owner of the webhook only.")]


class DeliveryWithAttemptsRecord(DeliveryRecord, kw_only=True, rename="camel"):
    """A delivery with its attempts."""

    attempts: list[AttemptRecord]
    event: Annotated[RawObject, Meta(description="For the owner of the webhook only.")] | UnsetType = UNSET


class EventTypeRecord(msgspec.Struct, kw_only=True):
    """A type of events."""

    type: str
    description: str
    schema: dict[str, Any]


def record(webhook: StoredWebhook, *, full: bool) -> WebhookRecord:
    """Return the webhook. ``full``: the caller owns it and may write it, and so sees the secret and header values."""
    chosen = webhook.definition
    return WebhookRecord(
        id=webhook.id,
        label=chosen.label,
        url=chosen.url,
        signing_secret=webhook.secret if full else masked(webhook.secret),
        headers=[text if full else f"{text.partition(':')[0]}: …" for text in chosen.headers],
        data_events=chosen.data_events,
        oauth_connection=_oauth(chosen.oauth),
        created_by=webhook.created_by,
        created_at=stamp(webhook.created_at),
        updated_at=stamp(webhook.updated_at),
        updated_by=webhook.updated_by,
        enabled=chosen.enabled,
        disabled_reason=webhook.disabled_reason,
        workspace_ids=chosen.workspace_ids,
        ignore_client_ids=chosen.ignore_client_ids,
        coalesce=chosen.coalesce,
        in_order=chosen.in_order,
        batch_entries=chosen.batch_entries,
        unknown_data_events=unknown(chosen.data_events),
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


def delivery_members(delivery: StoredDelivery) -> dict[str, Any]:
    """Return the members of a `DeliveryRecord`."""
    waiting = delivery.status in {"pending", "failed"}
    return {
        "id": delivery.id,
        "event_id": delivery.event_id,
        "type": delivery.type,
        "workspace_id": delivery.workspace_id or None,
        "sequence": delivery.sequence,
        "status": delivery.status,
        "attempt_count": delivery.attempts,
        "next_attempt_at": stamp(delivery.due_at) if waiting else None,
        "created_at": stamp(delivery.created_at),
        "finished_at": stamp(delivery.finished_at) if delivery.finished_at is not None else None,
    }


def attempt_record(attempt: StoredAttempt, *, owned: bool) -> AttemptRecord:
    """Return the attempt; ``owned``: the caller owns the webhook."""
    return AttemptRecord(
        number=attempt.ordinal,
        at=stamp(attempt.at),
        milliseconds=attempt.milliseconds,
        status_code=attempt.status_code,
        error=attempt.error,
        answer=attempt.answer if owned else None,
    )
