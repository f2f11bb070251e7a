"""Optional parameters that several methods of the clients have."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, TypeAlias, TypedDict

from msgspec import UnsetType

from ingestd.client.records import Number, OAuthConnection

SortOrder: TypeAlias = Literal["ASC", "DESC"]


class ListOptions(TypedDict, total=False):
    """Parameters of a method that returns a list, or a part of it."""

    sort_order: SortOrder | None
    sorted_by: str | None
    take: int | None
    skip: int | None


class WriteOptions(TypedDict, total=False):
    """Headers of writes.

    ``idempotency_key`` is for requests that create or send, ``if_match`` for requests that change a record.
    """

    client_id: str | None
    idempotency_key: str | None
    if_match: str | None


class MassEntryOptions(WriteOptions, total=False):
    """Options of `mass_update_entry`. If ``observed_at`` is before the stored time, the entry is not changed."""

    data_type: str | UnsetType
    observed_at: datetime | UnsetType


class BlockMembers(WriteOptions, total=False):
    """The members of a block that can be set at its creation and changed later."""

    label: str | UnsetType
    description: str | UnsetType
    part_number: str | UnsetType
    parent_block: str | UnsetType | None
    multiplicity: Number | UnsetType
    pdm_enabled: bool | UnsetType
    property_groups: Sequence[str] | UnsetType
    instances: Sequence[str] | UnsetType
    preview_custom_link: str | UnsetType
    preview_source: str | UnsetType
    figures: Sequence[str] | UnsetType
    icon: str | UnsetType
    type: Sequence[str] | UnsetType
    attachments: Sequence[str] | UnsetType
    external_links: Sequence[str] | UnsetType
    pdm_thumbnail: str | UnsetType
    block_statuses: Sequence[str] | UnsetType


class WebhookMembers(WriteOptions, total=False):
    """The members of a webhook that can be set at its creation and changed later.

    ``headers``: the headers of each delivery, as ``Name: value``. ``data_events``: names, ``*`` or ``prefix.*``.
    """

    label: str | UnsetType | None
    data_events: Sequence[str] | UnsetType
    headers: Sequence[str] | UnsetType
    oauth_connection: OAuthConnection | UnsetType | None
    signing_secret: str | UnsetType
    enabled: bool | UnsetType
    workspace_ids: Sequence[str] | UnsetType
    ignore_client_ids: Sequence[str] | UnsetType
    coalesce: bool | UnsetType
    in_order: bool | UnsetType
    batch_entries: bool | UnsetType
