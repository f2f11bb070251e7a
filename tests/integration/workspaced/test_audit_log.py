"""The audit log: a row for every change, in its transaction, and its permissions (contract G26)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from workspaced.app import running
from workspaced.security.audit_log import SYSTEM, AuditAction, note
from workspaced.settings.model import Limits, WorkspacedSettings
from workspaced.storage.factory import transact


async def _actions(http: httpx.AsyncClient, **query: str) -> list[str]:
    response = await http.get("/v1/audit-log", params={"sortOrder": "ASC", **query})
    assert response.status_code == 200, response.text
    return [row["action"] for row in response.json()]


async def test_every_kind_of_change_adds_one_row(http: httpx.AsyncClient) -> None:
    # contract G26
    workspace = (await http.post("/v1/workspace", json={"label": "a"})).json()
    path = f"/v1/workspace/{workspace['id']}"
    block = (await http.post(f"{path}/blocks", json={"workspace": workspace["id"]})).json()["id"]
    await http.patch(f"{path}/blocks/{block}", json={"label": "x"})
    await http.delete(f"{path}/blocks/{block}")
    sink = f"{path}/data-sink/{(await http.post(f'{path}/data-sink', json={'label': 's'})).json()['id']}"
    await http.patch(sink, json={"tags": "t"})
    await http.post(sink, json={"key": "a", "dataType": "t"})
    await http.patch(f"{sink}/a", json={"value": "1"})
    await http.post(f"{sink}/mass", json={"key": "a", "value": "1"})
    await http.post(f"{sink}/mass", json={"key": "b", "value": "1"})
    await http.post(f"{sink}/mass", json=[{"key": str(n), "value": "1"} for n in range(50)])
    await http.delete(f"{sink}/a")
    await http.delete(sink)
    await http.patch(path, json={"label": "b"})
    await http.delete(path)
    assert await _actions(http) == [
        "workspace.created",
        "block.created",
        "block.created",
        "block.updated",
        "block.deleted",
        "data_sink.created",
        "data_sink.updated",
        "data_sink.entry.created",
        "data_sink.entry.updated",
        "data_sink.entry.updated",
        "data_sink.entry.created",
        "data_sink.mass_updated",
        "data_sink.entry.deleted",
        "data_sink.deleted",
        "workspace.updated",
        "workspace.deleted",
    ]
    rows = (await http.get("/v1/audit-log?sortOrder=ASC")).json()
    assert [row["resourceLabel"] for row in rows] == ["a", "a", None, *"xxssaaabsasbb"]


async def test_a_row_has_actor_action_and_target_and_no_values(http: httpx.AsyncClient, sink: str) -> None:
    # contract A8, G26
    await http.post(f"{sink}/mass", json=[{"key": "k", "value": "hidden"}], headers={"X-Request-Id": "r1"})
    await http.patch(f"{sink}/k", json={"value": "hidden too"}, headers={"X-Request-Id": "r2"})
    newest, bulk = (await http.get("/v1/audit-log?take=2")).json()
    entry = (await http.get(f"{sink}/k")).json()
    workspace_id = sink.split("/")[3]
    assert newest.pop("time")[:2] == "20"
    assert int(newest.pop("id")) > int(bulk["id"])
    assert newest == {
        "principal": "svc:test",
        "keyId": http.headers["x-api-key"][4:12],
        "clientId": "tests",
        "requestId": "r2",
        "ip": "127.0.0.1",
        "action": "data_sink.entry.updated",
        "resourceType": "data_sink.entry",
        "resourceId": entry["id"],
        "resourceLabel": "k",
        "workspaceId": workspace_id,
        "changed": ["value"],
        "counts": {},
    }
    assert (bulk["requestId"], bulk["resourceId"]) == ("r1", sink.rsplit("/", 1)[1])
    assert bulk["counts"] == {"created": 1, "updated": 0, "unchanged": 0, "deleted": 0}
    text = (await http.get("/v1/audit-log")).text
    assert "hidden" not in text
    assert http.headers["x-api-key"] not in text


async def test_requests_that_change_nothing_or_fail_add_no_row(http: httpx.AsyncClient, sink: str) -> None:
    path = "/".join(sink.split("/")[:4])
    await http.post(sink, json={"key": "a", "dataType": "t"})
    before = await _actions(http)
    root = (await http.get(path)).json()["rootBlock"]
    observed = {"key": "o", "value": "1", "observedAt": "2026-05-01T12:00:00Z"}
    for method, target, body in (
        ("PATCH", sink, {}),
        ("PATCH", f"{sink}/a", {}),
        ("PATCH", path, {}),
        ("PATCH", f"{path}/blocks/{root}", {"parentBlock": ""}),
        ("POST", sink, {"key": "a", "dataType": "t"}),
        ("DELETE", f"{path}/blocks/{root}", None),
        ("PATCH", f"{path}/blocks/{root}", {"label": "x", "parentBlock": root}),
        ("POST", f"{sink}/mass", [{"key": "gone", "delete": True}]),
    ):
        await http.request(method, target, json=body)
    assert await _actions(http) == before
    await http.post(f"{sink}/mass", json=observed)
    await http.post(f"{sink}/mass", json={**observed, "observedAt": "2026-05-01T11:00:00Z"})
    assert await _actions(http) == [*before, "data_sink.entry.created"]


async def test_a_repeated_request_adds_no_second_row(http: httpx.AsyncClient, sink: str) -> None:
    for _ in range(2):
        await http.post(f"{sink}/mass", json={"key": "a", "value": "1"}, headers={"Idempotency-Key": "1"})
    assert (await _actions(http)).count("data_sink.entry.created") == 1


@pytest.mark.both_databases
async def test_the_log_is_filtered_and_paged(http: httpx.AsyncClient) -> None:
    # contract AU1, G26, G27
    first, second = [(await http.post("/v1/workspace", json={"label": label})).json()["id"] for label in "ab"]
    for workspace in (first, second):
        await http.post(f"/v1/workspace/{workspace}/data-sink", json={"label": "s"})
    assert await _actions(http, workspaceId=first) == ["workspace.created", "block.created", "data_sink.created"]
    assert await _actions(http, action="workspace.created") == ["workspace.created"] * 2
    assert await _actions(http, action="data_sink.*", workspaceId=second) == ["data_sink.created"]
    assert await _actions(http, action="data_sink") == []
    assert await _actions(http, to="2020-01-01T00:00:00Z") == []
    assert len(await _actions(http, **{"from": "2020-01-01T00:00:00Z"})) == 6
    page = await http.get("/v1/audit-log?take=2&skip=1")
    assert [row["action"] for row in page.json()] == ["data_sink.created", "block.created"]
    assert page.headers["X-Total-Count"] == "6"
    newest = [row["id"] for row in (await http.get("/v1/audit-log")).json()]
    for order, rows in (("DESC", newest), ("ASC", newest[::-1])):
        for narrowed in ("", f"&workspaceId={first}"):
            target, seen = f"/v1/audit-log?take=2&sortOrder={order}{narrowed}", list[str]()
            while target:
                page = await http.get(target)
                assert page.status_code == 200, page.text
                seen += [row["id"] for row in page.json()]
                target = page.links.get("next", {}).get("url", "")
            assert seen == (rows if not narrowed else [one for one in rows if one in set(seen)])
            assert len(seen) == (3 if narrowed else 6)
    for wrong in ("take=0", "take=1001", "workspaceId=x", "from=yesterday", "to=1", "action=%27;", "sortedBy=x"):
        assert (await http.get(f"/v1/audit-log?{wrong}")).status_code == 400


async def test_the_log_requires_its_permission_and_for_a_workspace_its_owner(
    http: httpx.AsyncClient, workspace: dict[str, Any], make_key: Callable[..., str]
) -> None:
    # contract G26
    other = (await http.post("/v1/workspace", json={"label": "Other"})).json()["id"]
    owner = {"x-api-key": make_key(name="limited", workspace_id=other)}
    statuses = [
        (await http.get(f"/v1/audit-log{query}", headers=owner)).status_code
        for query in (f"?workspaceId={other}", f"?workspaceId={workspace['id']}", "")
    ]
    assert statuses == [200, 403, 403]
    editor = {"x-api-key": make_key(name="editor", role="editor")}
    assert (await http.get(f"/v1/audit-log?workspaceId={other}", headers=editor)).status_code == 403
    del http.headers["x-api-key"]
    assert (await http.get("/v1/audit-log")).status_code == 401
    assert (await http.delete("/v1/audit-log", headers=owner)).status_code == 405


@pytest.mark.both_databases
@pytest.mark.parametrize(("days", "kept"), [(400, 1), (1, 0)])
async def test_rows_are_deleted_after_their_retention_time(
    settings: WorkspacedSettings, make_key: Callable[..., str], days: int, kept: int
) -> None:
    # contract G26
    old = time.time_ns() // 1_000_000 - 2 * 86_400_000
    transact(settings.database, lambda tx: note(tx, SYSTEM, AuditAction(action="old.action", resource_id=""), now=old))
    headers = {"x-api-key": make_key()}
    async with (
        running(
            WorkspacedSettings(data=settings.data, postgres=settings.postgres, limits=Limits(audit_days=days))
        ) as app,
        httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://s", headers=headers) as http,
    ):
        await app.run_maintenance()
        assert len(await _actions(http, action="old.action")) == kept
