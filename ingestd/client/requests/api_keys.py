"""API keys (contract A2, A3, A4, A5); for who has the scope ``admin``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from msgspec import UNSET, UnsetType

from ingestd.client import operations
from ingestd.client.paging import Listing
from ingestd.client.reading import many, one
from ingestd.client.records import ApiKey, IssuedApiKey
from ingestd.client.request import Request
from ingestd.client.requests.building import SortOrder, headers, members, query

_KEY = one(ApiKey)
_KEYS = many(ApiKey)
_ISSUED = one(IssuedApiKey)


def list_api_keys(
    *,
    take: int | None = None,
    skip: int | None = None,
    sort_order: SortOrder | None = None,
    sorted_by: str | None = None,
) -> Request[tuple[ApiKey, ...]]:
    """Every key, oldest first, the revoked ones too; or a stretch of them."""
    return Request(
        operation=operations.LIST_API_KEYS,
        read=_KEYS,
        query=query(take=take, skip=skip, sortOrder=sort_order, sortedBy=sorted_by),
    )


def iter_api_keys(
    *, sort_order: SortOrder | None = None, sorted_by: str | None = None, page_length: int = 200
) -> Listing[ApiKey]:
    """The same, asked for page by page."""
    whole = list_api_keys(sort_order=sort_order, sorted_by=sorted_by)
    return Listing(whole=whole, page_length=page_length, identity=lambda key: key.id)


def get_api_key(key: str) -> Request[ApiKey]:
    """One key by its id, which is not the key."""
    return Request(operation=operations.GET_API_KEY, read=_KEY, names={"key": key})


def create_api_key(
    name: str,
    *,
    role: str,
    workspace_id: str | UnsetType = UNSET,
    scopes: Sequence[str] | UnsetType = UNSET,
    expires_at: datetime | Literal["never"] | UnsetType = UNSET,
    guest: bool | UnsetType = UNSET,
    idempotency_key: str | None = None,
    client_id: str | None = None,
) -> Request[IssuedApiKey]:
    """A new key, which only this answer holds; on all workspaces where none is named, for a year where nothing is said."""
    return Request(
        operation=operations.CREATE_API_KEY,
        read=_ISSUED,
        body=members(name=name, role=role, workspaceId=workspace_id, scopes=scopes, expiresAt=expires_at, guest=guest),
        headers=headers(idempotency_key=idempotency_key, client_id=client_id),
    )


def rotate_api_key(
    key: str,
    *,
    grace_period_seconds: int | None = None,
    idempotency_key: str | None = None,
    client_id: str | None = None,
) -> Request[IssuedApiKey]:
    """A new secret under the same id, which only this answer holds; the old one holds for a day unless told otherwise."""
    body = None if grace_period_seconds is None else members(gracePeriodSeconds=grace_period_seconds)
    return Request(
        operation=operations.ROTATE_API_KEY,
        read=_ISSUED,
        names={"key": key},
        body=body,
        headers=headers(idempotency_key=idempotency_key, client_id=client_id),
    )


def revoke_api_key(key: str, *, client_id: str | None = None) -> Request[ApiKey]:
    """End a key and every secret of it."""
    return Request(
        operation=operations.REVOKE_API_KEY, read=_KEY, names={"key": key}, headers=headers(client_id=client_id)
    )
