"""What the hosts of one PostgreSQL database agree on: rate limits, time, and the connections that the server permits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import TypeVar

import httpx
import psycopg
import pytest

from ingestd.process.postgres_address import PostgresAddress
from tests.support.running_store import OPTIONS, started
from tests.support.set_seconds import SetSeconds
from workspaced.app import running
from workspaced.core import clock as clocks
from workspaced.core.clock import now_ms
from workspaced.core.problems import UnavailableProblem
from workspaced.security import key_store
from workspaced.security.leased_rate_limit import LeasedRateLimit
from workspaced.security.rate_limits import Policy
from workspaced.settings.model import Limits, WorkspacedSettings
from workspaced.storage.factory import transact
from workspaced.storage.maintenance_jobs import JobLeases
from workspaced.storage.port import StorageUnusable, Transaction
from workspaced.storage.postgres_store import PostgresStore

T = TypeVar("T")
DEADLINE_SECONDS = 60
HOUR_SECONDS = 3_600


class CountedStore(PostgresStore):
    """Counts its writes."""

    writes = 0

    async def write(self, work: Callable[[Transaction], T], *, weight: int = 1) -> T:
        self.writes += 1
        return await super().write(work, weight=weight)


def _host(address: PostgresAddress, tmp_path: Path) -> AbstractAsyncContextManager[CountedStore]:
    return started(CountedStore(address, folder=tmp_path / "data", **OPTIONS))


class FixedClock(clocks.SharedClock):
    """A clock of the database that does not move."""

    def __init__(self, instant: int) -> None:
        super().__init__()
        self._instant = instant

    def now(self) -> int:
        return self._instant


async def _admitted(limit: LeasedRateLimit, caller: str, requests: int) -> int:
    allowances = await asyncio.gather(*(limit.admit(caller) for _ in range(requests)))
    return sum(allowance.allowed for allowance in allowances)


async def test_two_hosts_admit_a_tenth_more_than_one_at_most(database: PostgresAddress, tmp_path: Path) -> None:
    policy, clock = Policy("default", 1, 100), SetSeconds()
    async with _host(database, tmp_path) as one, _host(database, tmp_path) as other:
        limits = [LeasedRateLimit(policy, store, clock=clock) for store in (one, other)]
        first = await asyncio.gather(*(_admitted(limit, "both", 400) for limit in limits))
        assert 100 <= sum(first) <= 110
        # The statements are those of the blocks: a caller above its limit costs no statement for each request.
        assert one.writes + other.writes <= 10 + 2
        refused = await limits[0].admit("both")
        assert (refused.allowed, dict(refused.headers)["RateLimit"].split(";")[1]) == (False, "r=0")
        assert 1 <= refused.retry_seconds <= 60
        assert await _admitted(limits[1], "another caller", 50) == 50


async def test_one_host_alone_gets_the_whole_limit_and_its_refill(database: PostgresAddress, tmp_path: Path) -> None:
    clock = SetSeconds()
    async with _host(database, tmp_path) as store:
        store.clock = FixedClock(1_000_000)
        limit = LeasedRateLimit(Policy("default", 600, 20), store, clock=clock)
        assert 20 <= await _admitted(limit, "a", 100) <= 22
        store.clock = FixedClock(1_001_000)
        clock.now += 1
        assert 10 <= await _admitted(limit, "a", 100) <= 12
        assert limit.look("a").allowed is False
        store.clock = FixedClock(9_000_000)
        assert await limit.drop_full() == 1


async def test_a_caller_far_below_its_limit_costs_no_statement(database: PostgresAddress, tmp_path: Path) -> None:
    clock = SetSeconds()
    async with _host(database, tmp_path) as store:
        limit = LeasedRateLimit(Policy("default", 1_200, 200), store, clock=clock)
        for _ in range(100):
            assert (await limit.admit("a")).allowed
            clock.now += 1
        assert store.writes == 0


async def test_requests_to_either_host_count_for_one_key(database: PostgresAddress, tmp_path: Path) -> None:
    # contract G20
    key = transact(
        database, lambda tx: key_store.create_key(tx, name="svc:test", role="owner", now=now_ms(), expires_at=None)
    )
    async with AsyncExitStack() as stack:
        clients = []
        limits = Limits(requests_per_minute=1, request_burst=4)
        settings = WorkspacedSettings(data=tmp_path / "shared", postgres=database, limits=limits)
        for _ in range(2):
            app = await stack.enter_async_context(running(settings))
            client = httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://s")
            clients.append(await stack.enter_async_context(client))
        statuses = [
            (await client.get("/v1/workspace", headers={"x-api-key": key})).status_code
            for client in [*clients, *clients, *clients]
        ]
    assert statuses == [200, 200, 200, 200, 429, 429]


async def test_a_host_with_a_wrong_clock_has_the_time_of_the_database(
    database: PostgresAddress, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _host(database, tmp_path) as right, _host(database, tmp_path) as wrong:
        await right.write(lambda tx: tx.one("SELECT 1"))
        held = JobLeases(right, now=right.clock.now)
        async with held.held("a job") as is_held:
            assert is_held
            monkeypatch.setattr(clocks, "now_ms", lambda: int((time.time() + HOUR_SECONDS) * 1_000))
            await wrong.write(lambda tx: tx.one("SELECT 1"))
            assert abs(wrong.clock.now() - right.clock.now()) < HOUR_SECONDS * 1_000 / 2
            async with JobLeases(wrong, now=wrong.clock.now).held("a job") as is_taken:
                assert not is_taken


def test_a_slow_response_of_a_shared_clock_replaces_no_earlier_one() -> None:
    steady = [0]

    class Shared(clocks.SharedClock):
        def steady(self) -> int:
            return steady[0]

    def response(shared: int, *, after: int) -> Callable[[], int]:
        def ask() -> int:
            steady[0] += after
            return shared

        return ask

    clock = Shared()
    clock.measure(response(50_000, after=20))
    assert clock.now() == 50_010
    clock.measure(response(90_000, after=5_000))
    assert clock.now() == 55_010
    clock.measure(response(40_000, after=0))
    assert clock.now() == 40_000


def _permit(address: PostgresAddress, connections: int) -> None:
    with psycopg.connect(**dict(address.parameters), autocommit=True) as connection:  # type: ignore[arg-type]
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} CONNECTION LIMIT {connections}".encode())


async def _until_admitted(store: PostgresStore) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while True:
            try:
                await store.require_room()
            except UnavailableProblem:
                await asyncio.sleep(0.01)
            else:
                return


async def test_a_host_waits_while_other_hosts_hold_the_connections(database: PostgresAddress, tmp_path: Path) -> None:
    _permit(database, 16)
    try:
        async with AsyncExitStack() as stack:
            first = await stack.enter_async_context(_host(database, tmp_path))
            second = await stack.enter_async_context(AsyncExitStack())
            admitted = await second.enter_async_context(_host(database, tmp_path))
            for store in (first, admitted):
                await store.require_room()
            third = await stack.enter_async_context(_host(database, tmp_path))
            with pytest.raises(UnavailableProblem, match=r"up to 8 connections .* permits 16; 2 other hosts hold 16"):
                await third.require_room()
            await second.aclose()
            await _until_admitted(third)
    finally:
        _permit(database, -1)


async def test_a_host_that_needs_more_than_the_server_permits_does_not_start(
    database: PostgresAddress, tmp_path: Path
) -> None:
    _permit(database, 16)
    settings = WorkspacedSettings(data=tmp_path / "data", postgres=database, readers=2, streams=30)
    try:
        with pytest.raises(StorageUnusable, match=r"up to 36 connections .* permits 16\. Raise max_connections"):
            async with running(settings):
                pytest.fail("it started")
    finally:
        _permit(database, -1)
