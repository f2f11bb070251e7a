"""The lease as one process sees it: sending stops in time, by its own clock, whatever the clocks of others say."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from ingestd.core.errors import ConfigurationError
from ingestd.telemetry import Event
from tests.support.lease_service import LeaseService, SetClock, lease_of, lease_problem


@pytest.fixture
def service() -> LeaseService:
    return LeaseService()


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def events() -> list[Event]:
    return []


async def test_sending_stops_at_three_quarters_of_the_lease(
    service: LeaseService, clock: SetClock, events: list[Event]
) -> None:
    lease = lease_of(service, clock, events.append)
    assert not lease.may_send()
    assert await lease.try_to_take()
    clock.seconds += 7.4
    assert lease.may_send()
    clock.seconds += 0.2  # also if the process was stopped meanwhile: nothing has to run
    assert not lease.may_send()
    assert lease.view.left_seconds == pytest.approx(2.4)


async def test_a_permit_waits_for_the_renewal(service: LeaseService, clock: SetClock, events: list[Event]) -> None:
    lease = lease_of(service, clock, events.append, seconds=2)
    await lease.try_to_take()
    clock.seconds += 5
    waiting = asyncio.create_task(lease.permit())
    keeping = asyncio.create_task(lease.keep())
    async with asyncio.timeout(30):
        await waiting
    keeping.cancel()
    assert lease.may_send()


async def test_a_slow_response_counts_from_its_request(
    service: LeaseService, clock: SetClock, events: list[Event]
) -> None:
    def slow(request: httpx.Request) -> httpx.Response:
        if request.method == "PUT":
            clock.seconds += 8
        return service.lease(request)

    service.respond = slow
    lease = lease_of(service, clock, events.append)
    assert await lease.try_to_take()
    assert not lease.may_send()


async def test_a_lease_of_another_process_is_not_taken_and_one_that_was_taken_is_lost(
    service: LeaseService, clock: SetClock, events: list[Event]
) -> None:
    first, second = lease_of(service, clock, events.append), lease_of(service, clock, events.append, holder="two")
    assert await first.try_to_take()
    assert not await second.try_to_take()
    assert (second.view.holder, second.view.left_seconds) == ("one", 10)
    service.left = 0
    assert await second.try_to_take()
    async with asyncio.timeout(30):
        await first.keep()
    assert first.lost
    assert not first.may_send()
    assert second.epoch == 3


async def test_an_outage_of_the_service_stops_sending_and_deposes_no_daemon(
    service: LeaseService, clock: SetClock, events: list[Event]
) -> None:
    failed = asyncio.Event()

    def fail(_: httpx.Request) -> httpx.Response:
        failed.set()
        return httpx.Response(503)

    lease = lease_of(service, clock, events.append, seconds=2)
    await lease.try_to_take()
    lease_respond, service.respond = service.respond, fail
    keeping = asyncio.create_task(lease.keep())
    async with asyncio.timeout(30):
        await failed.wait()
        clock.seconds += 60
        assert not lease.may_send()
        assert not lease.lost
        service.respond = lease_respond
        await lease.permit()
        assert lease.may_ship()
    keeping.cancel()
    assert [type(event).__name__ for event in events] == ["LeaseUnconfirmed", "LeaseConfirmed"]


async def test_the_time_of_the_service_is_that_of_its_last_response(
    service: LeaseService, clock: SetClock, events: list[Event]
) -> None:
    lease = lease_of(service, clock, events.append)
    await lease.try_to_take()
    at = lease.service_time()
    clock.seconds += 3
    assert lease.service_time() - at == 3
    assert at == pytest.approx(1795773600.0)


async def test_a_service_without_leases_is_named(service: LeaseService, clock: SetClock, events: list[Event]) -> None:
    def respond(request: httpx.Request) -> httpx.Response:
        return (
            httpx.Response(200, json=[]) if request.url.path == "/v1/workspace" else lease_problem(404, "no_such_path")
        )

    service.respond = respond
    with pytest.raises(ConfigurationError, match="offers no leases"):
        await lease_of(service, clock, events.append).try_to_take()


async def test_a_proxy_without_its_service_is_no_service_without_leases(
    service: LeaseService, clock: SetClock, events: list[Event]
) -> None:
    service.respond = lambda _: httpx.Response(404, text="no such site")
    assert not await lease_of(service, clock, events.append).try_to_take()
    assert [type(event).__name__ for event in events] == ["LeaseUnconfirmed"]
