"""What the rules hand to the store, and the store to everybody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuth:
    """Client credentials: how to get the token that deliveries carry (contract H5)."""

    token_url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str = ""
    audience: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What its owner decides about a webhook (contract H1). ``headers`` are ``Name: value`` texts.

    ``in_order``: first attempts go one at a time, in the order of the events. ``batch_entries``: events of entries share
    requests, which also keeps the order.
    """

    url: str
    label: str
    data_events: tuple[str, ...] = ("*",)
    headers: tuple[str, ...] = field(default=(), repr=False)
    oauth: OAuth | None = None
    enabled: bool = True
    workspace_ids: tuple[str, ...] = ()
    ignore_client_ids: tuple[str, ...] = ()
    coalesce: bool = False
    in_order: bool = False
    batch_entries: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWebhook:
    """A checked create body."""

    id: str | None
    definition: Definition
    secret: str | None = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookChanges:
    """A checked update body: the members of `Definition` that were given, and a secret of the caller's own.

    ``oauth``, where given, is a `GivenOAuth` or None; ``label`` None stands for the default.
    """

    given: Mapping[str, Any] = field(repr=False)
    secret: str | None = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenOAuth:
    """An oauthConnection as it was sent; ``client_secret`` None: keep the stored one."""

    token_url: str
    client_id: str
    client_secret: str | None = field(repr=False)
    scope: str
    audience: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredWebhook:
    """A webhook's row, opened. Instants are milliseconds since 1970."""

    number: int
    id: str
    owner: str
    definition: Definition
    secret: str = field(repr=False)
    disabled_reason: str
    version: int
    created_at: int
    updated_at: int
    created_by: str
    updated_by: str
