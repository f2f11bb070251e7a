"""Blocks."""

from __future__ import annotations

from datetime import datetime

from ingestd.client.records.base import Number, Record, Versioned


class Block(Versioned, frozen=True, kw_only=True):
    """A block; ``parent_block`` of the root is empty, ``path`` goes from the root to the block itself."""

    id: str
    label: str
    description: str
    parent_block: str
    multiplicity: Number
    children: tuple[str, ...]
    pdm_enabled: bool
    property_groups: tuple[str, ...]
    preview_custom_link: str
    preview_source: str
    figures: tuple[str, ...]
    icon: str
    interfaces: tuple[str, ...]
    attachments: tuple[str, ...]
    external_links: tuple[str, ...]
    pdm_thumbnail: str
    block_statuses: tuple[str, ...]
    order_index: Number
    path: str
    type: tuple[str, ...]
    part_number: str | None = None
    instances: tuple[str, ...] | None = None
    workspace: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    created_by: str | None = None
    updated_by: str | None = None


class BlockTypes(Record, frozen=True, kw_only=True):
    """What the document answers to an update of a block."""

    type: tuple[str, ...]
