"""The 32 rows of the interface document: the request, and the type of the response from the document's tables.

The types contain only what the tables and conventions of the document say, as in a minimal client. They are strict: each listed
member is required, and null only if the table says optional. Unlisted members are ignored, as JSON decoders do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Final, TypeAlias

from msgspec import Meta, Struct

from tests.support.sample_workspace import RECEIVER

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


NO_CONTENT: Final = None
_SINKS = "/v1/workspace/{workspace}/data-sink"
_BLOCKS = "/v1/workspace/{workspace}/blocks"
_FILES = "/v1/cloud-storage"
_ICON = {"source": "DevIcon", "name": "python", "color": "#fff", "metadata": {"size": 1.5}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """An operation. ``path``, ``json``, ``query``: with placeholders for ids of a `SampleWorkspace`; ``shape`` None: no body."""

    id: str
    method: str
    path: str
    shape: Any
    status: int = 200
    json: Any = None
    query: dict[str, str] = field(default_factory=dict)


ROWS: Final = (
    Row(id="DS1", method="GET", path=f"{_SINKS}/{{sink}}", shape=Sink),
    Row(id="DS2", method="GET", path=_SINKS, shape=list[Sink]),
    Row(id="DS3", method="GET", path=f"{_SINKS}/list", shape=list[SinkWithoutEntries]),
    Row(id="DS4", method="GET", path=f"{_SINKS}/{{sink}}/{{key}}", shape=Entry),
    Row(
        id="DS5",
        method="POST",
        path=_SINKS,
        json={
            "label": "Loads",
            "description": "x",
            "tags": "a,b",
            "icon": _ICON,
            "entries": [{"key": "f", "dataType": "scalar"}],
        },
        status=201,
        shape=Sink,
    ),
    Row(id="DS6", method="PATCH", path=f"{_SINKS}/{{sink}}", json={"label": "New", "icon": _ICON}, shape=NO_CONTENT),
    Row(id="DS7", method="DELETE", path=f"{_SINKS}/{{sink}}", shape=NO_CONTENT),
    Row(
        id="DS8",
        method="POST",
        path=f"{_SINKS}/{{sink}}",
        json={"key": "fin.mass", "dataType": "scalar", "value": "3"},
        status=201,
        shape=Entry,
    ),
    Row(id="DS9", method="PATCH", path=f"{_SINKS}/{{sink}}/{{key}}", json={"value": "16 kg"}, shape=Entry),
    Row(id="DS10", method="DELETE", path=f"{_SINKS}/{{sink}}/{{key}}", shape=NO_CONTENT),
    Row(
        id="DS11",
        method="POST",
        path=f"{_SINKS}/{{sink}}/mass",
        json={"key": "mass", "value": "15 kg"},
        shape=Entry,
    ),
    Row(id="BL1", method="GET", path=_BLOCKS, shape=list[Block]),
    Row(
        id="BL2",
        method="POST",
        path=_BLOCKS,
        json={"workspace": "{workspace}", "propertyGroups": "one", "instances": "two", "multiplicity": 2.5},
        status=201,
        shape=Block,
    ),
    Row(id="BL3", method="GET", path=f"{_BLOCKS}/{{block}}", shape=Block),
    Row(id="BL4", method="DELETE", path=f"{_BLOCKS}/{{block}}", shape=Block),
    Row(id="BL5", method="PATCH", path=f"{_BLOCKS}/{{block}}", json={"type": ["part"]}, shape=BlockTypes),
    Row(id="WS1", method="GET", path="/v1/workspace", shape=list[Workspace]),
    Row(id="WS2", method="POST", path="/v1/workspace", json={"label": "Lander"}, status=201, shape=Workspace),
    Row(id="WS3", method="GET", path="/v1/workspace/{workspace}", shape=Workspace),
    Row(id="WS4", method="DELETE", path="/v1/workspace/{workspace}", shape=Workspace),
    Row(
        id="WS5",
        method="PATCH",
        path="/v1/workspace/{workspace}",
        json={"label": "Lander", "rootBlock": {"id": "{block}"}},
        shape=Workspace,
    ),
    Row(id="CS1", method="DELETE", path=f"{_FILES}/{{file}}", query={"workspaceId": "{workspace}"}, shape=NO_CONTENT),
    Row(id="CS2", method="PATCH", path=f"{_FILES}/{{file}}", json={}, shape=NO_CONTENT),
    Row(id="CS3", method="GET", path=f"{_FILES}/metadata/{{file}}", shape=Object),
    Row(id="CS4", method="PUT", path=f"{_FILES}/metadata/{{file}}", json={"alloy": "6061"}, shape=NO_CONTENT),
    Row(id="CS5", method="POST", path=f"{_FILES}/retry-conversion/{{file}}", shape=NO_CONTENT),
    Row(id="WH1", method="GET", path="/v1/webhooks", shape=list[Webhook]),
    Row(id="WH2", method="POST", path="/v1/webhooks", json={"url": RECEIVER}, status=201, shape=NO_CONTENT),
    Row(id="WH3", method="GET", path="/v1/webhooks/{webhook}", shape=Webhook),
    Row(id="WH4", method="DELETE", path="/v1/webhooks/{webhook}", shape=Webhook),
    Row(id="WH5", method="PATCH", path="/v1/webhooks/{webhook}", json={"label": "New"}, shape=Webhook),
    Row(id="WH6", method="POST", path="/v1/webhooks/{webhook}/rotate-secret", shape=Webhook),
)
