"""Leases in the service and in a database follow the same rules."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from ingestd.client.leases import WriterLease
from ingestd.client.service import ServiceClient
from ingestd.standby.database_leases import DatabaseLeases
from ingestd.standby.database_url import schema_of
from ingestd.standby.lease import Lease
from ingestd.standby.lease_store import LeaseStore
from ingestd.standby.service_leases import ServiceLeases
from ingestd.telemetry import Event
from tests.support.postgres_databases import Databases
from workspaced.app import running
from workspaced.security.key_store import create_key
from workspaced.settings.model import Limits, WorkspacedSettings
from workspaced.storage.address import sqlite_address
from workspaced.storage.factory import transact

WRITER = "w"
MakeStore = Callable[[], LeaseStore]


@pytest_asyncio.fixture(params=["service", "database"])
async def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[MakeStore]:
    """Returns a function that connects another process to the same leases."""
    async with AsyncExitStack() as stack:
        if request.param == "database":
            databases: Databases = request.getfixturevalue("postgres_databases")
            schema = schema_of(stack.enter_context(databases.empty()))

            def in_database() -> LeaseStore:
                made = DatabaseLeases(schema, seconds=60)
                stack.callback(made.close)
                return made

            yield in_database
            return
        now = int(time.time() * 1000)
        key: str = transact(
            sqlite_address(tmp_path), lambda tx: create_key(tx, name="d", role="owner", now=now, expires_at=None)
        )
        settings = WorkspacedSettings(data=tmp_path, limits=Limits(requests_per_minute=0))
        app = await stack.enter_async_context(running(settings))
        transport = httpx.ASGITransport(app)

        def in_service() -> LeaseStore:
            return ServiceLeases(ServiceClient(url="http://s", api_key=key, client_id="d", transport=transport))

        yield in_service


@pytest.fixture
def store(make_store: MakeStore) -> LeaseStore:
    return make_store()


async def taken(store: LeaseStore, holder: str, writer: str = WRITER) -> WriterLease:
    lease = (await store.take(writer, holder=holder, seconds=60, above=0)).lease
    assert lease is not None
    return lease


async def test_a_lease_is_taken_once_and_its_first_epoch_is_2(store: LeaseStore) -> None:
    assert (await store.find(WRITER)).lease is None
    first = await taken(store, "a")
    assert (first.holder, first.epoch, first.successor) == ("a", 2, None)
    assert 0 < first.milliseconds_left <= 60_000
    refused = await store.take(WRITER, holder="b", seconds=60, above=0)
    assert refused.lease is None
    assert "a " in refused.refusal
    assert "exists already" not in refused.refusal, "that is about sinks and entries"
    found = (await store.find(WRITER)).lease
    assert found is not None
    assert (found.holder, found.epoch) == ("a", 2)
    assert (await taken(store, "a")).epoch == 3  # the same host after a crash


async def test_only_the_holder_renews_with_its_epoch_also_after_the_end(store: LeaseStore) -> None:
    first = await taken(store, "a")
    ended = (await store.release(WRITER, holder="a", epoch=first.epoch, reserved_seconds=0)).lease
    assert ended is not None
    assert ended.milliseconds_left == 0
    renewed = await store.renew(WRITER, holder="a", seconds=60, epoch=first.epoch)
    assert renewed.lease is not None
    assert renewed.lease.milliseconds_left > 50_000
    for holder, epoch in (("b", 2), ("a", 1)):
        refused = await store.renew(WRITER, holder=holder, seconds=60, epoch=epoch)
        assert (refused.lease, bool(refused.refusal)) == (None, True)


async def test_an_ended_lease_is_taken_and_no_other_one_is(store: LeaseStore) -> None:
    assert (await store.take(WRITER, holder="a", seconds=1, above=0)).lease is not None
    await taken(store, "c", writer="other")
    found = (await store.find(WRITER)).lease
    assert found is not None
    assert 0 < found.milliseconds_left <= 1_000
    await asyncio.sleep(found.milliseconds_left / 1_000 + 0.01)  # the clock is that of the store
    assert (await taken(store, "b")).epoch == 3
    assert (await store.take("other", holder="b", seconds=60, above=0)).lease is None


async def test_a_released_lease_is_free_and_its_former_holder_can_not_renew(store: LeaseStore) -> None:
    first = await taken(store, "a")
    assert (await store.release(WRITER, holder="b", epoch=2, reserved_seconds=0)).lease is None
    ended = (await store.release(WRITER, holder="a", epoch=first.epoch, reserved_seconds=60)).lease
    assert ended is not None
    assert ended.milliseconds_left == 0
    assert (await taken(store, "b")).epoch == 3
    assert (await store.renew(WRITER, holder="a", seconds=60, epoch=2)).lease is None


async def test_a_successor_is_shown_to_the_holder_and_alone_may_take_what_is_reserved(store: LeaseStore) -> None:
    assert (await store.ask(WRITER, holder="b")).refusal
    first = await taken(store, "a")
    assert (await store.ask(WRITER, holder="b")).refusal == ""
    renewed = (await store.renew(WRITER, holder="a", seconds=60, epoch=first.epoch)).lease
    assert renewed is not None
    assert renewed.successor == "b"
    await store.release(WRITER, holder="a", epoch=first.epoch, reserved_seconds=60)
    assert (await store.take(WRITER, holder="c", seconds=60, above=0)).lease is None
    assert ((await taken(store, "b")).epoch, (await store.find(WRITER)).refusal) == (3, "")


async def test_of_processes_that_take_an_ended_lease_at_once_one_has_it(make_store: MakeStore) -> None:
    stores = [make_store() for _ in range(8)]
    responses = await asyncio.gather(
        *(store.take(WRITER, holder=f"host {number}", seconds=60, above=0) for number, store in enumerate(stores))
    )
    assert [response.lease.epoch for response in responses if response.lease is not None] == [2]


async def test_the_rules_of_a_lease_hold_in_each_store(make_store: MakeStore) -> None:
    events: list[Event] = []
    first, second = (
        Lease(make_store(), writer=WRITER, holder=holder, seconds=8, emit=events.append) for holder in ("a", "b")
    )
    assert await first.try_to_take()
    assert first.may_send()
    assert not await second.try_to_take()
    assert (second.view.holder, second.view.epoch, second.may_send()) == ("a", 2, False)
    assert abs(second.service_time() - time.time()) < 60
    assert await second.ask() == ""
    keeping = asyncio.create_task(first.keep())
    async with asyncio.timeout(60):
        await first.wait_for_end()
        assert first.successor == "b"
        await first.release()
        assert not first.may_send()
        await first.wait_for_other_holder()
        assert await second.try_to_take()
    keeping.cancel()
    assert (second.epoch, second.may_send(), events) == (3, True, [])
