"""Webhooks, types of events, and deliveries (contract H13)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypeAlias

from ingestd.client.records.base import Number, Record, Versioned

DeliveryStatus: TypeAlias = Literal["pending", "succeeded", "failed", "dead"]


class OAuthConnection(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Where deliveries get their token (client credentials). The service never returns ``client_secret``."""

    token_url: str | None = None
    client_id: str | None = None
    client_secret: str | None = None
    scope: str | None = None
    audience: str | None = None

    def __repr__(self) -> str:
        return f"OAuthConnection(client_id={self.client_id!r})"


class Webhook(Versioned, frozen=True, kw_only=True):
    """A registered receiver. ``signing_secret`` is masked for keys that may only read.

    ``repr`` hides the secret, the headers, and the address, which may contain a password.
    """

    id: str
    label: str
    url: str
    signing_secret: str
    headers: tuple[str, ...]
    data_events: tuple[str, ...]
    oauth_connection: OAuthConnection
    created_by: str
    created_at: datetime
    updated_at: datetime
    updated_by: str | None = None
    enabled: bool | None = None
    disabled_reason: str | None = None
    workspace_ids: tuple[str, ...] | None = None
    ignore_client_ids: tuple[str, ...] | None = None
    coalesce: bool | None = None
    in_order: bool | None = None
    batch_entries: bool | None = None
    unknown_data_events: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        return f"Webhook(id={self.id!r}, label={self.label!r}, enabled={self.enabled!r})"


class EventType(Record, frozen=True, kw_only=True):
    """An event that webhooks can subscribe to, with the JSON Schema of what is sent."""

    type: str
    description: str
    schema: dict[str, Any]


class Delivery(Record, frozen=True, kw_only=True):
    """One event for one webhook. ``failed``: it is tried again at ``next_attempt_at``. ``dead``: it is not tried again."""

    id: str
    event_id: str
    type: str
    workspace_id: str | None
    sequence: int
    status: DeliveryStatus
    attempt_count: int
    next_attempt_at: datetime | None
    created_at: datetime
    finished_at: datetime | None


class Attempt(Record, frozen=True, kw_only=True):
    """One request to the receiver. ``status_code`` None: no response. The owner also gets the first KiB of its body."""

    number: int
    at: datetime
    milliseconds: Number
    status_code: int | None
    error: str | None
    answer: str | None  # codespell:ignore answer


class DeliveryDetail(Delivery, frozen=True, kw_only=True):
    """A delivery with its attempts. ``event``: the payload, for the owner only."""

    attempts: tuple[Attempt, ...]
    event: dict[str, Any] | None = None
