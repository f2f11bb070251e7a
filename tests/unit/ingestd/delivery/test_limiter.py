from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from ingestd.client.response import ServiceResponse
from ingestd.core.address import SinkAddress
from ingestd.core.outcome import Facts, Fault, classify
from ingestd.core.rate import Announced
from ingestd.delivery.limiter import Limiter
from ingestd.telemetry.catalogue.delivery import ServiceAway, ServiceBack
from ingestd.telemetry.event import Event
from tests.support.bulk_service import BulkService
from tests.support.delivery_rig import FAST_LIMITS, rig


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def make_limiter(clock: Clock, events: list[Event] | None = None, *, at_first: int = 1) -> Limiter:
    sent: list[Event] = events if events is not None else []
    limits = replace(FAST_LIMITS, in_flight_at_first=at_first)
    return Limiter(service="s", limits=limits, emit=sent.append, clock=clock, now=clock, random=lambda: 1.0)


def response(status: int | None = None, fault: Fault | None = None, **more: Any) -> ServiceResponse[Any]:
    outcome = classify(Facts(status=status, fault=fault, retry_after_seconds=more.pop("retry_after_seconds", None)))
    return ServiceResponse(operation="x", outcome=outcome, status=status, milliseconds=20, **more)


async def test_slots_are_given_in_the_order_of_the_requests() -> None:
    limiter = make_limiter(Clock())
    first = limiter.try_acquire()
    assert first is not None
    assert limiter.try_acquire() is None
    order: list[int] = []

    async def one(number: int) -> None:
        permit = await limiter.acquire()
        order.append(number)
        permit.release()

    waiting = [asyncio.create_task(one(number)) for number in range(5)]
    await asyncio.sleep(0)
    first.release()
    first.release()
    await asyncio.gather(*waiting)
    assert order == [0, 1, 2, 3, 4]


async def test_a_cancelled_waiter_takes_no_slot() -> None:
    limiter = make_limiter(Clock())
    first = limiter.try_acquire()
    assert first is not None
    waiting = [asyncio.create_task(limiter.acquire()) for _ in range(2)]
    await asyncio.sleep(0)
    # One is cancelled while it waits; the other at the moment in which it gets its slot.
    waiting[0].cancel()
    first.release()
    waiting[1].cancel()
    await asyncio.wait(waiting)
    assert limiter.try_acquire() is not None


async def test_a_wait_that_the_service_requests_applies_to_all_requests() -> None:
    clock = Clock()
    limiter = make_limiter(clock, at_first=4)
    limiter.record_response(response(429, retry_after_seconds=7))
    assert limiter.try_acquire() is None
    clock.now += 7
    assert limiter.try_acquire() is not None


async def test_an_announced_limit_is_not_exceeded() -> None:
    clock = Clock()
    limiter = make_limiter(clock, at_first=32)
    limiter.record_response(response(200, rate=Announced(remaining=3, reset_seconds=60, quota=60, window_seconds=60)))
    assert sum(limiter.try_acquire() is not None for _ in range(10)) == 3
    clock.now += 2
    assert sum(limiter.try_acquire() is not None for _ in range(10)) == 2


async def test_while_the_service_is_unavailable_one_probe_decides_for_all() -> None:
    clock, events = Clock(), list[Event]()
    limiter = make_limiter(clock, events)
    for _ in range(5):
        assert limiter.request_turn() is None
        limiter.record_response(response(fault=Fault.REFUSED))
    away = limiter.request_turn()
    assert away is not None
    assert "Nothing listens" in away.sentence
    clock.now = away.until
    assert limiter.request_turn() is None
    known, wait = limiter.changes.generation, limiter.request_turn()
    assert wait is not None
    changed = asyncio.create_task(limiter.wait_for_turn(known, wait))
    await asyncio.sleep(0)
    limiter.record_response(response(200))
    await asyncio.wait_for(changed, 60)
    assert limiter.request_turn() is None
    assert [type(event) for event in events] == [ServiceAway, ServiceBack]


async def test_a_probe_that_sent_no_request_is_passed_to_the_next_waiter() -> None:
    clock = Clock()
    limiter = make_limiter(clock)
    for _ in range(5):
        limiter.record_response(response(503))
    away = limiter.request_turn()
    assert away is not None
    clock.now = away.until
    assert limiter.request_turn() is None
    limiter.end_turn()
    assert limiter.request_turn() is None


@pytest.mark.parametrize("status", [200, 400, 401, 404, 409, 429, 500])
async def test_any_response_of_the_service_ends_its_unavailability(status: int) -> None:
    limiter = make_limiter(Clock())
    for _ in range(20):
        limiter.record_response(response(status, retry_after_seconds=0))
    assert limiter.request_turn() is None


class Away(httpx.AsyncBaseTransport):
    """Rejects connections until the test permits them, and counts them."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self.inner = inner
        self.away = False
        self.refused = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self.away:
            self.refused += 1
            raise httpx.ConnectError("nothing listens")
        return await self.inner.handle_async_request(request)


async def test_many_lanes_probe_an_unavailable_service_as_seldom_as_one_and_resume_together() -> None:
    service = BulkService()
    transport = Away(service)
    workspace = str(service.store.create_workspace({"label": "Bench"})["id"])
    lanes = [SinkAddress(workspace=workspace, by="label", name=f"Sink {number}") for number in range(20)]
    async with rig(transport=transport) as running:
        transport.away = True
        for lane in lanes:
            running.desire(lane, {"a": ("1", "scalar")})
        async with asyncio.timeout(20):
            await running.dispatcher.limiter.changes.wait_until(lambda: len(running.events_of(ServiceAway)) >= 6)
        # Each lane notices the failure at most once. Then there is one probe at a time; the last one emits no event.
        assert transport.refused <= 20 + len(running.events_of(ServiceAway)) + 1
        transport.away = False
        assert await running.drained() == []
    assert len(running.events_of(ServiceBack)) == 1
    assert all(service.store.by_label(lane.name) for lane in lanes)


class WrongKey(httpx.AsyncBaseTransport):
    """Responds 401 until the key is corrected."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self.inner = inner
        self.corrected = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self.corrected:
            return await self.inner.handle_async_request(request)
        return httpx.Response(401, json={"error": "Unauthorized"})


async def test_retry_now_ends_the_wait_of_every_paused_lane() -> None:
    service = BulkService()
    transport = WrongKey(service)
    workspace = str(service.store.create_workspace({"label": "Bench"})["id"])
    lanes = [SinkAddress(workspace=workspace, by="label", name=f"Sink {number}") for number in range(8)]
    async with rig(transport=transport) as running:
        for lane in lanes:
            running.desire(lane, {"a": ("1", "scalar")})
        assert len(await running.drained()) == 8
        transport.corrected = True
        acknowledged = running.acknowledgements.reached(8)
        running.dispatcher.retry_now()
        await asyncio.wait_for(acknowledged.wait(), 20)
        assert not any(running.mirror.pending(lane) for lane in range(1, 9))


async def test_retry_now_makes_the_next_probe_due() -> None:
    limiter = make_limiter(Clock())
    for _ in range(5):
        limiter.record_response(response(fault=Fault.REFUSED))
    known, wait = limiter.changes.generation, limiter.request_turn()
    assert wait is not None
    changed = asyncio.create_task(limiter.wait_for_turn(known, wait))
    await asyncio.sleep(0)
    limiter.retry_now()
    await asyncio.wait_for(changed, 60)
    assert limiter.request_turn() is None
    assert limiter.request_turn() is not None, "one probe at a time"


async def test_while_access_is_denied_one_request_probes_for_all_within_ten_seconds() -> None:
    clock = Clock()
    limiter, first, second = make_limiter(clock), object(), object()
    limiter.record_denial("service", "w", "The key is not known.")
    limiter.record_denial("service", "v", "The key is not known.")
    wait = limiter.request_turn(first, "w")
    assert wait is not None
    assert wait.status == "paused"
    assert wait.seconds is not None
    assert wait.seconds <= 10
    assert limiter.request_turn(second, "another workspace") is not None
    clock.now += wait.seconds
    assert limiter.request_turn(first, "w") is None
    waiting = limiter.request_turn(second, "v")
    assert waiting is not None
    assert waiting.seconds is None, "until the first process has noticed"
    limiter.record_response(response(401))
    limiter.end_turn(first)
    limiter.record_denial("service", "w", "The key is not known.")
    assert limiter.request_turn(second, "v") is not None
    clock.now += 10
    assert limiter.request_turn(second, "v") is None
    limiter.record_response(response(200))
    assert limiter.request_turn(first, "w") is None


async def test_a_missing_permission_in_one_workspace_stops_no_other() -> None:
    clock = Clock()
    limiter, first, second = make_limiter(clock), object(), object()
    limiter.record_denial("workspace", "w", "No right.")
    assert limiter.request_turn(first, "w") is not None
    assert limiter.request_turn(second, "v") is None
    limiter.record_response(response(200))
    assert limiter.request_turn(first, "w") is not None, "a response for another workspace does not concern this one"
    clock.now += 10
    assert limiter.request_turn(first, "w") is None
    limiter.clear_denial("w")
    assert limiter.request_turn(second, "w") is None
