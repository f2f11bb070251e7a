"""The records of the interface document, from its tables and conventions only, as a minimal client has them.

Types are strict. Every listed member is required, and null only if the table says optional. Unlisted members are ignored, as
JSON decoders do.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from msgspec import Meta, Struct

Uuid4: TypeAlias = Annotated[str, Meta(pattern="^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")]
Timestamp: TypeAlias = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")]
VisibleId: TypeAlias = Annotated[str, Meta(pattern=r"^.+-\d+$")]
Number: TypeAlias = int | float
Object: TypeAlias = dict[str, Any]


class Icon(Struct):
    source: str | None = None
    name: str | None = None
    color: str | None = None
    metadata: Object | None = None


class Entry(Struct, rename="camel"):
    id: Uuid4
    key: str
    data_sink_id: str
    value: str | None
    data_type: str
    created_at: Timestamp
    updated_at: Timestamp
    created_by: str
    updated_by: str


class SinkWithoutEntries(Struct, rename="camel"):
    id: Uuid4
    workspace_id: str
    label: str
    description: str | None
    tags: str | None
    icon: Icon | None
    visible_id: VisibleId
    serial: Number
    created_at: Timestamp
    updated_at: Timestamp
    created_by: str
    updated_by: str


class Sink(SinkWithoutEntries, rename="camel"):
    entries: list[Entry]


class Block(Struct, rename="camel"):
    id: str
    label: str
    description: str
    parent_block: str
    multiplicity: Number
    children: list[str]
    pdm_enabled: bool
    property_groups: list[str]
    preview_custom_link: str
    preview_source: str
    figures: list[str]
    icon: str
    interfaces: list[str]
    attachments: list[str]
    external_links: list[str]
    pdm_thumbnail: str
    block_statuses: list[str]
    order_index: Number
    path: str
    type: list[str]


class BlockTypes(Struct, forbid_unknown_fields=True):
    type: list[str]


class Workspace(Struct, rename="camel"):
    id: str
    label: str
    root_block: str
    created_at: Timestamp
    updated_at: Timestamp
    created_by: str
    blocks: list[str]
    property_definitions: list[str]
    property_instances: list[str]
    attachments: list[str]
    status_definitions: list[str]
    status_instances: list[str]
    status_options: list[str]
    requirements_pages: list[str]
    requirement_blocks: list[str]
    reports: list[str]
    report_blocks: list[str]
    attributes: list[str]
    interfaces: list[str]
    bom_tables: list[str]
    bom_columns: list[str]
    code_blocks: list[str]
    code_inputs: list[str]
    code_outputs: list[str]


class Webhook(Struct, rename="camel"):
    id: str
    label: str
    url: str
    signing_secret: str
    headers: list[str]
    data_events: list[str]
    oauth_connection: Object
    created_by: str
    created_at: Timestamp
    updated_at: Timestamp
