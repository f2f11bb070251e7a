"""Workspaces."""

from __future__ import annotations

from datetime import datetime

from ingestd.client.records.base import Versioned


class Workspace(Versioned, frozen=True, kw_only=True):
    """A workspace with the ids of everything it holds."""

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
