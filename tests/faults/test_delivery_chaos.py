"""Thousands of entries through every fault of a network and a service; the result is exact, without superfluous writes.

Every scenario is seeded: it has the same faults in the same share each time.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace

from ingestd.client.transport import Timeouts
from ingestd.core.address import SinkAddress
from ingestd.mirror.sqlite import SqliteMirror
from tests.support.chaos_transport import ChaosTransport
from tests.support.delivery_rig import FAST_LIMITS, Rig, rig, wake_callback
from tests.support.desired_entries import desire_all
from tests.support.document_server import (
    Delay,
    DocumentServer,
    DropAfter,
    DropBefore,
    Fault,
    Garbage,
    Refuse,
    Request,
    Truncate,
)
from tests.support.entry_writes import written_keys
from tests.support.free_port import free_port
from tests.support.ledger import Ledger
from tests.support.memory_mirror import Desired
from tests.support.workspaced_process import WorkspaceService, new_key

TO = SinkAddress(workspace="Bench", by="label", name="Mass budget")
TURNS = 3
FAULTS: tuple[Fault, ...] = (
    DropBefore(),
    DropAfter(),
    Refuse(status=429, headers={"Retry-After": "0"}),
    Refuse(status=503),
    Refuse(status=500),
    Delay(seconds=0.05),
    Truncate(),
    Garbage(),
    Garbage(status=502),
)


def wanted(turn: int, count: int) -> dict[str, Desired]:
    """Return the expected content of the sink after a turn: a third changes, some are added and some removed."""
    return {
        f"P-{n:05}/mass": (f"{turn if n % 3 == turn % 3 else 0}.{n}0", "text" if n % 97 == turn else "scalar")
        for n in range(count)
        if n % 29 != turn
    }


def changes(count: int) -> Counter[str]:
    """Return how often each key is changed, removed or restored over all turns."""
    counted: Counter[str] = Counter()
    before: dict[str, Desired] = {}
    for turn in range(TURNS):
        now = wanted(turn, count)
        counted.update(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
        before = now
    return counted


class Recorded(DocumentServer):
    """Counts real writes, and the faults of each key."""

    def __init__(self, seed: int, share: float) -> None:
        super().__init__(fault_of=self._fault)
        self.written: Counter[str] = Counter()
        self.met: Counter[str] = Counter()
        self._rng = random.Random(seed)
        self._share = share

    def act(self, request: Request) -> tuple[int, bytes]:
        status, content = super().act(request)
        if status < 300:
            self.written.update(written_keys(request))
        return status, content

    def _fault(self, request: Request) -> Fault | None:
        if not request.writes or self._rng.random() >= self._share:
            return None
        self.met.update(written_keys(request))
        return self._rng.choice(FAULTS)


@asynccontextmanager
async def delivering(
    file: Path, *, url: str, api_key: str = "test-key", transport: httpx.AsyncBaseTransport | None = None
) -> AsyncIterator[tuple[Rig, SqliteMirror]]:
    """Run a dispatcher on the state file; at the end its requests in flight are abandoned and its claims are lost."""
    mirror = SqliteMirror.open(file)
    try:
        async with rig(
            url=url,
            api_key=api_key,
            transport=transport,
            deliverable=mirror.delivery,
            limits=replace(FAST_LIMITS, grace_seconds=0, in_flight_at_first=4, create_items=100),
            timeouts=Timeouts(connect_seconds=5, read_seconds=10),
        ) as running:
            mirror.on_pending = wake_callback(running)
            yield running, mirror
    finally:
        mirror.close()


async def test_single_requests_end_exact_without_superfluous_writes(tmp_path: Path) -> None:
    count = 1_500
    with Recorded(seed=1, share=0.15) as server:
        server.workspace("Bench")
        for turn in range(TURNS):
            # Each turn but the last is interrupted, as by a crash.
            async with delivering(tmp_path / "ingestd.db", url=server.url) as (running, mirror):
                await asyncio.to_thread(desire_all, mirror, TO, wanted(turn, count))
                await (running.drained(60) if turn == TURNS - 1 else running.acknowledged_more(2))
        assert server.errors == 0
        assert server.values("Mass budget") == wanted(TURNS - 1, count)
        # A claim that a crash interrupted is written again, at most once for each crash.
        allowed = {key: number + server.met[key] + TURNS - 1 for key, number in changes(count).items()}
        assert {key: made for key, made in server.written.items() if made > allowed[key]} == {}
        assert server.met.total() > 100


async def test_batches_end_exact_through_faults_rejections_and_a_killed_service(tmp_path: Path) -> None:
    count = 4_000
    data = tmp_path / "data"
    key = new_key(data)
    bad: dict[str, Desired] = {f" bad {n}": ("1", "scalar") for n in range(5)}
    port = str(free_port())
    with WorkspaceService(data, "--port", port) as service:
        with service.client(key) as caller:
            assert caller.post("/v1/workspace", json={"label": "Bench"}).status_code == 201
        url = service.url
    ledger = Ledger(inner=ChaosTransport(inner=httpx.AsyncHTTPTransport(), seed=2, share=0.3, most=60))
    services = [WorkspaceService(data, "--port", port)]
    async with delivering(tmp_path / "ingestd.db", url=url, api_key=key, transport=ledger) as (running, mirror):
        for turn in range(TURNS):
            await asyncio.to_thread(desire_all, mirror, TO, wanted(turn, count) | bad)
            await (running.drained(60) if turn == TURNS - 1 else running.acknowledged_more(1))
            if turn < TURNS - 1:
                await asyncio.to_thread(services[-1].kill)
                services.append(await asyncio.to_thread(WorkspaceService, data, "--port", port))
        assert (mirror.status.pending(), mirror.status.rejected()) == (0, len(bad))
        with services[-1].client(key) as caller:
            (workspace,) = caller.get("/v1/workspace").json()
            (sink,) = caller.get(f"/v1/workspace/{workspace['id']}/data-sink").json()
        held = {entry["key"]: (entry["value"], entry["dataType"]) for entry in sink["entries"]}
    for service in services:
        service.__exit__(None, None, None)
    assert held == wanted(TURNS - 1, count)
    assert ledger.written_too_often(changes(count)) == {}
    assert ledger.faults.total() > 1_000


@pytest.mark.parametrize("bulk", [True, False], ids=["workspaced", "document server"])
async def test_an_outage_with_ten_thousand_updates_of_a_hundred_keys_ends_in_at_most_a_hundred_writes(
    tmp_path: Path, bulk: bool
) -> None:
    def values(turn: int) -> dict[str, Desired]:
        return {f"P-{n:03}": (f"{turn}.{n}", "scalar") for n in range(100)}

    data = tmp_path / "data"
    key = new_key(data) if bulk else "test-key"
    with DocumentServer() as server, WorkspaceService(data) as service:
        url = service.url if bulk else server.url
        server.workspace("Bench")
        with service.client(key) as caller:
            caller.post("/v1/workspace", json={"label": "Bench"})
        ledger = Ledger(inner=httpx.AsyncHTTPTransport())
        away = ChaosTransport(inner=ledger, seed=1, share=0, most=1_000_000, kinds=("drop before",))
        async with delivering(tmp_path / "ingestd.db", url=url, api_key=key, transport=away) as (running, mirror):
            await asyncio.to_thread(desire_all, mirror, TO, values(0))
            await running.drained()
            away.share = 1
            ledger.written.clear()
            for turn in range(1, 101):
                await asyncio.to_thread(desire_all, mirror, TO, values(turn))
            assert mirror.status.pending() == 100
            assert away.met.total() > 0
            away.share = 0
            assert await running.drained() == []
            assert mirror.status.pending() == 0
    assert ledger.written.total() <= 100
    assert set(ledger.written) == set(values(100))
