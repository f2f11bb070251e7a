"""Events of blocks and workspaces, stored with the change (contract BL2, BL4, BL5, WS2, WS4, WS5, H7)."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import httpx
import pytest

from tests.support.database_client import DatabaseClient
from workspaced.security.egress.rules import EgressRules
from workspaced.settings.model import WorkspacedSettings


@pytest.fixture
def settings(settings: WorkspacedSettings) -> WorkspacedSettings:
    """Permit webhooks to this machine, where no server listens."""
    return dataclasses.replace(settings, egress=EgressRules.from_environment({}, dev=True))


@pytest.fixture
async def everything(http: httpx.AsyncClient) -> None:
    """Subscribe a webhook to all events."""
    made = await http.post("/v1/webhooks", json={"url": "http://127.0.0.1:1024/"})
    assert made.status_code == 201, made.text


def _events(settings: WorkspacedSettings) -> list[dict[str, Any]]:
    return [
        json.loads(row[0])
        for row in DatabaseClient(settings.database).execute("SELECT body FROM event ORDER BY number")
    ]


def _brief(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(event["type"], event["data"]["object"]["id"]) for event in events]


@pytest.mark.usefixtures("everything")
async def test_a_new_workspace_emits_events_for_itself_and_its_root_block(
    http: httpx.AsyncClient, settings: WorkspacedSettings
) -> None:
    # contract W3
    made = (await http.post("/v1/workspace", json={"label": "Rocket"})).json()
    events = _events(settings)
    assert _brief(events) == [("workspace.created", made["id"]), ("block.created", made["rootBlock"])]
    assert events[0]["data"]["object"] == made
    assert [event["sequence"] for event in events] == [1, 2]
    assert {(event["workspaceId"], event["clientId"], event["actor"]) for event in events} == {
        (made["id"], "tests", "svc:test")
    }


@pytest.mark.usefixtures("everything")
async def test_created_changed_and_deleted_blocks_emit_events(
    http: httpx.AsyncClient, settings: WorkspacedSettings
) -> None:
    # contract B6
    workspace = (await http.post("/v1/workspace", json={"label": "Rocket"})).json()
    blocks = f"/v1/workspace/{workspace['id']}/blocks"
    made = [(await http.post(blocks, json={"workspace": workspace["id"], "label": name})).json() for name in "ab"]
    one, two = made
    await http.patch(f"{blocks}/{two['id']}", json={"label": "c", "parentBlock": one["id"]})
    await http.patch(f"{blocks}/{two['id']}", json={"label": "c", "parentBlock": one["id"]})
    refused = await http.patch(f"{blocks}/{one['id']}", json={"label": "x", "parentBlock": two["id"]})
    assert refused.status_code == 422
    before = [(await http.get(f"{blocks}/{block['id']}")).json() for block in (two, one)]
    await http.delete(f"{blocks}/{one['id']}?force=true")
    events = _events(settings)[2:]
    assert _brief(events) == [
        ("block.created", one["id"]),
        ("block.created", two["id"]),
        ("block.updated", two["id"]),
        ("block.deleted", two["id"]),
        ("block.deleted", one["id"]),
    ]
    assert [event["data"]["object"] for event in events[:2]] == made
    assert events[2]["data"]["previous"] == {
        "label": "b",
        "parentBlock": workspace["rootBlock"],
        "orderIndex": 1,
        "path": two["path"],
    }
    assert [event["data"]["object"] for event in events[3:]] == before


@pytest.mark.usefixtures("everything")
async def test_a_changed_and_a_deleted_workspace_emit_events(
    http: httpx.AsyncClient, settings: WorkspacedSettings
) -> None:
    # contract W6
    workspace = (await http.post("/v1/workspace", json={"label": "Rocket"})).json()
    path = f"/v1/workspace/{workspace['id']}"
    block = (await http.post(f"{path}/blocks", json={"workspace": workspace["id"]})).json()["id"]
    await http.patch(path, json={"label": "Rocket", "rootBlock": {"label": "Rocket"}})
    await http.patch(path, json={"label": "Probe", "rootBlock": block})
    last = (await http.get(path)).json()
    await http.delete(path)
    events = _events(settings)[3:]
    assert _brief(events) == [
        ("block.updated", block),
        ("block.updated", workspace["rootBlock"]),
        ("workspace.updated", workspace["id"]),
        ("workspace.deleted", workspace["id"]),
    ]
    assert events[0]["data"]["previous"]["parentBlock"] == workspace["rootBlock"]
    assert events[2]["data"]["previous"] == {"label": "Rocket", "rootBlock": workspace["rootBlock"]}
    assert events[2]["data"]["object"] == last
    assert events[3]["data"]["object"] == last
