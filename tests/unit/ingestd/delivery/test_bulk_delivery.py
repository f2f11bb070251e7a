"""Delivery to a service that announces bulk: one request for each claim, and the handling of rejections."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest
from msgspec.structs import replace

from ingestd.core.address import SinkAddress
from ingestd.telemetry.catalogue.delivery import BatchNarrowed, EntriesRejected
from tests.support.bulk_service import BulkService
from tests.support.chaos_transport import ChaosTransport
from tests.support.delivery_rig import FAST_LIMITS, rig
from tests.support.memory_mirror import Desired


def address(service: BulkService) -> SinkAddress:
    workspace = str(service.store.create_workspace({"label": "Bench"})["id"])
    return SinkAddress(workspace=workspace, by="label", name="Test bench")


def held(service: BulkService) -> dict[str, tuple[str | None, str]]:
    (sink,) = service.store.by_label("Test bench")
    return service.store.values(sink)


def masses(service: BulkService) -> list[httpx.Request]:
    return [request for request in service.requests if request.url.path.endswith("/mass")]


def entries(count: int, value: str = "1") -> dict[str, Desired | None]:
    return {f"K-{n:05}": (value, "scalar") for n in range(count)}


async def test_creates_updates_and_deletes_are_sent_in_one_request() -> None:
    service = BulkService()
    async with rig(transport=service) as running:
        lane = running.desire(address(service), entries(10))
        await running.drained()
        service.requests.clear()
        to = (await running.mirror.lanes())[lane - 1].address
        running.desire(to, {"K-00000": None, "K-00001": ("2", "text"), "new": ("3", "scalar")})
        assert await running.drained() == []
    (request,) = service.requests
    assert {item["key"]: item.get("delete", False) for item in json.loads(request.content)} == {
        "K-00000": True,
        "K-00001": False,
        "new": False,
    }
    assert request.headers["Prefer"] == "return=minimal"
    assert request.headers["ClientId"] == "tester"
    assert held(service) == {f"K-{n:05}": ("1", "scalar") for n in range(2, 10)} | {
        "K-00001": ("2", "text"),
        "new": ("3", "scalar"),
    }


async def test_claims_respect_the_announced_limits() -> None:
    # contract M9
    service = BulkService(max_items=100)
    async with rig(transport=service) as running:
        to = address(service)
        running.desire(to, {"first": ("1", "scalar")})
        await running.drained()
        running.desire(to, entries(1050))
        assert await running.drained() == []
    sizes = [len(json.loads(request.content)) for request in masses(service)]
    assert sizes == [100] * 10 + [50]


async def test_a_rejected_batch_is_isolated_by_results_for_each_item() -> None:
    service = BulkService()
    async with rig(transport=service) as running:
        to = address(service)
        running.desire(to, {"first": ("1", "scalar")})
        await running.drained()
        service.bad = lambda key: key.endswith("7")
        running.desire(to, entries(1000))
        assert await running.drained() == []
    assert len(held(service)) == 901
    assert len(running.mirror.rejected_entries) == 100
    assert running.mirror.rejected_entries["K-00007"].reason == "The service refuses the entry (400): This key is bad."
    assert len(masses(service)) == 2
    assert masses(service)[1].url.query == b"partial=true"
    (event,) = running.events_of(EntriesRejected)
    assert isinstance(event, EntriesRejected)
    assert event.entries == 100


async def test_a_rejected_batch_is_halved_if_results_by_item_are_not_offered() -> None:
    service = BulkService(partial=False)
    async with rig(transport=service) as running:
        to = address(service)
        running.desire(to, {"first": ("1", "scalar")})
        await running.drained()
        service.bad = lambda key: key in {"K-00003", "K-00600"}
        running.desire(to, entries(1000))
        assert await running.drained() == []
    assert len(held(service)) == 999
    assert set(running.mirror.rejected_entries) == {"K-00003", "K-00600"}
    assert "Validation failed" in running.mirror.rejected_entries["K-00003"].reason
    assert len(masses(service)) < 50


async def test_a_batch_that_is_too_large_is_halved_and_the_lane_remembers_the_limit() -> None:
    service = BulkService()
    async with rig(transport=service) as running:
        to = address(service)
        running.desire(to, {"first": ("1", "scalar")})
        await running.drained()
        service.real_max_bytes = 10_000
        running.desire(to, entries(1000))
        assert await running.drained() == []
        refused = len(masses(service))
        running.desire(to, entries(1000, "2"))
        assert await running.drained() == []
        # The limit is remembered: the second load gets no 413.
        assert all(len(request.content) <= 10_000 for request in masses(service)[refused:])
    assert len(held(service)) == 1001
    assert running.mirror.rejected_entries == {}
    assert running.events_of(BatchNarrowed)


async def test_a_single_entry_that_is_too_large_is_rejected() -> None:
    service = BulkService()
    async with rig(transport=service) as running:
        to = address(service)
        running.desire(to, {"first": ("1", "scalar")})
        await running.drained()
        service.real_max_bytes = 1000
        running.desire(to, {"huge": ("x" * 2000, "text"), "small": ("1", "scalar")})
        assert await running.drained() == []
    assert set(held(service)) == {"first", "small"}
    assert "(413)" in running.mirror.rejected_entries["huge"].reason


async def test_a_sink_with_a_bad_entry_among_the_first_is_created() -> None:
    service = BulkService()
    service.bad = lambda key: key == "K-00003"
    async with rig(transport=service) as running:
        running.desire(address(service), entries(10))
        assert await running.drained() == []
    assert len(held(service)) == 9
    assert set(running.mirror.rejected_entries) == {"K-00003"}


async def test_a_value_that_returns_to_its_previous_value_is_written_although_the_service_replays_responses() -> None:
    service = BulkService()
    async with rig(transport=service) as running:
        to = address(service)
        for value in ("A", "B", "A", "B", "A"):
            running.desire(to, {"k": (value, "scalar")})
            assert await running.drained() == []
            assert held(service) == {"k": (value, "scalar")}


async def test_a_request_with_a_lost_response_is_repeated_with_its_idempotency_key() -> None:
    service = BulkService()
    chaos = ChaosTransport(inner=service, seed=1, share=0)
    async with rig(transport=chaos) as running:
        to = address(service)
        running.desire(to, {"first": ("1", "scalar")})
        await running.drained()
        chaos.share, chaos.most, chaos.kinds = 1, 1, ("drop after",)
        running.desire(to, entries(5))
        assert await running.drained() == []
    first, second = masses(service)
    assert first.headers["Idempotency-Key"] == second.headers["Idempotency-Key"]
    assert first.content == second.content


async def test_a_sink_that_is_created_again_after_its_deletion_has_another_idempotency_key() -> None:
    service = BulkService()
    to = address(service)
    async with rig(transport=service) as running:
        running.desire(to, entries(3))
        await running.drained()
        (sink,) = service.store.by_label("Test bench")
        service.store.delete_sink(to.workspace, sink)
    async with rig(transport=service) as again:
        # A new state file: same label, same entries, so the same body and the same key as before.
        again.desire(to, entries(3))
        assert await again.drained() == []
    assert held(service) == entries(3)


async def test_a_response_that_accounts_for_fewer_items_is_no_success() -> None:
    service = BulkService()

    class Shortened(httpx.AsyncBaseTransport):
        left = 1

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            if request.url.path.endswith("/mass") and self.left:
                self.left -= 1
                return httpx.Response(200, json={"accepted": 4}, headers={"X-Bulk-Mass": "max-items=9, max-bytes=999"})
            return await service.handle_async_request(request)

    async with rig(transport=Shortened()) as running:
        to = address(service)
        running.desire(to, {"first": ("1", "scalar")})
        await running.drained()
        running.desire(to, entries(5))
        assert await running.drained() == []
    assert len(held(service)) == 6
    assert any("accounts for 4 of 5 items" in attempt.sentence for _, attempt in running.mirror.attempts)


async def test_if_bulk_is_no_longer_announced_single_requests_are_used_and_nothing_is_rejected() -> None:
    service = BulkService()
    async with rig(transport=service) as running:
        to = address(service)
        running.desire(to, {"first": ("1", "scalar")})
        await running.drained()
        # The service was replaced by an older one: it announces nothing and rejects an array with 400.
        service.announce, service.max_items, service.partial = False, 0, False
        running.desire(to, entries(20))
        assert await running.drained() == []
    assert len(held(service)) == 21
    assert running.mirror.rejected_entries == {}


async def test_bulk_is_used_as_soon_as_it_is_announced() -> None:
    service = BulkService(announce=False)
    async with rig(transport=service) as running:
        to = address(service)
        running.desire(to, {"first": ("1", "scalar"), "second": ("1", "scalar")})
        await running.drained()
        service.announce = True
        running.desire(to, {"first": ("2", "scalar")})
        await running.drained()
        service.requests.clear()
        running.desire(to, entries(30))
        assert await running.drained() == []
    assert len(held(service)) == 32
    assert [len(json.loads(request.content)) for request in masses(service)] == [30]


async def test_a_lowered_limit_is_learned_from_a_rejection() -> None:
    service = BulkService()
    async with rig(transport=service) as running:
        to = address(service)
        running.desire(to, {"first": ("1", "scalar")})
        await running.drained()
        service.max_items = 100
        running.desire(to, entries(1000))
        assert await running.drained() == []
    assert len(held(service)) == 1001
    assert running.mirror.rejected_entries == {}
    assert [len(json.loads(request.content)) for request in masses(service)] == [1000] + [100] * 10


class Gate(httpx.AsyncBaseTransport):
    """Holds every bulk request until it is opened."""

    def __init__(self, inner: BulkService) -> None:
        self.inner = inner
        self.open = asyncio.Event()
        self.open.set()
        self.sizes: list[int] = []
        self.arrived: asyncio.Queue[int] = asyncio.Queue()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/mass"):
            self.sizes.append(len(json.loads(request.content)))
            self.arrived.put_nowait(self.sizes[-1])
            await self.open.wait()
        return await self.inner.handle_async_request(request)


async def test_two_requests_are_in_flight_and_later_changes_form_the_next_batch() -> None:
    service = BulkService()
    gate = Gate(service)
    two = replace(FAST_LIMITS, in_flight_at_first=2, in_flight_at_most=2)
    async with rig(transport=gate, limits=two) as running:
        to = address(service)
        running.desire(to, {"first": ("1", "scalar")})
        await running.drained()
        gate.open.clear()
        for start in range(2):
            running.desire(to, {f"{start}-{n}": ("1", "scalar") for n in range(5)})
            assert await asyncio.wait_for(gate.arrived.get(), 60) == 5
        for start in range(2, 10):
            running.desire(to, {f"{start}-{n}": ("1", "scalar") for n in range(5)})
        # A value that changes while its older one is in flight waits for the response.
        running.desire(to, {"0-0": ("2", "scalar")})
        gate.open.set()
        assert await running.drained() == []
    assert gate.sizes[:2] == [5, 5]
    assert sum(gate.sizes) == 51
    assert len(gate.sizes) <= 4
    assert held(service)["0-0"] == ("2", "scalar")
    assert len(held(service)) == 51


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("bulk", [True, False], ids=["bulk", "single form"])
async def test_after_random_faults_the_sink_is_exact(seed: int, bulk: bool) -> None:
    service = BulkService(announce=bulk, max_items=50, partial=bool(seed % 2))
    service.bad = lambda key: key.startswith("bad")
    chaos = ChaosTransport(inner=service, seed=seed)
    wanted: dict[str, Desired | None] = {}
    async with rig(transport=chaos, seed=seed) as running:
        to = address(service)
        for turn in range(4):
            change: dict[str, Desired | None] = {
                f"K-{n:03}": (f"{turn}.{n}", "scalar") for n in range(turn, 160, turn + 1)
            }
            change |= {f"K-{n:03}": None for n in range(turn * 7, 160, 40)}
            change |= {f"bad-{turn}": ("1", "scalar"), f"T-{turn}": ("1", "text")}
            running.desire(to, change)
            wanted |= change
            if turn % 2:
                assert await running.drained() == []
        assert await running.drained() == []
        assert running.mirror.pending(1) == set()
        # Truncated bodies and lost responses must not count as success.
        assert chaos.met.total() > 0
    assert held(service) == {key: value for key, value in wanted.items() if value and not key.startswith("bad")}
    assert set(running.mirror.rejected_entries) == {f"bad-{turn}" for turn in range(4)}


async def test_an_idle_lane_collects_changes_if_configured() -> None:
    service = BulkService()
    async with rig(transport=service, limits=replace(FAST_LIMITS, gather_seconds=0.2)) as running:
        to = address(service)
        running.desire(to, {"first": ("1", "scalar")})
        await running.drained()
        service.requests.clear()
        for number in range(20):
            running.desire(to, {f"K-{number}": ("1", "scalar")})
            await asyncio.sleep(0)
        assert await running.drained() == []
    assert len(masses(service)) == 1
    assert len(held(service)) == 21


async def test_the_limiter_bounds_the_requests_in_flight_and_each_has_its_own_slot() -> None:
    service = BulkService(max_items=10)
    gate = Gate(service)
    async with rig(transport=gate, limits=replace(FAST_LIMITS, in_flight_at_first=8, in_flight_at_most=8)) as running:
        to = address(service)
        running.desire(to, {"first": ("1", "scalar")})
        await running.drained()
        gate.open.clear()
        running.desire(to, entries(500))
        for _ in range(8):
            assert await asyncio.wait_for(gate.arrived.get(), 60) == 10
        assert gate.arrived.empty()
        gate.open.set()
        assert await running.drained() == []
    assert len(held(service)) == 501
