"""Operations (contract WH1, WH2, WH3, WH4, WH5, WH6), and what callers may read of a webhook."""

from __future__ import annotations

import base64
import dataclasses
import os
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from msgspec import UNSET
from structlog.testing import capture_logs

from ingestd.client import AsyncClient
from ingestd.client.errors import NotFound
from tests.support.api_client import api_client
from tests.support.json_schema import fits
from workspaced.app import running
from workspaced.settings.model import Limits, WorkspacedSettings
from workspaced.storage.factory import transact

_ID = "123e4567-e89b-12d3-a456-426614174000"
_URL = "https://hooks.example/in"
_SECRET = re.compile(r"whsec_[A-Za-z0-9+/]{43}=")
_MASKED = re.compile(r"whsec_….{4}")


async def _create(http: httpx.AsyncClient, **members: Any) -> str:
    """Return the path of a new webhook."""
    response = await http.post("/v1/webhooks", json={"url": _URL, **members})
    assert response.status_code == 201, response.text
    return response.headers["Location"]


def _as(key: str) -> dict[str, str]:
    return {"x-api-key": key}


async def test_a_webhook_is_created_with_an_empty_response_and_read_with_every_field(
    http: httpx.AsyncClient,
) -> None:
    # contract G4, G11, G36
    created = await http.post("/v1/webhooks", json={"id": _ID, "url": _URL})
    assert (created.status_code, created.content) == (201, b"")
    assert "Content-Type" not in created.headers
    assert created.headers["Location"] == f"/v1/webhooks/{_ID}"
    read = await http.get(created.headers["Location"])
    record = read.json()
    assert (read.headers["ETag"], read.headers["Cache-Control"]) == ('"1"', "no-store")
    assert _SECRET.fullmatch(record.pop("signingSecret"))
    assert record.pop("createdAt") == record.pop("updatedAt")
    assert record == {
        "id": _ID,
        "label": "hooks.example",
        "url": _URL,
        "headers": [],
        "dataEvents": ["*"],
        "oauthConnection": {},
        "createdBy": "svc:test",
        "updatedBy": "svc:test",
        "enabled": True,
        "disabledReason": "",
        "workspaceIds": [],
        "ignoreClientIds": [],
        "coalesce": False,
        "inOrder": False,
        "batchEntries": False,
        "unknownDataEvents": [],
    }


async def test_every_readable_member_can_be_set(http: httpx.AsyncClient) -> None:
    # contract H1
    given = {
        "label": "Line 4",
        "url": "https://hooks.example:8443/in?a=%2F",
        "signingSecret": "whsec_" + base64.b64encode(os.urandom(24)).decode(),
        "headers": ["X-Tenant: 7"],
        "dataEvents": ["data_sink.*", "block.moved"],
        "enabled": False,
        "workspaceIds": [_ID],
        "ignoreClientIds": ["tab-1"],
        "coalesce": True,
        "inOrder": True,
        "batchEntries": True,
    }
    oauth = {"tokenUrl": "https://id.example/token", "clientId": "c", "clientSecret": "hidden", "scope": "a b"}
    path = await _create(http, **given, oauthConnection=oauth)
    read = await http.get(path)
    assert {name: read.json()[name] for name in given} == given
    assert read.json()["unknownDataEvents"] == ["block.moved"]
    assert read.json()["oauthConnection"] == {name: oauth[name] for name in ("tokenUrl", "clientId", "scope")}
    assert "hidden" not in read.text
    other = await _create(http)
    updated = await http.patch(other, json=given)
    assert updated.status_code == 200
    assert {name: updated.json()[name] for name in given} == given, "an update sets the same members as a creation"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "required"),
        ({"url": 7}, 400, "wrong_type"),
        ({"url": _URL, "headers": ["Host: x"]}, 400, "bad_header"),
        ({"url": "http://hooks.example/"}, 422, "unsafe_url"),
        ({"url": "https://169.254.169.254/"}, 422, "unsafe_url"),
        ({"url": "https://hooks.internal/"}, 422, "unsafe_url"),
    ],
)
async def test_an_invalid_webhook_is_rejected(http: httpx.AsyncClient, body: object, status: int, code: str) -> None:
    for method, path in (("POST", "/v1/webhooks"), ("PATCH", await _create(http))):
        response = await http.request(method, path, json=body)
        if method == "PATCH" and body == {}:
            assert response.status_code == 200
            continue
        assert (response.status_code, response.json()["code"]) == (status, code)
        assert isinstance(response.json()["error"], str)
    assert len((await http.get("/v1/webhooks")).json()) == 1


@pytest.mark.both_databases
async def test_an_id_is_used_once_and_the_number_of_webhooks_of_an_owner_is_limited(
    settings: WorkspacedSettings, make_key: Callable[..., str]
) -> None:
    # contract G2
    small = dataclasses.replace(settings, limits=Limits(webhooks_per_owner=2))
    async with running(small) as app, api_client(app, make_key()) as http:
        await _create(http, id=_ID)
        taken = await http.post("/v1/webhooks", json={"url": _URL, "id": _ID.upper()})
        assert (taken.status_code, taken.json()["code"]) == (409, "id_in_use")
        await _create(http)
        full = await http.post("/v1/webhooks", json={"url": _URL})
        assert (full.status_code, full.json()["code"]) == (409, "quota_exceeded")
        await http.post("/v1/webhooks", json={"url": _URL}, headers=_as(make_key(name="other")))
        await http.delete(f"/v1/webhooks/{_ID}")
        await _create(http, id=_ID)


async def test_a_repeated_rotation_returns_the_same_secret_and_it_is_not_stored_in_plain_text(
    settings: WorkspacedSettings, make_key: Callable[..., str]
) -> None:
    # contract H3
    sealed = dataclasses.replace(settings, encryption_key=os.urandom(32))
    async with running(sealed) as app, api_client(app, make_key()) as http:
        path = await _create(http, headers=["Authorization: Bearer very-hidden"])
        headers = {"Idempotency-Key": "k"}
        first = await http.post(f"{path}/rotate-secret", headers=headers)
        again = await http.post(f"{path}/rotate-secret", headers=headers)
        assert (again.headers["Idempotent-Replayed"], again.json()) == ("true", first.json())
        read = (await http.get(path)).json()
        assert read == first.json()
    stored = b"".join(file.read_bytes() for file in settings.data.iterdir() if file.is_file())
    assert read["signingSecret"].encode() not in stored
    assert b"very-hidden" not in stored


@pytest.mark.both_databases
async def test_without_an_encryption_key_the_log_warns_and_a_later_key_encrypts_the_secrets(
    settings: WorkspacedSettings, make_key: Callable[..., str]
) -> None:
    # contract H3
    key = make_key()
    with capture_logs() as lines:
        async with running(settings) as app, api_client(app, key) as http:
            path = await _create(http)
            secret = (await http.get(path)).json()["signingSecret"]
    assert [line["log_level"] for line in lines if line["event"] == "secrets_stored_plainly"] == ["warning"]
    assert secret not in str(lines)
    sealing = dataclasses.replace(settings, encryption_key=os.urandom(32))
    async with running(sealing) as app, api_client(app, key) as http:
        assert (await http.get(path)).json()["signingSecret"] == secret
    kept = transact(settings.database, lambda tx: tx.all("SELECT secret FROM webhook_secret"))
    assert len(kept) == 1
    assert secret.encode() not in kept[0][0]


async def test_a_patch_merges_and_replaces_arrays(http: httpx.AsyncClient) -> None:
    # contract H1
    path = await _create(http, label="a", dataEvents=["block.*"], headers=["X: 1"])
    before = (await http.get(path)).json()
    changed = await http.patch(path, json={"label": "b", "headers": "Y: 2", "createdAt": "x", "id": _ID})
    assert changed.status_code == 200
    after = changed.json()
    assert (after["label"], after["headers"], after["dataEvents"], after["id"]) == (
        "b",
        ["Y: 2"],
        ["block.*"],
        before["id"],
    )
    assert (after["signingSecret"], changed.headers["ETag"]) == (before["signingSecret"], '"2"')
    assert changed.headers["X-Ignored-Fields"] == "createdAt"
    unset = (await http.patch(path, json={"label": None, "headers": None, "dataEvents": None})).json()
    assert (unset["label"], unset["headers"], unset["dataEvents"]) == ("hooks.example", [], ["*"])
    assert (await http.patch(path, json={"dataEvents": []})).json()["dataEvents"] == []
    unchanged = await http.patch(path, json={})
    assert unchanged.headers["ETag"] == (await http.get(path)).headers["ETag"] == '"4"'


async def test_the_client_secret_is_write_only_and_kept_by_a_patch_without_it(http: httpx.AsyncClient) -> None:
    # contract H5
    oauth = {"tokenUrl": "https://id.example/token", "clientId": "c", "clientSecret": "hidden"}
    path = await _create(http, oauthConnection=oauth)
    shown = (await http.get(path)).json()["oauthConnection"]
    assert shown == {"tokenUrl": oauth["tokenUrl"], "clientId": "c"}
    assert (await http.patch(path, json={"oauthConnection": {**shown, "scope": "s"}})).status_code == 200
    moved = {**shown, "tokenUrl": "https://elsewhere.example/"}
    refused = await http.patch(path, json={"oauthConnection": moved})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "/oauthConnection/clientSecret")
    assert (await http.patch(path, json={"oauthConnection": {}})).json()["oauthConnection"] == {}
    assert (await http.patch(path, json={"oauthConnection": shown})).status_code == 400


async def test_deleting_a_webhook_returns_it(client: AsyncClient) -> None:
    webhook_id = await client.create_webhook(_URL) or ""
    record = await client.get_webhook(webhook_id)
    assert await client.delete_webhook(webhook_id) == record
    for call in (
        client.get_webhook(webhook_id),
        client.delete_webhook(webhook_id),
        client.update_webhook(webhook_id),
        client.rotate_webhook_secret(webhook_id),
        client.get_webhook("not-a-uuid"),
    ):
        with pytest.raises(NotFound) as absent:
            await call
        assert absent.value.code == "webhook_not_found"


async def test_each_rotation_returns_a_new_secret(client: AsyncClient) -> None:
    # contract H10
    webhook_id = await client.create_webhook(_URL) or ""
    seen = {(await client.get_webhook(webhook_id)).signing_secret}
    for seconds in (UNSET, 0, 604_800):
        rotated = await client.rotate_webhook_secret(webhook_id, grace_period_seconds=seconds)
        assert _SECRET.fullmatch(rotated.signing_secret)
        assert rotated == await client.get_webhook(webhook_id)
        seen.add(rotated.signing_secret)
    assert len(seen) == 4


async def test_a_rotation_with_an_empty_object_equals_one_without_a_body(http: httpx.AsyncClient) -> None:
    path = await _create(http)
    assert (await http.post(f"{path}/rotate-secret", json={})).status_code == 200


@pytest.fixture
async def many(http: httpx.AsyncClient) -> httpx.AsyncClient:
    for number in range(12):
        await _create(http, label=f"Line {number:02}", url=f"https://h{11 - number:02}.example/100%_x")
    return http


async def _labels(http: httpx.AsyncClient, query: str) -> list[str]:
    response = await http.get(f"/v1/webhooks{query}")
    assert response.status_code == 200, response.text
    return [record["label"][-2:] for record in response.json()]


async def test_a_list_has_ten_webhooks_the_newest_first_and_is_paged(many: httpx.AsyncClient) -> None:
    # contract G19, H16
    first = await many.get("/v1/webhooks")
    assert len(first.json()) == 10
    assert first.headers["X-Total-Count"] == "12"
    assert 'rel="next"' in first.headers["Link"]
    stamps = [record["createdAt"] for record in first.json()]
    assert stamps == sorted(stamps, reverse=True)
    assert len(await _labels(many, "?skip=10")) == 2
    assert await _labels(many, "?sortedBy=label&sortOrder=asc&take=3&skip=1") == ["01", "02", "03"]
    assert await _labels(many, "?sortedBy=url&sortOrder=ASC&take=2") == ["11", "10"]
    assert await _labels(many, "?sortedBy=label&take=2") == ["11", "10"]


async def test_a_list_is_sorted_by_author_and_last_editor(
    http: httpx.AsyncClient, make_key: Callable[..., str]
) -> None:
    for name in ("svc:b", "svc:a", "svc:c"):
        made = await http.post(
            "/v1/webhooks", json={"url": "https://h.example/"}, headers={"x-api-key": make_key(name)}
        )
        assert made.status_code == 201, made.text
    for member in ("createdBy", "updatedBy"):
        listed = await http.get(f"/v1/webhooks?sortedBy={member}&sortOrder=ASC")
        assert listed.status_code == 200, listed.text
        assert [record[member] for record in listed.json()] == ["svc:a", "svc:b", "svc:c"]


async def test_a_search_is_compared_in_the_unicode_form_of_labels(http: httpx.AsyncClient) -> None:
    # contract G7, H16
    await _create(http, label="M\u00fcller")
    assert await _labels(http, "?search=mu%CC%88ller") == ["er"]


async def test_a_search_matches_a_part_of_label_or_url_literally_and_ignores_case(
    many: httpx.AsyncClient,
) -> None:
    # contract H16
    assert await _labels(many, "?search=lInE%2004") == ["04"]
    assert await _labels(many, "?search=H04.EXAMPLE") == ["07"]
    assert len(await _labels(many, "?search=100%25_")) == 10
    assert await _labels(many, "?search=%25x") == []
    assert await _labels(many, "?search=_%25") == []
    assert len(await _labels(many, "?search=")) == 10


async def test_a_query_out_of_range_is_400_and_not_limited(http: httpx.AsyncClient) -> None:
    # contract G19
    for query in ("take=0", "take=1001", "take=x", "skip=-1", "sortOrder=UP", "sortedBy=secret", "take=1.0"):
        assert (await http.get(f"/v1/webhooks?{query}")).status_code == 400, query


async def test_a_webhook_belongs_to_its_owner_and_admins_see_a_part(
    http: httpx.AsyncClient, workspace: dict[str, Any], make_key: Callable[..., str]
) -> None:
    # contract H2, H3
    mine, other = (make_key(name=name, role="editor", workspace_id=workspace["id"]) for name in ("mine", "other"))
    headers = ["Authorization: Bearer hidden"]
    response = await http.post("/v1/webhooks", json={"url": _URL, "headers": headers}, headers=_as(mine))
    path = response.headers["Location"]
    own = (await http.get(path, headers=_as(mine))).json()
    assert (own["createdBy"], own["headers"]) == ("mine", headers)
    assert _SECRET.fullmatch(own["signingSecret"])
    for method, target in (("GET", path), ("DELETE", path), ("PATCH", path), ("POST", f"{path}/rotate-secret")):
        refused = await http.request(method, target, json={} if method == "PATCH" else None, headers=_as(other))
        assert refused.status_code == 404
    assert (await http.get("/v1/webhooks", headers=_as(other))).json() == []
    seen = await http.get(path)
    assert (seen.json()["headers"], seen.status_code) == (["Authorization: …"], 200)
    assert _MASKED.fullmatch(seen.json()["signingSecret"])
    assert "hidden" not in seen.text
    assert [one["id"] for one in (await http.get("/v1/webhooks")).json()] == [own["id"]]


async def test_a_reader_sees_masked_webhooks_and_may_not_write(
    http: httpx.AsyncClient, workspace: dict[str, Any], make_key: Callable[..., str]
) -> None:
    path = await _create(http)
    reader = make_key(name="svc:reader", role="reader", workspace_id=workspace["id"])
    for method, target in (
        ("POST", "/v1/webhooks"),
        ("DELETE", path),
        ("PATCH", path),
        ("POST", f"{path}/rotate-secret"),
    ):
        assert (await http.request(method, target, json={}, headers=_as(reader))).status_code == 403
    assert (await http.get("/v1/webhooks", headers=_as(make_key(name="p", role="pusher")))).status_code == 403
    assert (await http.get("/v1/webhooks", headers=_as(reader))).json() == []


async def test_event_types_are_listed_with_usable_schemas(http: httpx.AsyncClient) -> None:
    # contract H6, WH7
    listed = (await http.get("/v1/webhooks/event-types")).json()
    schemas = {kind["type"]: kind["schema"] for kind in listed}
    assert len(schemas) == 20
    body = {
        "id": f"evt_{'0' * 32}",
        "type": "webhook.test",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "workspaceId": None,
        "clientId": None,
        "actor": "a",
        "sequence": 0,
        "data": {"object": {"webhookId": _ID}, "previous": {}},
    }
    assert fits(body, schemas["webhook.test"], schemas["webhook.test"])
    assert not fits({**body, "type": "block.created"}, schemas["webhook.test"], schemas["webhook.test"])
