"""Webhooks. Their secret, headers and address, which may hold a password, are not shown by ``repr``."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ingestd.client.records.base import Record, Versioned


class OAuthConnection(Record, frozen=True, kw_only=True, omit_defaults=True):
    """How deliveries get their token: client credentials. The secret is never told by the service."""

    token_url: str | None = None
    client_id: str | None = None
    client_secret: str | None = None
    scope: str | None = None
    audience: str | None = None

    def __repr__(self) -> str:
        return f"OAuthConnection(client_id={self.client_id!r})"


class Webhook(Versioned, frozen=True, kw_only=True):
    """A registered receiver. ``signing_secret`` is masked for who may only read."""

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
