"""The writer fence (contract M11): a request that is older than another request of its writer changes nothing."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest

from tests.integration.workspaced.conftest import MakeKey
from workspaced.app import running
from workspaced.settings.model import WorkspacedSettings
from workspaced.storage.factory import transact
from workspaced.storage.port import Transaction


def by(rank: str, name: str = "daemon") -> dict[str, str]:
    """Return the header of a writer with an epoch and an attempt: ``1;2``."""
    return {"X-Writer": f"{name};{rank}"}


async def value_of(http: httpx.AsyncClient, sink: str, key: str = "k") -> Any:
    found = await http.get(f"{sink}/{key}")
    return found.json()["value"] if found.status_code == 200 else None


def counted_writers(tx: Transaction) -> int:
    row = tx.one("SELECT count(*) FROM writer")
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize(("newer", "late"), [("1;2", "1;1"), ("2;1", "1;9"), ("1;10", "1;9")])
async def test_a_late_request_changes_nothing_and_learns_the_newest_rank(
    http: httpx.AsyncClient, sink: str, newer: str, late: str
) -> None:
    assert (await http.post(f"{sink}/mass", json={"key": "k", "value": "new"}, headers=by(newer))).status_code == 200
    refused = await http.post(f"{sink}/mass", json={"key": "k", "value": "old"}, headers=by(late))
    assert (refused.status_code, refused.json()["code"]) == (409, "writer_fenced")
    assert refused.headers["X-Writer"] == f"daemon;{newer}"
    assert await value_of(http, sink) == "new"


async def test_requests_of_one_rank_and_those_without_a_writer_are_not_refused(
    http: httpx.AsyncClient, sink: str
) -> None:
    for value, headers in (("1", by("1;2")), ("2", by("1;2")), ("3", {}), ("4", by("1;1", "other"))):
        response = await http.post(f"{sink}/mass", json={"key": "k", "value": value}, headers=headers)
        assert response.status_code == 200
    assert await value_of(http, sink) == "4"


async def test_each_workspace_has_its_own_fence(http: httpx.AsyncClient, sink: str) -> None:
    await http.post(f"{sink}/mass", json={"key": "k", "value": "1"}, headers=by("1;2"))
    other = (await http.post("/v1/workspace", json={"label": "Other"})).json()["id"]
    made = await http.post(f"/v1/workspace/{other}/data-sink", json={"label": "Sink"}, headers=by("1;1"))
    assert made.status_code == 201


async def test_every_write_below_a_workspace_is_fenced(http: httpx.AsyncClient, sink: str, sinks: str) -> None:
    await http.post(f"{sink}/mass", json={"key": "k", "value": "1"}, headers=by("1;2"))
    workspace = sinks.removesuffix("/data-sink")
    one = {"key": "n", "value": "1", "dataType": "scalar"}
    history = sink.replace("data-sink", "data-sink-history")
    late: list[tuple[str, str, Any]] = [
        ("POST", sinks, {"label": "Late"}),
        ("PATCH", sink, {"label": "Late"}),
        ("POST", sink, one),
        ("PATCH", f"{sink}/k", {"value": "late"}),
        ("DELETE", f"{sink}/k", None),
        ("POST", f"{sink}/mass", one),
        ("POST", f"{sink}/mass", [one]),
        ("POST", f"{sink}/mass?partial=true", [one]),
        ("POST", f"{sink}/n", {"value": "1"}),
        ("PATCH", history, {"changes": 3}),
        ("POST", f"{workspace}/blocks", {"workspace": workspace.rpartition("/")[2], "name": "Late"}),
        ("PATCH", workspace, {"label": "Late"}),
        ("DELETE", sink, None),
        ("DELETE", workspace, None),
    ]
    for method, path, body in late:
        response = await http.request(method, path, json=body, headers=by("1;1"))
        assert (response.status_code, response.headers.get("X-Error-Code")) == (409, "writer_fenced"), (method, path)
    assert [entry["key"] for entry in (await http.get(sink)).json()["entries"]] == ["k"]


@pytest.mark.parametrize(
    ("request_line", "body", "status"),
    [
        ("DELETE /absent", None, 404),
        ("PATCH /absent", {"value": "1"}, 404),
        ("PATCH /k", {"value": 1}, 400),
        ("POST /mass", {"key": "", "value": "1"}, 400),
        ("POST ", {"key": "k", "value": "1", "dataType": "scalar"}, 409),
    ],
)
async def test_a_refused_request_fences_those_that_were_sent_before_it(
    http: httpx.AsyncClient, sink: str, request_line: str, body: Any, status: int
) -> None:
    method, _, path = request_line.partition(" ")
    await http.post(f"{sink}/mass", json={"key": "k", "value": "0"}, headers=by("1;1"))
    assert (await http.request(method, f"{sink}{path}", json=body, headers=by("1;2"))).status_code == status
    late = await http.post(f"{sink}/mass", json={"key": "absent", "value": "old"}, headers=by("1;1"))
    assert late.headers["X-Error-Code"] == "writer_fenced"
    assert await value_of(http, sink, "absent") is None


async def test_a_refusal_by_the_fence_is_not_repeated_to_the_same_request_with_a_newer_attempt(
    http: httpx.AsyncClient, sink: str
) -> None:
    await http.post(f"{sink}/mass", json={"key": "other", "value": "1"}, headers=by("1;2"))
    repeated = {"Idempotency-Key": "once"}
    for rank, status, replayed in (("1;1", 409, None), ("1;2", 200, None), ("1;3", 200, "true"), ("1;2", 409, None)):
        response = await http.post(f"{sink}/mass", json={"key": "k", "value": "1"}, headers=by(rank) | repeated)
        assert (response.status_code, response.headers.get("Idempotent-Replayed")) == (status, replayed), rank


async def test_the_fence_is_announced_below_data_sinks(http: httpx.AsyncClient, sinks: str) -> None:
    for path in (sinks, f"{sinks}/list", f"{sinks}/absent/k"):
        assert (await http.get(path)).headers["X-Writer-Fence"] == "epoch, attempt", path
    assert "X-Writer-Fence" not in (await http.get("/v1/workspace")).headers


async def test_a_malformed_writer_is_refused(http: httpx.AsyncClient, sink: str) -> None:
    for header in ("", "daemon", "daemon;1", "daemon;1;x", "da emon;1;1", f"daemon;1;{'9' * 19}"):
        headers = {"X-Writer": header, "Accept": "application/problem+json"}
        response = await http.post(f"{sink}/mass", json={"key": "k", "value": "1"}, headers=headers)
        assert (response.status_code, response.json()["code"]) == (400, "bad_writer"), header
        assert await value_of(http, sink) is None, header


@pytest.mark.both_databases
@pytest.mark.parametrize("keyed", [False, True], ids=["without keys", "with keys"])
async def test_of_requests_that_share_a_commit_only_the_late_ones_are_refused(
    http: httpx.AsyncClient, sink: str, *, keyed: bool
) -> None:
    order = random.Random(7)
    for attempt in range(1, 12):
        ranks = [attempt, attempt + 1] * 4
        order.shuffle(ranks)

        async def write(number: int, attempt: int) -> tuple[int, int]:
            headers = by(f"1;{attempt}") | ({"Idempotency-Key": f"{number} {attempt}"} if keyed else {})
            body = {"key": f"k{number}", "value": str(attempt)}
            response = await http.post(f"{sink}/mass", json=body, headers=headers)
            return attempt, response.status_code

        results = await asyncio.gather(*(write(number, rank) for number, rank in enumerate(ranks)))
        assert all(status == 200 for rank, status in results if rank == attempt + 1), results
        assert all(status in {200, 409} for _, status in results), results
        late = await http.post(f"{sink}/mass", json={"key": "k", "value": "old"}, headers=by(f"1;{attempt}"))
        assert late.status_code == 409


@pytest.mark.both_databases
async def test_writers_that_did_not_rise_for_long_are_dropped_and_those_of_a_purged_workspace_too(
    settings: WorkspacedSettings, make_key: MakeKey
) -> None:
    headers = {"x-api-key": make_key(), "ClientId": "tests"}
    async with running(settings) as app:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://service", headers=headers) as http:
            workspace = f"/v1/workspace/{(await http.post('/v1/workspace', json={'label': 'Rocket'})).json()['id']}"
            for name in ("first", "second"):
                await http.post(f"{workspace}/data-sink", json={"label": "Sink"}, headers=by("1;2", name))
            transact(settings.database, lambda tx: tx.run("UPDATE writer SET raised_at = 5 WHERE name = 'first'"))
            await app.run_maintenance()
            assert transact(settings.database, counted_writers) == 1
            await http.delete(workspace)
            transact(settings.database, lambda tx: tx.run("UPDATE workspace SET deleted_at = 5"))
            await app.run_maintenance()
    assert transact(settings.database, counted_writers) == 0


async def test_a_workspace_that_does_not_exist_keeps_no_writer(
    http: httpx.AsyncClient, settings: WorkspacedSettings
) -> None:
    path = "/v1/workspace/3e3f0f7f-5f0b-4a54-8f83-6a29b63f0b1c/data-sink"
    assert (await http.post(path, json={"label": "Sink"}, headers=by("1;1"))).status_code == 404
    assert transact(settings.database, counted_writers) == 0


@pytest.fixture
async def hosts(
    settings: WorkspacedSettings, make_key: MakeKey
) -> AsyncIterator[tuple[httpx.AsyncClient, httpx.AsyncClient]]:
    """Two services on one database, with one folder of files."""
    headers = {"x-api-key": make_key(), "ClientId": "tests"}
    async with AsyncExitStack() as stack:
        clients = []
        for _ in range(2):
            app = await stack.enter_async_context(running(dataclasses.replace(settings, busy_seconds=5)))
            transport = httpx.ASGITransport(app=app)
            client = httpx.AsyncClient(transport=transport, base_url="http://service", headers=headers, timeout=30)
            clients.append(await stack.enter_async_context(client))
        yield clients[0], clients[1]


@pytest.mark.both_databases
async def test_two_hosts_of_one_database_never_let_a_late_value_win(
    hosts: tuple[httpx.AsyncClient, httpx.AsyncClient],
) -> None:
    workspace = (await hosts[0].post("/v1/workspace", json={"label": "Shared"})).json()["id"]
    sinks = f"/v1/workspace/{workspace}/data-sink"
    sink = f"{sinks}/{(await hosts[0].post(sinks, json={'label': 'Sink'})).json()['id']}"
    order = random.Random(3)
    for attempt in range(1, 13):
        calls = [
            (host, {"key": f"k{number % 3}", "value": str(attempt + late)}, attempt + late)
            for number in range(6)
            for late in (0, 1)
            for host in (order.choice(hosts),)
        ]
        order.shuffle(calls)
        responses = await asyncio.gather(
            *(host.post(f"{sink}/mass", json=body, headers=by(f"1;{rank}")) for host, body, rank in calls)
        )
        statuses = [(rank, response.status_code) for (_, _, rank), response in zip(calls, responses, strict=True)]
        assert {status for rank, status in statuses if rank == attempt + 1} == {200}, statuses
        entries = (await hosts[0].get(sink)).json()["entries"]
        assert {entry["value"] for entry in entries} == {str(attempt + 1)}, statuses
