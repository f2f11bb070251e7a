"""A well-behaved client gets each of its responses while 500 hostile connections of a kind are open.

How soon depends on the machine: ``pytest -s`` shows it.

The service has its default limits. The hostile clients have four keys; most connect from one address, so that the limit of an
address applies, the other clients from many, so that it does not.
"""

from __future__ import annotations

import asyncio
import math
import resource
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.support.free_port import free_port
from tests.support.hostile_clients import (
    KINDS,
    Behaviour,
    ClientGroup,
    Target,
    attack,
    hostile,
    refused_body,
    slow_body,
)
from tests.support.workspaced_process import DEADLINE_SECONDS, WorkspaceService, new_key

HOSTILE = 500
CLIENTS = 600  # more than may be connected from their addresses concurrently
KEYS = 4
ADDRESSES = ("127.0.0.2",) * 25 + tuple(f"127.0.1.{number}" for number in range(1, 26))
MANY_ADDRESSES = tuple(f"127.0.1.{number}" for number in range(1, 51))
ROUNDS = 20
TIMEOUT_SECONDS = 120.0
"""How long the well-behaved client waits for a response, on a slow machine, too."""
ENTRIES = 4_000

Kind = Callable[[Target], Behaviour]
ENDED_EARLY: tuple[Kind, ...] = (refused_body, slow_body)
"""The service refuses their requests and ends the connections within a second, so that some are always between two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A service with data, and its hostile clients."""

    service: WorkspaceService
    data: Path
    admin: str
    sink: str
    targets: Sequence[Target]


@pytest.fixture(scope="module", autouse=True)
def many_descriptors() -> Iterator[None]:
    former = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (former[1], former[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, former)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with served(tmp_path_factory.mktemp("hostile") / "data") as running:
        yield running


@contextmanager
def served(data: Path, **more: str) -> Iterator[Running]:
    """Run a service with its default limits; ``more`` are other settings."""
    owner = new_key(data)
    port = free_port()
    environment = {"WORKSPACED_REQUESTS_PER_MINUTE": "1200"} | more
    with (
        WorkspaceService(data, "--admin-port", str(port), environment=environment) as service,
        service.client(owner) as http,
    ):
        large, small = (make_sink(http) for _ in range(2))
        for start in range(0, ENTRIES, 1_000):
            push(http, large, {f"k{number}": "x" * 2_000 for number in range(start, start + 1_000)})
        push(http, small, {"first": "1"})
        targets = [hostile_target(service, http, large, number) for number in range(KEYS)]
        yield Running(service=service, data=data, admin=f"http://127.0.0.1:{port}", sink=small, targets=targets)


def make_sink(http: httpx.Client) -> str:
    workspace = http.post("/v1/workspace", json={"label": "w"}).json()["id"]
    return str(http.post(f"/v1/workspace/{workspace}/data-sink", json={"label": "s"}).headers["Location"])


def push(http: httpx.Client, sink: str, values: dict[str, str]) -> None:
    entries = [{"key": key, "value": value} for key, value in values.items()]
    response = http.post(f"{sink}/mass", json=entries, headers={"Prefer": "return=minimal"})
    assert response.status_code == 200, response.text


def hostile_target(service: WorkspaceService, http: httpx.Client, sink: str, number: int) -> Target:
    """Return the service for one reader key, which is valid only for the workspace of the large sink."""
    new = {"name": f"svc:hostile-{number}", "role": "reader", "workspaceId": sink.split("/")[3]}
    key = str(http.post("/v1/api-keys", json=new).json()["key"])
    signed_in = httpx.post(f"{service.url}/ui/sign-in", data={"key": key}, timeout=DEADLINE_SECONDS)
    host, port = service.url.removeprefix("http://").split(":")
    return Target(
        host=host,
        port=int(port),
        key=key,
        large_path=sink,
        live_path=page_of(sink) + "/live",
        cookie=signed_in.headers["Set-Cookie"].partition(";")[0],
    )


def page_of(sink: str) -> str:
    return sink.replace("/v1/workspace/", "/ui/workspaces/").replace("/data-sink/", "/sinks/")


@asynccontextmanager
async def attacked(running: Running, kind: Kind) -> AsyncIterator[list[ClientGroup]]:
    """Run hostile clients of a kind; the block begins when the attack of each has taken effect."""
    async with AsyncExitStack() as stack:
        crowds = [
            await stack.enter_async_context(hostile(target, kind(target), clients=CLIENTS // KEYS, addresses=ADDRESSES))
            for target in running.targets
        ]
        async with asyncio.timeout(2 * DEADLINE_SECONDS):
            for crowd in crowds:
                await crowd.ready.wait()
        yield crowds


def seconds_of_requests(running: Running, name: str) -> list[float]:
    """Return the duration of each request of a well-behaved client: writes, reads, lists, pages, and admin requests.

    Each gets the response 200.
    The browser has a key of its own, so that neither reaches the rate limit, however fast the machine is.
    """
    key, key_of_browser = (new_key(running.data, name=f"{name}-{client}") for client in ("program", "browser"))
    seconds: list[float] = []
    with (
        running.service.client(key) as http,
        httpx.Client(base_url=running.service.url) as browser,
        httpx.Client(base_url=running.admin, headers={"Connection": "close"}) as operator,
    ):
        for client in (http, browser, operator):
            client.timeout = httpx.Timeout(TIMEOUT_SECONDS)
        assert browser.post("/ui/sign-in", data={"key": key_of_browser}).status_code == 303
        requests: Sequence[tuple[httpx.Client, str, str, object]] = (
            (http, "POST", f"{running.sink}/mass", {"key": "first", "value": "2"}),
            (http, "GET", f"{running.sink}/first", None),
            (http, "GET", running.sink.rpartition("/")[0] + "/list", None),
            (browser, "GET", page_of(running.sink), None),
            (operator, "GET", "/readyz", None),
        )
        for turn in range(ROUNDS + 1):
            for client, method, path, body in requests:
                begun = time.monotonic()
                response = client.request(method, path, json=body)
                if turn:  # the first round warms up
                    seconds.append(time.monotonic() - begun)
                assert response.status_code == 200, response.text
    return seconds


def summary(seconds: Sequence[float]) -> str:
    p99 = sorted(seconds)[math.ceil(len(seconds) * 0.99) - 1]
    return (
        f"{len(seconds)} requests: p50 {1_000 * statistics.median(seconds):.0f} ms, p99 {1_000 * p99:.0f} ms,"
        f" longest {1_000 * max(seconds):.0f} ms.\n"
    )


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.__name__))
async def test_a_well_behaved_client_gets_responses_while_hostile_ones_are_connected(
    running: Running, kind: Kind
) -> None:
    async with attacked(running, kind) as crowds:
        seconds = await asyncio.to_thread(seconds_of_requests, running, f"svc:good-{kind.__name__}")
    sys.stdout.write(summary(seconds))
    assert sum(crowd.most_connections for crowd in crowds) >= HOSTILE


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("more", "least"),
    [({}, 1_900), ({"WORKSPACED_CONNECTIONS": "4000"}, HOSTILE * (len(KINDS) - len(ENDED_EARLY)))],
    ids=["default limits", "room for all"],
)
def test_a_well_behaved_client_gets_responses_while_hostile_ones_of_every_kind_are_connected(
    tmp_path: Path, more: dict[str, str], least: int
) -> None:
    """By default 2,000 connections are open, and the hostile clients compete for them."""
    with (
        served(tmp_path / "data", **more) as running,
        attack(running.targets, clients=HOSTILE, addresses=MANY_ADDRESSES, ready_seconds=120.0) as end_of_attack,
    ):
        seconds = seconds_of_requests(running, "svc:good")
        found = end_of_attack()
    open_at_once = [sum(counts) for counts in zip(*found.samples.values(), strict=True)]
    figures = (
        f"{summary(seconds)}{min(open_at_once)} to {max(open_at_once)} hostile connections at once,"
        f" { ({kind: statistics.median(counts) for kind, counts in found.samples.items()}) };"
        f" {found.connections_per_second:.0f} new ones a second.\n"
    )
    sys.stdout.write(figures)
    assert statistics.median(open_at_once) >= least, figures
