"""Webhooks (contract WH1, WH2, WH3, WH4, WH5, WH6), the types of events, and deliveries (contract H13)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypedDict, Unpack

from msgspec import UnsetType

from ingestd.client import operations
from ingestd.client.declarations import (
    ChangeOptions,
    CreateOptions,
    IterOptions,
    ListOptions,
    PageOptions,
    declare,
    paged,
)
from ingestd.client.readers import read_created_id
from ingestd.client.records import Delivery, DeliveryDetail, DeliveryStatus, EventType, OAuthConnection, Webhook


class WebhookMembers(TypedDict, total=False):
    """The members that a webhook is created with and that can be changed.

    ``headers_sent``: of each delivery, as ``Name: value``. ``data_events``: names, ``*`` or ``prefix.*``.
    """

    label: str | UnsetType | None
    data_events: Sequence[str] | UnsetType
    headers_sent: Sequence[str] | UnsetType
    oauth_connection: OAuthConnection | UnsetType | None
    signing_secret: str | UnsetType
    enabled: bool | UnsetType
    workspace_ids: Sequence[str] | UnsetType
    ignore_client_ids: Sequence[str] | UnsetType
    coalesce: bool | UnsetType
    in_order: bool | UnsetType
    batch_entries: bool | UnsetType


class CreateWebhookOptions(WebhookMembers, CreateOptions, total=False):
    """Parameters of a new webhook."""

    id: str | UnsetType


class ChangeWebhookOptions(WebhookMembers, ChangeOptions, total=False):
    """Parameters of a change of a webhook."""

    url: str | UnsetType


class WebhookMethods:
    """Webhooks and their deliveries. ``search`` selects webhooks by label and address."""

    @declare(operations.LIST_WEBHOOKS)
    def list_webhooks(self, *, search: str | None = None, **options: Unpack[ListOptions]) -> tuple[Webhook, ...]:
        """Return the newest ten webhooks by default, or the given part of the list."""

    @paged(list_webhooks, page_length=100, documented=True)
    def iter_webhooks(self, *, search: str | None = None, **options: Unpack[IterOptions]) -> Iterator[Webhook]:
        """Return every webhook, read page by page."""

    @declare(operations.GET_WEBHOOK)
    def get_webhook(self, webhook: str, *, if_none_match: str | None = None) -> Webhook:
        """Return one webhook."""

    @declare(operations.CREATE_WEBHOOK, read=read_created_id, rename={"headers_sent": "headers"})
    def create_webhook(self, url: str, **options: Unpack[CreateWebhookOptions]) -> str | None:
        """Create a webhook. Returns its id, or None if the service does not give it. ``get_webhook`` shows its secret."""

    @declare(operations.UPDATE_WEBHOOK, rename={"headers_sent": "headers"})
    def update_webhook(self, webhook: str, **options: Unpack[ChangeWebhookOptions]) -> Webhook:
        """Change the given members of a webhook. A given list replaces the stored one."""

    @declare(operations.DELETE_WEBHOOK)
    def delete_webhook(self, webhook: str, **options: Unpack[ChangeOptions]) -> Webhook:
        """Remove a webhook with its pending deliveries. Returns the removed webhook."""

    @declare(operations.ROTATE_SECRET, optional_body=True)
    def rotate_webhook_secret(
        self, webhook: str, *, grace_period_seconds: int | None = None, **options: Unpack[CreateOptions]
    ) -> Webhook:
        """Replace the signing secret; the response contains the new one. By default the old one signs for another day."""

    @declare(operations.LIST_EVENT_TYPES)
    def list_event_types(self) -> tuple[EventType, ...]:
        """Return every type of event, with the schema of its payload."""

    @declare(operations.LIST_DELIVERIES)
    def list_deliveries(
        self, webhook: str, *, status: DeliveryStatus | None = None, take: int | None = None, skip: int | None = None
    ) -> tuple[Delivery, ...]:
        """Return the newest hundred deliveries to a webhook by default; ``status`` selects those with one status."""

    @paged(list_deliveries, page_length=500)
    def iter_deliveries(
        self, webhook: str, *, status: DeliveryStatus | None = None, **options: Unpack[PageOptions]
    ) -> Iterator[Delivery]:
        """Return every delivery to a webhook, the newest first, read page by page."""

    @declare(operations.GET_DELIVERY)
    def get_delivery(self, webhook: str, delivery: str) -> DeliveryDetail:
        """Return one delivery with its attempts."""

    @declare(operations.REDELIVER)
    def redeliver(self, webhook: str, delivery: str, **options: Unpack[CreateOptions]) -> Delivery:
        """Send a delivery again, with the same webhook-id."""

    @declare(operations.TEST_WEBHOOK)
    def send_test_event(self, webhook: str, **options: Unpack[CreateOptions]) -> Delivery:
        """Send an event ``webhook.test``, to which every webhook is subscribed."""
