"""Workspaces and their blocks."""

from __future__ import annotations

from datetime import datetime

from ingestd.client.records.base import Number, Record, Versioned


class Workspace(Versioned, frozen=True, kw_only=True):
    """A workspace with the ids of everything in it."""

    id: str
    label: str
    root_block: str
    created_at: datetime
    updated_at: datetime
    created_by: str
    blocks: tuple[str, ...]
    property_definitions: tuple[str, ...]
    property_instances: tuple[str, ...]
    attachments: tuple[str, ...]
    status_definitions: tuple[str, ...]
    status_instances: tuple[str, ...]
    status_options: tuple[str, ...]
    requirements_pages: tuple[str, ...]
    requirement_blocks: tuple[str, ...]
    reports: tuple[str, ...]
    report_blocks: tuple[str, ...]
    attributes: tuple[str, ...]
    interfaces: tuple[str, ...]
    bom_tables: tuple[str, ...]
    bom_columns: tuple[str, ...]
    code_blocks: tuple[str, ...]
    code_inputs: tuple[str, ...]
    code_outputs: tuple[str, ...]
    public_can_read_enabled: bool | None = None
    current_workspace_version: str | None = None
    exports_enabled: bool | None = None
    guests_enabled: bool | None = None
    statuses: tuple[str, ...] | None = None


class Block(Versioned, frozen=True, kw_only=True):
    """A block. ``parent_block`` of the root is empty. ``path``: from the root to the block itself."""

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
    """The response of the interface document to an update of a block."""

    type: tuple[str, ...]
