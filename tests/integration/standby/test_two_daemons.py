"""Two daemons with a service that offers no leases, and what each of them shows."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families
from ruamel.yaml import YAML

from ingestd.standby.status import StandbyStatus
from ingestd.telemetry.catalogue.intake import PartitionAcknowledged
from ingestd.telemetry.catalogue.standby import (
    LeaseInDatabase,
    LeaseTaken,
    LeaseUnconfirmed,
    ShipmentFailed,
    SinksReadBack,
    StandbyWaiting,
)
from ingestd.web.metrics import METRICS, standby_exposition
from tests.support.document_server import DocumentServer
from tests.support.postgres_databases import Databases
from tests.support.postgres_server import postgresql_server
from tests.support.standby_daemons import StandbyDaemon, several_daemons_in_one_process

RULES = Path(__file__).parents[3] / "config" / "monitoring" / "ingestd.rules.yaml"
OF_STANDBYS = {name for name, described in METRICS.items() if described.help.startswith("With --standby")}
AGGREGATES: Mapping[str, Callable[[list[float]], float]] = {"sum": sum, "count": len, "min": min}
EXPRESSION = re.compile(r"(sum|count|min) by \(job\) \((\w+)\) (==|>) (\d+)")


class Scene(NamedTuple):
    """The daemons of two hosts, and the service."""

    one: StandbyDaemon
    two: StandbyDaemon
    service: DocumentServer
    source: Path


@pytest.fixture(autouse=True)
def _one_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with several_daemons_in_one_process(monkeypatch):
        yield


def write(source: Path, **entries: str) -> None:
    part = source.with_suffix(".part")
    part.write_text("part,mass\n" + "".join(f"{name},{mass}\n" for name, mass in entries.items()))
    part.replace(source)


def scene_of(folder: Path, service: DocumentServer, place: str, lease_seconds: int = 20) -> Scene:
    service.workspace("Bench")
    source = folder / "parts.csv"
    write(source, x="1")
    pipelines = [
        {
            "name": "parts",
            "source": {"connector": "file", "path": str(source), "settle_seconds": 0, "rescan_seconds": 1},
            "entries": {"key": "{part}", "value": "{mass}"},
            "sink": {"workspace": "Bench", "label": "Parts"},
        }
    ]
    one, two = (
        StandbyDaemon(
            folder / name, service_url=service.url, place=place, pipelines=pipelines, lease_seconds=lease_seconds
        )
        for name in ("one", "two")
    )
    return Scene(one, two, service, source)


@pytest_asyncio.fixture
async def scene(tmp_path: Path, postgres_databases: Databases) -> AsyncIterator[Scene]:
    with postgres_databases.empty() as place, DocumentServer() as service:
        yield scene_of(tmp_path, service, place)


async def start_both(scene: Scene, stack: AsyncExitStack) -> tuple[asyncio.Task[None], asyncio.Task[None]]:
    """Start the first daemon, which becomes active, and then the other one; return their tasks."""
    first = await stack.enter_async_context(scene.one.running())
    await scene.one.wait_for(PartitionAcknowledged)
    second = await stack.enter_async_context(scene.two.running())
    await scene.two.wait_for(StandbyWaiting)
    return first, second


async def scraped(daemon: StandbyDaemon) -> dict[str, float]:
    """Return the metrics of a standby and of its lease."""
    return samples((await daemon.get("/metrics")).text)


def samples(text: str) -> dict[str, float]:
    found = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    return {sample.name: sample.value for sample in found if sample.name in OF_STANDBYS}


def firing(*hosts: Mapping[str, float]) -> set[str]:
    """Return the alerts about standbys that fire with these scrapes of the hosts of one job, after their time."""
    rules = YAML(typ="safe", pure=True).load(RULES.read_text())
    fired = set()
    for rule in (rule for group in rules["groups"] for rule in group["rules"]):
        match = EXPRESSION.fullmatch(rule["expr"])
        if match is None or match[2] not in OF_STANDBYS:
            continue
        values = [host[match[2]] for host in hosts if match[2] in host]
        value = AGGREGATES[match[1]](values) if values else None
        if value is not None and (value == float(match[4]) if match[3] == "==" else value > float(match[4])):
            fired.add(rule["alert"])
    return fired


async def test_without_leases_of_the_service_the_database_has_the_lease_and_a_standby_takes_over(scene: Scene) -> None:
    async with AsyncExitStack() as stack:
        await start_both(scene, stack)
        for daemon in (scene.one, scene.two):
            await daemon.wait_for(LeaseInDatabase)
        promoted = await scene.two.control("promote")
        assert promoted.is_done
        taken = await scene.two.wait_for(LeaseTaken)
        assert (taken.epoch, "shipment" in taken.restored) == (3, True)
        await scene.two.wait_for(SinksReadBack)
        write(scene.source, x="2", y="3")
        wanted = {"x": ("2", "scalar"), "y": ("3", "scalar")}
        await scene.two.wait_until(lambda: scene.service.values("Parts") == wanted)
        own = await scene.two.status()
        assert (own["role"], own["holder"], own["epoch"]) == ("active", own["here"], 3)


async def test_a_crashed_daemon_is_replaced_when_its_lease_in_the_database_has_ended(
    tmp_path: Path, postgres_databases: Databases
) -> None:
    with postgres_databases.empty() as place, DocumentServer() as service:
        scene = scene_of(tmp_path, service, place, lease_seconds=8)
        async with AsyncExitStack() as stack:
            first, _ = await start_both(scene, stack)
            scene.one.forget_to_leave()
            first.cancel()
            write(scene.source, x="2")
            taken = await scene.two.wait_for(LeaseTaken)
            assert (taken.epoch, "shipment" in taken.restored) == (3, True)
            await scene.two.wait_until(lambda: service.values("Parts") == {"x": ("2", "scalar")})


async def test_both_hosts_show_who_is_active_the_epoch_and_the_age_of_the_shipment(scene: Scene) -> None:
    async with AsyncExitStack() as stack:
        await start_both(scene, stack)
        active, waiting = await scene.one.status(), await scene.two.status()
        assert (active["role"], waiting["role"]) == ("active", "standby")
        assert active["holder"] == active["here"] == waiting["holder"] != waiting["here"]
        pages = [(await daemon.get("/")).text for daemon in (scene.one, scene.two)]
        texts = [await scene.one.lines(), (await scene.one.control("status")).text, pages[0]]
        for text in texts:
            assert f"This daemon ({active['here']}) is active with epoch 2." in text
        texts += [await scene.two.lines(), (await scene.two.control("status")).text, pages[1]]
        for text in texts[3:]:
            assert f"is a standby: {active['here']} is active with epoch 2." in text
        for text in texts:
            assert re.search(r"the newest shipment is \d+ s old \(postgresql://", text)
            assert "so the lease is in that database" in text
        for found in (active, waiting):
            assert (found["epoch"], found["lease_store"], found["failures"]) == (2, "database", [])
            assert 0 < found["lease_seconds"] <= 20
            assert 0 <= found["shipment_age"] < 60
        for daemon in (scene.one, scene.two):
            assert (await daemon.get("/readyz")).status_code == 200


async def test_both_hosts_have_the_metrics_and_the_alerts_fire_for_what_is_missing(scene: Scene) -> None:
    async with AsyncExitStack() as stack:
        await start_both(scene, stack)
        one, two = await scraped(scene.one), await scraped(scene.two)
    assert one.keys() == two.keys() == OF_STANDBYS
    assert (one["ingestd_standby_active"], two["ingestd_standby_active"]) == (1, 0)
    for found in (one, two):
        assert found["ingestd_lease_epoch"] == 2
        assert 0 < found["ingestd_lease_left_seconds"] <= 20
        assert 0 <= found["ingestd_shipment_age_seconds"] < 60
    assert firing(one, two) == set()
    assert firing(one) == {"IngestdNoStandby"}
    assert firing(two, two) == {"IngestdNoActiveDaemon"}
    late = standby_status(shipment_age=400.0)
    text, _ = standby_exposition(late, accept="")
    assert firing(samples(text.decode()), one | {"ingestd_shipment_age_seconds": 401.0}) == {"IngestdShipmentLate"}


async def test_a_lost_database_is_shown_on_both_hosts_and_the_standby_is_not_ready(tmp_path: Path) -> None:
    with postgresql_server() as server, DocumentServer() as service:
        scene = scene_of(tmp_path, service, server.url)
        async with AsyncExitStack() as stack:
            await start_both(scene, stack)
            with server.stopped():
                await scene.one.wait_for(ShipmentFailed)
                active = await scene.one.status()
                assert any("can't be used" in sentence for sentence in active["failures"])
                await scene.two.wait_for(LeaseUnconfirmed)
                ready = await scene.two.get("/readyz")
                assert (ready.status_code, ready.json()["ready"]) == (503, False)
                assert "can't be used" in ready.json()["reasons"][0]


def standby_status(**changed: Any) -> StandbyStatus:
    known: dict[str, Any] = {
        "role": "standby",
        "here": "two",
        "holder": "one",
        "epoch": 2,
        "lease_seconds": 9.0,
        "lease_store": "service",
        "place": "/place",
        "shipped_at": 1.0,
    }
    return StandbyStatus(**{**known, **changed})
