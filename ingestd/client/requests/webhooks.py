"""Webhooks (contract WH1, WH2, WH3, WH4, WH5, WH6), and which events there are."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from ingestd.client import operations
from ingestd.client.paging import Listing
from ingestd.client.reading import created_id, many, versioned
from ingestd.client.records import EventType, OAuthConnection, Webhook
from ingestd.client.request import Request
from ingestd.client.requests.building import SortOrder, headers, members, query

_WEBHOOK = versioned(Webhook)
_WEBHOOKS = many(Webhook)
_EVENT_TYPES = many(EventType)


def list_webhooks(
    *,
    take: int | None = None,
    skip: int | None = None,
    sort_order: SortOrder | None = None,
    sorted_by: str | None = None,
    search: str | None = None,
) -> Request[tuple[Webhook, ...]]:
    """The first ten webhooks, the newest first, unless told otherwise; ``search`` looks into labels and addresses."""
    return Request(
        operation=operations.LIST_WEBHOOKS,
        read=_WEBHOOKS,
        query=query(take=take, skip=skip, sortOrder=sort_order, sortedBy=sorted_by, search=search),
    )


def iter_webhooks(
    *,
    sort_order: SortOrder | None = None,
    sorted_by: str | None = None,
    search: str | None = None,
    page_length: int = 100,
) -> Listing[Webhook]:
    """Every webhook, asked for page by page."""
    whole = list_webhooks(sort_order=sort_order, sorted_by=sorted_by, search=search)
    return Listing(whole=whole, page_length=page_length, identity=lambda webhook: webhook.id, documented=True)


def get_webhook(webhook: str, *, if_none_match: str | None = None) -> Request[Webhook]:
    """One webhook."""
    return Request(
        operation=operations.GET_WEBHOOK,
        read=_WEBHOOK,
        names={"webhook": webhook},
        headers=headers(if_none_match=if_none_match),
    )


def create_webhook(
    url: str,
    *,
    label: str | UnsetType = UNSET,
    data_events: Sequence[str] | UnsetType = UNSET,
    headers_sent: Sequence[str] | UnsetType = UNSET,
    oauth_connection: OAuthConnection | UnsetType = UNSET,
    signing_secret: str | UnsetType = UNSET,
    enabled: bool | UnsetType = UNSET,
    workspace_ids: Sequence[str] | UnsetType = UNSET,
    ignore_client_ids: Sequence[str] | UnsetType = UNSET,
    coalesce: bool | UnsetType = UNSET,
    in_order: bool | UnsetType = UNSET,
    batch_entries: bool | UnsetType = UNSET,
    id: str | UnsetType = UNSET,  # noqa: A002 - the document's own name
    idempotency_key: str | None = None,
    client_id: str | None = None,
) -> Request[str | None]:
    """A new webhook; answers its id, or None where the service does not tell it. ``get_webhook`` shows its secret.

    ``headers_sent``: what deliveries carry, each as ``Name: value``. ``data_events``: names, ``*`` or ``prefix.*``.
    """
    return Request(
        operation=operations.CREATE_WEBHOOK,
        read=created_id,
        body=members(
            url=url,
            label=label,
            dataEvents=data_events,
            headers=headers_sent,
            oauthConnection=oauth_connection,
            signingSecret=signing_secret,
            enabled=enabled,
            workspaceIds=workspace_ids,
            ignoreClientIds=ignore_client_ids,
            coalesce=coalesce,
            inOrder=in_order,
            batchEntries=batch_entries,
            id=id,
        ),
        headers=headers(idempotency_key=idempotency_key, client_id=client_id),
    )


def update_webhook(
    webhook: str,
    *,
    url: str | UnsetType = UNSET,
    label: str | UnsetType | None = UNSET,
    data_events: Sequence[str] | UnsetType = UNSET,
    headers_sent: Sequence[str] | UnsetType = UNSET,
    oauth_connection: OAuthConnection | UnsetType | None = UNSET,
    signing_secret: str | UnsetType = UNSET,
    enabled: bool | UnsetType = UNSET,
    workspace_ids: Sequence[str] | UnsetType = UNSET,
    ignore_client_ids: Sequence[str] | UnsetType = UNSET,
    coalesce: bool | UnsetType = UNSET,
    in_order: bool | UnsetType = UNSET,
    batch_entries: bool | UnsetType = UNSET,
    if_match: str | None = None,
    client_id: str | None = None,
) -> Request[Webhook]:
    """Change what is given of a webhook; lists are replaced."""
    return Request(
        operation=operations.UPDATE_WEBHOOK,
        read=_WEBHOOK,
        names={"webhook": webhook},
        body=members(
            url=url,
            label=label,
            dataEvents=data_events,
            headers=headers_sent,
            oauthConnection=oauth_connection,
            signingSecret=signing_secret,
            enabled=enabled,
            workspaceIds=workspace_ids,
            ignoreClientIds=ignore_client_ids,
            coalesce=coalesce,
            inOrder=in_order,
            batchEntries=batch_entries,
        ),
        headers=headers(if_match=if_match, client_id=client_id),
    )


def delete_webhook(webhook: str, *, if_match: str | None = None, client_id: str | None = None) -> Request[Webhook]:
    """Remove a webhook with what waits for it; answers what it was."""
    return Request(
        operation=operations.DELETE_WEBHOOK,
        read=_WEBHOOK,
        names={"webhook": webhook},
        headers=headers(if_match=if_match, client_id=client_id),
    )


def rotate_webhook_secret(
    webhook: str,
    *,
    grace_period_seconds: int | None = None,
    idempotency_key: str | None = None,
    client_id: str | None = None,
) -> Request[Webhook]:
    """A new signing secret, which the answer holds; the old one goes on signing, for a day unless told otherwise."""
    body = None if grace_period_seconds is None else members(gracePeriodSeconds=grace_period_seconds)
    return Request(
        operation=operations.ROTATE_SECRET,
        read=_WEBHOOK,
        names={"webhook": webhook},
        body=body,
        headers=headers(idempotency_key=idempotency_key, client_id=client_id),
    )


def list_event_types() -> Request[tuple[EventType, ...]]:
    """Every event there is, with the schema of what is sent."""
    return Request(operation=operations.LIST_EVENT_TYPES, read=_EVENT_TYPES)
