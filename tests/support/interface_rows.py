"""The 32 rows of the interface document: the request, and the response by its table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from tests.support.interface_records import (
    Block,
    BlockTypes,
    Entry,
    Object,
    Sink,
    SinkWithoutEntries,
    Webhook,
    Workspace,
)
from tests.support.sample_workspace import RECEIVER

NO_CONTENT: Final = None
_SINKS = "/v1/workspace/{workspace}/data-sink"
_BLOCKS = "/v1/workspace/{workspace}/blocks"
_FILES = "/v1/cloud-storage"
_ICON = {"source": "DevIcon", "name": "python", "color": "#fff", "metadata": {"size": 1.5}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """``path``, ``json`` and ``query`` have placeholders for ids of a `SampleWorkspace`; ``shape`` None: no bytes."""

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
