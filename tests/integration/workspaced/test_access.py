from __future__ import annotations

import asyncio
import dataclasses
import threading
import time
import uuid
from collections.abc import Callable
from itertools import count
from typing import Any

import httpx
import pytest

from workspaced.app import running
from workspaced.security import key_store as access
from workspaced.security.key_format import digest
from workspaced.settings.model import WorkspacedSettings
from workspaced.storage.factory import transact
from workspaced.storage.port import ReadTransaction


async def test_each_key_that_is_not_valid_is_401_with_the_same_message(
    http: httpx.AsyncClient, sink: str, make_key: Callable[..., str]
) -> None:
    # contract A3, A6
    expired = make_key(name="old", expires_at=1)
    del http.headers["x-api-key"]
    bodies = []
    for key in (None, "", "nonsense", expired, expired[:-1] + "x"):
        response = await http.get(sink, headers={"x-api-key": key} if key is not None else {})
        assert response.status_code == 401
        assert response.headers["WWW-Authenticate"].startswith("ApiKey")
        bodies.append({**response.json(), "requestId": ""})
    assert all(body == bodies[0] for body in bodies)


async def test_a_key_of_another_workspace_is_403_for_existing_and_missing_workspaces(
    http: httpx.AsyncClient, sink: str, make_key: Callable[..., str]
) -> None:
    # contract G12, G15
    other = (await http.post("/v1/workspace", json={"label": "Other"})).json()["id"]
    key = make_key(name="limited", role="owner", workspace_id=other)
    for target in (sink, f"/v1/workspace/{uuid.uuid4()}/data-sink/SNK-1"):
        response = await http.patch(target, headers={"x-api-key": key}, content=b"{")
        assert (response.status_code, response.json()["error"]) == (403, "Forbidden")


async def test_an_invalid_workspace_id_is_400_and_an_unknown_one_404_for_a_global_owner(
    http: httpx.AsyncClient,
) -> None:
    # contract G15
    for method, path in (("GET", ""), ("POST", ""), ("PATCH", "/SNK-1"), ("POST", "/SNK-1/mass")):
        bad = await http.request(method, f"/v1/workspace/nonsense/data-sink{path}")
        assert (bad.status_code, bad.json()["error"]) == (400, "Invalid request")
        body = {"label": "x", "key": "k", "value": "v", "dataType": "scalar"}
        unknown = f"/v1/workspace/{uuid.uuid4()}/data-sink{path}"
        assert (await http.request(method, unknown, json=body)).status_code == 404


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        ("reader", [200, 403, 403, 403]),
        ("pusher", [200, 200, 403, 403]),
        ("editor", [200, 200, 201, 403]),
        ("owner", [200, 200, 201, 201]),
    ],
)
async def test_a_role_permits_its_operations_only(
    http: httpx.AsyncClient, sink: str, make_key: Callable[..., str], role: str, expected: list[int]
) -> None:
    # contract A5
    http.headers["x-api-key"] = make_key(name=role, role=role)
    responses = [
        await http.get(sink),
        await http.post(f"{sink}/mass", json={"key": "k", "value": "v"}),
        await http.post(sink.rsplit("/", 1)[0], json={"label": "x"}),
        await http.post("/v1/workspace", json={"label": "x"}),
    ]
    assert [response.status_code for response in responses] == expected


_DELETION = {"key": "kept", "delete": True}


@pytest.mark.parametrize(
    "body",
    [
        [_DELETION],
        {"entries": [_DELETION]},
        [{"key": "new", "value": "1"}, _DELETION],
        [_DELETION, {"key": "", "value": 1}],
    ],
    ids=["list", "envelope", "among others", "with a mistake"],
)
async def test_a_mass_update_that_deletes_needs_the_permission_of_delete(
    http: httpx.AsyncClient, sink: str, make_key: Callable[..., str], body: Any
) -> None:
    # contract A5, M8
    await http.post(f"{sink}/mass", json={"key": "kept", "value": "1"})
    headers = {"x-api-key": make_key(name="pusher", role="pusher"), "Accept": "application/problem+json"}
    assert (await http.delete(f"{sink}/kept", headers=headers)).status_code == 403
    queries = ("", "?partial=true", "?dryRun=true", "?create=false")
    for query in queries:
        response = await http.post(f"{sink}/mass{query}", json=body, headers=headers)
        assert (response.status_code, response.json()["code"]) == (403, "forbidden")
        assert "data_sinks:write" in response.json()["detail"]
    assert [one["key"] for one in (await http.get(sink)).json()["entries"]] == ["kept"]
    headers["x-api-key"] = make_key(name="editor", role="editor")
    assert 403 not in [
        (await http.post(f"{sink}/mass{query}", json=body, headers=headers)).status_code for query in queries
    ]


async def test_a_request_needs_the_permissions_of_all_that_it_does(
    http: httpx.AsyncClient, sink: str, workspace: dict[str, Any]
) -> None:
    # contract A5, W5, M8
    async def status(scopes: list[str], method: str, path: str, body: Any) -> int:
        new = {"name": f"svc:{len(scopes)}{scopes[0]}", "role": "owner", "scopes": scopes}
        key = (await http.post("/v1/api-keys", json=new)).json()["key"]
        return (await http.request(method, path, json=body, headers={"x-api-key": key})).status_code

    path = f"/v1/workspace/{workspace['id']}"
    items = [{"key": "k", "value": "v"}]
    assert await status(["data_sinks:push"], "POST", f"{sink}/mass", items) == 200
    assert await status(["data_sinks:push"], "POST", f"{sink}/mass?dryRun=true", items) == 403
    assert await status(["data_sinks:push", "data_sinks:read"], "POST", f"{sink}/mass?dryRun=true", items) == 200
    assert await status(["workspaces:write"], "PATCH", path, {"label": "New"}) == 200
    assert await status(["workspaces:write"], "PATCH", path, {"rootBlock": {"label": "New"}}) == 403
    assert await status(["workspaces:write", "blocks:write"], "PATCH", path, {"rootBlock": {"label": "New"}}) == 200


async def test_a_403_is_not_repeated_after_the_permission_was_given(
    http: httpx.AsyncClient, sink: str, workspace: dict[str, Any], make_key: Callable[..., str]
) -> None:
    # contract G18
    other = (await http.post("/v1/workspace", json={"label": "Other"})).json()["id"]
    key = make_key(name="svc:bench", role="editor", workspace_id=other)
    make_key(name="svc:bench", role="pusher", workspace_id=workspace["id"])  # the same principal
    headers = {"x-api-key": key, "Idempotency-Key": "one"}
    link = {"workspaceId": workspace["id"], "fileName": "a.csv"}
    requests: list[tuple[str, Any]] = [(f"{sink}/mass", [_DELETION]), ("/v1/cloud-storage/upload-link", link)]
    for path, body in requests:
        assert (await http.post(path, json=body, headers=headers)).status_code == 403
    make_key(name="svc:bench", role="editor", workspace_id=workspace["id"])
    for path, body in requests:
        assert (await http.post(path, json=body, headers=headers)).is_success


async def test_a_revoked_key_ends_although_the_clock_was_set_back(
    settings: WorkspacedSettings, make_key: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # contract A4
    set_back_ms = 0
    monkeypatch.setattr("workspaced.core.clock.now_ms", lambda: time.time_ns() // 1_000_000 - set_back_ms)
    key = make_key(name="leaked")
    caching = dataclasses.replace(settings, key_cache_seconds=0.2)
    async with (
        running(caching) as app,
        httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://s") as caller,
        asyncio.timeout(30),
    ):
        caller.headers["x-api-key"] = key
        assert (await caller.get("/v1/workspace")).status_code == 200
        set_back_ms = 3_600_000
        transact(settings.database, lambda tx: access.revoke_key(tx, key_id=key[4:12], now=time.time_ns() // 1_000_000))
        while (await caller.get("/v1/workspace")).status_code == 200:
            continue


@pytest.mark.both_databases
@pytest.mark.parametrize(("cache_seconds", "look_ups"), [(60, 1), (0, 20)])
async def test_callers_at_once_share_the_look_up_of_a_key_that_is_cached(
    settings: WorkspacedSettings,
    make_key: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    cache_seconds: float,
    look_ups: int,
) -> None:
    # contract A4
    key = make_key(name="busy")
    arrivals, found = count(1), []
    all_are_there = threading.Event()

    def arrive(text: str) -> bytes:
        if next(arrivals) == 20:
            all_are_there.set()
        return digest(text)

    def look_up(reader: ReadTransaction, key_id: str) -> access.Credentials | None:
        assert all_are_there.wait(30)
        found.append(key_id)
        return credentials(reader, key_id)

    credentials = access.credentials
    monkeypatch.setattr("workspaced.security.authentication.digest", arrive)
    monkeypatch.setattr("workspaced.security.key_store.credentials", look_up)
    async with (
        running(dataclasses.replace(settings, key_cache_seconds=cache_seconds)) as app,
        httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://s") as caller,
    ):
        caller.headers["x-api-key"] = key
        responses = await asyncio.gather(*[caller.get("/v1/workspace") for _ in range(20)])
    assert [response.status_code for response in responses] == [200] * 20
    assert len(found) == look_ups


@pytest.mark.parametrize(("has_key", "refused"), [(False, 401), (True, 403)])
async def test_any_caller_may_read_a_public_workspace_and_nothing_else(
    http: httpx.AsyncClient, workspace: dict[str, Any], make_key: Callable[..., str], *, has_key: bool, refused: int
) -> None:
    # contract A6
    public = (await http.post("/v1/workspace", json={"label": "Open", "publicCanReadEnabled": True})).json()["id"]
    base = f"/v1/workspace/{public}/data-sink"
    await http.post(base, json={"label": "Seen"})
    other = (await http.post("/v1/workspace", json={"label": "Other"})).json()["id"]
    del http.headers["x-api-key"]
    if has_key:
        http.headers["x-api-key"] = make_key(name="svc:other", role="editor", workspace_id=other)
    assert (await http.get(f"{base}/SNK-1")).json()["label"] == "Seen"
    assert (await http.get(f"/v1/workspace/{public}")).status_code == 200
    assert (await http.head(f"{base}/SNK-1")).status_code == 200
    assert (await http.get(f"{base}/SNK-2")).status_code == 404
    assert (await http.post(base, json={"label": "x"})).status_code == refused
    assert (await http.patch(f"{base}/SNK-1", json={"label": "x"})).status_code == refused
    listed = await http.get("/v1/workspace")
    assert [one["id"] for one in listed.json()] == [other] if has_key else listed.status_code == 401
    assert (await http.get(f"/v1/workspace/{workspace['id']}")).status_code == refused
    assert (await http.get(f"/v1/workspace/{uuid.uuid4()}")).status_code == refused


async def test_records_have_the_name_of_their_author_and_never_a_key(
    http: httpx.AsyncClient, sink: str, make_key: Callable[..., str]
) -> None:
    # contract A0, A9
    key = make_key(name="svc:bench", role="pusher")
    written = await http.post(f"{sink}/mass", json={"key": "k", "value": "1"}, headers={"x-api-key": key})
    assert (written.json()["createdBy"], written.json()["updatedBy"]) == ("svc:bench", "svc:bench")
    moved = (await http.patch(f"{sink}/k", json={"value": "2"})).json()
    assert (moved["createdBy"], moved["updatedBy"]) == ("svc:bench", "svc:test")
    assert (await http.get(sink)).json()["updatedBy"] == "svc:test"
    assert key not in (await http.get(sink)).text
