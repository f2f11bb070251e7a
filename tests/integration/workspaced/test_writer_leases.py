"""Leases of writers (contract M14): one process at a time may send as a writer, and older requests are refused."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from tests.integration.workspaced.conftest import MakeKey
from workspaced.app import running
from workspaced.core.clock import Clock
from workspaced.settings.model import WorkspacedSettings

LEASE = "/v1/writer-leases/daemon"


async def take(http: httpx.AsyncClient, holder: str, *, seconds: int = 60, epoch: int | None = None) -> httpx.Response:
    body: dict[str, Any] = {"holder": holder, "seconds": seconds}
    return await http.put(LEASE, json=body if epoch is None else {**body, "epoch": epoch})


async def write(http: httpx.AsyncClient, sink: str, rank: str, value: str = "1") -> httpx.Response:
    return await http.post(f"{sink}/mass", json={"key": "k", "value": value}, headers={"X-Writer": f"daemon;{rank}"})


@pytest.mark.both_databases
async def test_one_process_has_the_lease_until_it_releases_it(http: httpx.AsyncClient) -> None:
    # contract M14, WL1, WL2, WL3
    assert (await http.get(LEASE)).status_code == 404
    first = (await take(http, "a")).json()
    assert (first["holder"], first["epoch"]) == ("a", 2)
    assert 0 < first["millisecondsLeft"] <= 60_000
    refused = await take(http, "b")
    assert (refused.status_code, refused.json()["code"]) == (409, "lease_held")
    assert (await take(http, "a", epoch=2)).json()["epoch"] == 2  # renewed
    assert (await take(http, "b", epoch=2)).json()["code"] == "lease_lost"
    assert (await http.post(f"{LEASE}/release", json={"holder": "b", "epoch": 2})).status_code == 409
    assert (await http.post(f"{LEASE}/release", json={"holder": "a", "epoch": 2})).json()["millisecondsLeft"] == 0
    assert (await take(http, "b")).json()["epoch"] == 3
    assert (await take(http, "a", epoch=2)).json()["code"] == "lease_lost"


@pytest.mark.both_databases
async def test_a_new_lease_fences_older_requests_in_all_workspaces(http: httpx.AsyncClient, sink: str) -> None:
    # contract M14: also in sinks that the new holder has not written
    assert (await write(http, sink, "1;5")).status_code == 200
    other = (await http.post("/v1/workspace", json={"label": "Other"})).json()["id"]
    made = await http.post(f"/v1/workspace/{other}/data-sink", json={"label": "Never written"})
    unwritten = f"/v1/workspace/{other}/data-sink/{made.json()['id']}"
    epoch = (await take(http, "a")).json()["epoch"]
    for path in (sink, unwritten):
        late = await write(http, path, "1;9", "late")
        assert (late.status_code, late.json()["code"]) == (409, "writer_fenced")
        assert late.headers["X-Writer"] == f"daemon;{epoch};0"
        assert (await write(http, path, f"{epoch};1")).status_code == 200


async def test_a_taken_epoch_exceeds_every_epoch_that_was_sent(http: httpx.AsyncClient, sink: str) -> None:
    assert (await write(http, sink, "41;1")).status_code == 200
    assert (await take(http, "a")).json()["epoch"] == 42


@pytest.mark.both_databases
async def test_an_ended_lease_is_renewed_if_no_other_process_has_taken_it(http: httpx.AsyncClient) -> None:
    # contract M14: a service that was away for longer than the lease deposes no process
    await take(http, "a")
    ended = await http.post(f"{LEASE}/release", json={"holder": "a", "epoch": 2})
    assert ended.json()["millisecondsLeft"] == 0
    assert (await take(http, "a", epoch=2)).json()["millisecondsLeft"] > 0
    assert (await take(http, "b")).status_code == 409


@pytest.mark.both_databases
async def test_of_processes_that_wake_at_once_one_takes_the_lease(http: httpx.AsyncClient) -> None:
    taken = await asyncio.gather(*(take(http, f"standby {number}") for number in range(8)))
    assert sorted(response.status_code for response in taken) == [200, *[409] * 7]


async def test_a_successor_is_shown_to_the_holder_and_may_take_the_released_lease_alone(
    http: httpx.AsyncClient,
) -> None:
    # contract M14, WL4
    await take(http, "a")
    assert (await http.post(f"{LEASE}/successor", json={"holder": "b"})).status_code == 200
    assert (await take(http, "a", epoch=2)).json()["successor"] == "b"
    await http.post(f"{LEASE}/release", json={"holder": "a", "epoch": 2, "reservedSeconds": 60})
    assert (await take(http, "c")).status_code == 409
    assert (await take(http, "b")).json()["epoch"] == 3


async def test_a_lease_belongs_to_a_principal(
    http: httpx.AsyncClient, transport: httpx.ASGITransport, make_key: MakeKey
) -> None:
    await take(http, "a")
    async with httpx.AsyncClient(transport=transport, base_url="http://service") as other:
        other.headers["x-api-key"] = make_key("svc:other", role="pusher")
        assert (await other.get(LEASE)).status_code == 404
        assert (await take(other, "b")).json()["code"] == "lease_of_another"
        other.headers["x-api-key"] = make_key("svc:reader", role="reader")
        assert (await take(other, "b")).status_code == 403


@pytest.mark.both_databases
async def test_a_key_of_one_workspace_fences_only_that_one(
    http: httpx.AsyncClient, transport: httpx.ASGITransport, make_key: MakeKey, sink: str, sinks: str
) -> None:
    other = (await http.post("/v1/workspace", json={"label": "Other"})).json()["id"]
    made = await http.post(f"/v1/workspace/{other}/data-sink", json={"label": "Sink"})
    async with httpx.AsyncClient(transport=transport, base_url="http://service") as limited:
        workspace = sinks.split("/")[3]
        limited.headers["x-api-key"] = make_key("svc:one", role="pusher", workspace_id=workspace)
        assert (await take(limited, "a")).status_code == 200
    assert (await write(http, sink, "1;1")).status_code == 409
    assert (await write(http, f"/v1/workspace/{other}/data-sink/{made.json()['id']}", "1;1")).status_code == 200


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"holder": "a"}, "required"),
        ({"holder": "", "seconds": 1}, "blank"),
        ({"holder": "a", "seconds": 0}, "out_of_range"),
        ({"holder": "a", "seconds": 3601}, "out_of_range"),
        ({"holder": "a", "seconds": 1, "epoch": -1}, "out_of_range"),
    ],
)
async def test_a_malformed_request_for_a_lease_is_refused(http: httpx.AsyncClient, body: Any, code: str) -> None:
    response = await http.put(LEASE, json=body)
    assert (response.status_code, response.json()["errors"][0]["code"]) == (400, code)
    assert (await http.put("/v1/writer-leases/a%20b", json={"holder": "a", "seconds": 1})).json()[
        "code"
    ] == "bad_writer"


@pytest.mark.both_databases
async def test_a_lease_lasts_by_the_clock_of_the_database(settings: WorkspacedSettings, make_key: MakeKey) -> None:
    headers = {"x-api-key": make_key()}
    clock = Clock()
    ahead = type("Ahead", (Clock,), {"now": lambda _: clock.now() + 3_600_000})()
    for used in (clock, ahead):  # the second host's clock is an hour ahead
        async with running(settings, clock=used) as app:
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url="http://service", headers=headers) as http:
                if used is clock:
                    assert (await take(http, "a")).status_code == 200
                else:
                    assert (await take(http, "b")).json()["code"] == "lease_held"
