"""Details of the interface that no other test covers."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.support.database_client import DatabaseClient
from workspaced.app import running
from workspaced.settings.model import WorkspacedSettings

pytestmark = pytest.mark.sqlite

MakeKey = Callable[..., str]


async def test_ignored_names_are_bounded_and_have_their_location(http: httpx.AsyncClient, sinks: str) -> None:
    # contract G5
    inner = await http.post(sinks, json={"label": "a", "icon": {"name": "scale", "size": 1}})
    assert inner.headers["X-Ignored-Fields"] == "icon.size"
    many = await http.post(sinks, json={"label": "a", **{f"unknown{number}": 1 for number in range(30)}})
    assert (many.status_code, len(many.headers["X-Ignored-Fields"].split(","))) == (201, 20)


async def test_the_last_of_two_equal_members_counts(http: httpx.AsyncClient, sinks: str, sink: str) -> None:
    # contract G6
    created = await http.post(sinks, content=b'{"label":"first","label":"last"}')
    assert created.json()["label"] == "last"
    pushed = await http.post(f"{sink}/mass", content=b'{"key":"k","value":"first","value":"last"}')
    assert pushed.json()["value"] == "last"


@pytest.mark.parametrize("path", ["/v1/cloud-storage?fileName=caf%E9.csv&workspaceId=w", "/v1/workspace?filters=%ff"])
async def test_an_escape_of_the_query_that_is_not_utf_8_is_not_replaced(http: httpx.AsyncClient, path: str) -> None:
    # contract G7: the file would have another name than the caller gave it
    response = await http.request("POST" if "cloud-storage" in path else "GET", path)
    assert (response.status_code, response.json()["code"]) == (400, "bad_query")


async def test_responses_are_private_unless_the_operation_says_otherwise(http: httpx.AsyncClient, sink: str) -> None:
    # contract G36
    for path in (sink, f"{sink}/absent", "/v1/workspace", "/healthz"):
        assert (await http.get(path)).headers["Cache-Control"] == "private, no-cache"
    made = await http.post("/v1/api-keys", json={"name": "svc:other", "role": "reader"})
    assert made.headers["Cache-Control"] == "no-store"


async def test_responses_about_sinks_announce_gzip(http: httpx.AsyncClient, sink: str) -> None:
    # contract G32
    assert (await http.get(sink)).headers["Accept-Encoding"] == "gzip"
    assert "Accept-Encoding" not in (await http.get("/v1/workspace")).headers


async def test_a_rejection_before_the_body_is_read_is_not_stored(http: httpx.AsyncClient, sinks: str) -> None:
    # contract G18
    key = {"Idempotency-Key": "one"}
    body = json.dumps({"label": "a"})
    refused = [
        await http.post(sinks, content=body, headers={**key, "x-api-key": "wrong"}),
        await http.post(sinks, content=body, headers={**key, "Content-Type": "text/plain"}),
        await http.post(sinks, content=b" " * 16_777_217, headers=key),
    ]
    assert [response.status_code for response in refused] == [401, 415, 413]
    first = await http.post(sinks, content=body, headers=key)
    assert (first.status_code, "Idempotent-Replayed" in first.headers) == (201, False)


async def test_an_owner_of_one_workspace_cannot_create_another(
    http: httpx.AsyncClient, workspace: dict[str, Any], make_key: MakeKey
) -> None:
    # contract A5
    owner = {"x-api-key": make_key(name="svc:owner", role="owner", workspace_id=workspace["id"])}
    assert (await http.get(f"/v1/workspace/{workspace['id']}", headers=owner)).status_code == 200
    assert (await http.post("/v1/workspace", json={"label": "b"}, headers=owner)).status_code == 403


async def test_icons_are_text_if_configured(settings: WorkspacedSettings, make_key: MakeKey) -> None:
    # contract S3
    headers = {"x-api-key": make_key(), "ClientId": "tests"}
    async with (
        running(dataclasses.replace(settings, icon_as_text=True)) as app,
        httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://s", headers=headers) as http,
    ):
        workspace = (await http.post("/v1/workspace", json={"label": "w"})).json()["id"]
        body = {"label": "s", "icon": {"name": "scale", "color": "red"}}
        created = await http.post(f"/v1/workspace/{workspace}/data-sink", json=body)
        assert created.json()["icon"] == '{"name":"scale","color":"red"}'


async def test_a_sink_is_created_with_many_entries_and_one_event(
    http: httpx.AsyncClient, sinks: str, settings: WorkspacedSettings
) -> None:
    # contract S14
    await http.post("/v1/webhooks", json={"url": "https://hooks.example/", "dataEvents": ["data_sink.*"]})
    entries = [{"key": f"k{number}", "dataType": "scalar"} for number in range(5_001)]
    refused = await http.post(sinks, json={"label": "a", "entries": entries})
    assert (refused.status_code, refused.json()["code"]) == (400, "too_many_items")
    made = await http.post(sinks, json={"label": "a", "entries": entries[:-1]})
    assert (made.status_code, len(made.json()["entries"])) == (201, 5_000)
    assert [row[0] for row in DatabaseClient(settings.database).execute("SELECT type FROM event")] == [
        "data_sink.created"
    ]


async def test_another_signing_secret_in_an_update_is_a_rotation(
    http: httpx.AsyncClient, settings: WorkspacedSettings
) -> None:
    # contract H10
    webhook = (await http.post("/v1/webhooks", json={"url": "https://hooks.example/"})).headers["Location"]
    secret = f"whsec_{base64.b64encode(b'k' * 24).decode()}"
    assert (await http.patch(webhook, json={"signingSecret": secret})).json()["signingSecret"] == secret
    kept = DatabaseClient(settings.database).execute("SELECT valid_until IS NULL FROM webhook_secret ORDER BY number")
    assert [bool(row[0]) for row in kept] == [False, True]
    wrong = await http.patch(webhook, json={"signingSecret": "whsec_short"})
    assert (wrong.status_code, wrong.json()["code"]) == (400, "bad_secret")
