"""Delivery from the real state file into the real workspace service, in one process."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from ingestd.client.service import ServiceClient
from ingestd.core.address import SinkAddress
from ingestd.mirror.sqlite import SqliteMirror
from tests.support.delivery_rig import rig
from tests.support.desired_entries import desire_all
from tests.support.memory_mirror import Desired
from workspaced.app import Application, running
from workspaced.security.key_store import create_key
from workspaced.settings.model import Limits, WorkspacedSettings
from workspaced.storage.address import sqlite_address
from workspaced.storage.factory import transact

TO = SinkAddress(workspace="Bench", by="label", name="Mass budget")


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[SqliteMirror]:
    opened = SqliteMirror.open(tmp_path / "ingestd.db")
    yield opened
    opened.close()


@pytest.fixture
def key(tmp_path: Path) -> str:
    now = int(time.time() * 1000)
    made: str = transact(
        sqlite_address(tmp_path / "service"),
        lambda tx: create_key(tx, name="bench", role="owner", now=now, expires_at=None),
    )
    return made


@pytest_asyncio.fixture
async def service(tmp_path: Path, key: str) -> AsyncIterator[Application]:
    async with running(WorkspacedSettings(data=tmp_path / "service", limits=Limits(requests_per_minute=0))) as app:
        yield app


@pytest_asyncio.fixture
async def client(service: Application, key: str) -> AsyncIterator[ServiceClient]:
    async with ServiceClient(
        url="http://service.test", api_key=key, client_id="reader", transport=httpx.ASGITransport(service)
    ) as opened:
        assert (await opened.create_workspace("Bench")).ok
        yield opened


async def held(client: ServiceClient) -> dict[str, tuple[str | None, str | None]]:
    workspaces = (await client.list_workspaces()).value
    assert workspaces is not None
    sinks = (await client.list_sinks(workspaces[0].id)).value
    assert sinks is not None
    (sink,) = [sink for sink in sinks if sink.label == TO.name]
    found = (await client.get_sink(workspaces[0].id, sink.id)).value
    assert found is not None
    assert found.entries is not None
    return {entry.key: (entry.value, entry.data_type) for entry in found.entries}


async def test_twelve_thousand_entries_arrive_exactly_and_a_change_is_one_write(
    service: Application, client: ServiceClient, mirror: SqliteMirror, key: str
) -> None:
    wanted: dict[str, Desired] = {f"P-{n}/mass": (f"{n}.10", "scalar") for n in range(12_000)}
    transport = httpx.ASGITransport(service)
    async with rig(transport=transport, api_key=key, deliverable=mirror.delivery) as first:
        desire_all(mirror, TO, wanted)
        assert await first.drained() == []
    assert await held(client) == wanted
    wanted["P-7/mass"] = ("1e-7", "text")
    del wanted["P-8/mass"]
    async with rig(transport=transport, api_key=key, deliverable=mirror.delivery) as second:
        desire_all(mirror, TO, wanted)
        assert await second.drained() == []
    assert await held(client) == wanted
    assert mirror.status.pending() == 0


@pytest.mark.parametrize("other", ["{id}|Mass budget", "{ID}|Mass budget", "Bench| Mass budget"])
async def test_a_new_sink_that_pipelines_name_in_two_ways_is_created_once_and_the_second_name_is_reported(
    service: Application, client: ServiceClient, mirror: SqliteMirror, key: str, other: str
) -> None:
    (workspace,) = (await client.list_workspaces()).value or ()
    named, label = other.format(id=workspace.id, ID=workspace.id.upper()).split("|")
    async with rig(transport=httpx.ASGITransport(service), api_key=key, deliverable=mirror.delivery) as running_rig:
        desire_all(mirror, TO, {"P-1": ("1", "text")})
        desire_all(mirror, SinkAddress(workspace=named, by="label", name=label), {"P-2": ("2", "text")})
        (report,) = await running_rig.drained()
    assert len((await client.list_sinks(workspace.id)).value or ()) == 1
    assert "are the same sink of the service" in report.sentence


async def test_entries_that_the_service_rejects_are_stored_with_its_message(
    service: Application, client: ServiceClient, mirror: SqliteMirror, key: str
) -> None:
    bad: dict[str, Desired] = {
        " padded ": ("1", "scalar"),
        "..": ("1", "scalar"),
        "type": ("1", "no type"),
        "long": ("x" * 70_000, "text"),
    }
    good: dict[str, Desired] = {f"P-{n}": ("1", "scalar") for n in range(500)}
    transport = httpx.ASGITransport(service)
    async with rig(transport=transport, api_key=key, deliverable=mirror.delivery) as delivering:
        desire_all(mirror, TO, good | bad)
        assert await delivering.drained() == []
    assert await held(client) == good
    assert (mirror.status.pending(), mirror.status.rejected()) == (0, len(bad))


async def test_an_existing_sink_is_adopted(
    service: Application, client: ServiceClient, mirror: SqliteMirror, key: str, tmp_path: Path
) -> None:
    wanted: dict[str, Desired] = {f"P-{n}": ("1", "scalar") for n in range(300)}
    transport = httpx.ASGITransport(service)
    async with rig(transport=transport, api_key=key, deliverable=mirror.delivery) as first:
        desire_all(mirror, TO, wanted)
        await first.drained()
    other = SqliteMirror.open(tmp_path / "other.db")
    try:
        async with rig(transport=transport, api_key=key, deliverable=other.delivery) as second:
            desire_all(other, TO, wanted | {"P-5": ("2", "scalar")})
            assert await second.drained() == []
            attempts = [event for event in second.events if "delivered" in type(event).__name__.lower()]
            assert [getattr(event, "entries", 0) for event in attempts] == [1]
    finally:
        other.close()
    assert await held(client) == wanted | {"P-5": ("2", "scalar")}
