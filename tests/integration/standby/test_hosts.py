"""What a host does with its state file when it takes the lease."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from ingestd.core.errors import ConfigurationError, MirrorFull
from ingestd.standby.identity import LeaseKind
from ingestd.standby.lease_store import LeaseUnavailable
from tests.support.small_disk import small_disk
from tests.support.standby_site import StandbySite


@pytest.fixture
def site(tmp_path: Path) -> StandbySite:
    return StandbySite(tmp_path)


async def test_the_first_host_keeps_its_state_and_the_next_one_gets_it(site: StandbySite) -> None:
    site.create_state("one")
    identity = site.state("one").read_bytes()
    assert (await site.run("one")).restored_at is None
    assert site.state("one").read_bytes() == identity
    assert (await site.run("two")).restored_at is not None
    assert site.state("two").exists()


async def test_a_host_that_starts_again_keeps_its_state_if_no_other_was_active(site: StandbySite) -> None:
    site.create_state("one")
    await site.run("one")
    assert (await site.run("one")).restored_at is None
    await site.run("two")
    again = await site.run("one")
    assert again.restored_at is not None
    assert list(site.folder.glob("one/*replaced*")) == []


async def test_a_host_with_an_older_copy_of_its_disk_gets_the_newest_shipment(site: StandbySite) -> None:
    site.create_state("one")
    await site.run("one")
    process = site.start("one")
    await process.run_until_active()
    await process.ship()
    shutil.copytree(site.folder / "one", site.folder / "saved")
    await process.ship()
    await process.leave()
    shutil.rmtree(site.folder / "one")
    (site.folder / "saved").rename(site.folder / "one")
    assert (await site.run("one")).restored_at is not None


@pytest.mark.skipif(os.geteuid() != 0, reason="a small disk is mounted by root only")
async def test_a_host_with_a_full_disk_releases_the_lease_and_takes_over_when_there_is_space(site: StandbySite) -> None:
    site.create_state("one")
    with small_disk(site.folder / "two") as disk:
        await site.run("two")
        await site.run("one")
        disk.fill(os.getpid())
        with pytest.raises(MirrorFull, match="full"):
            await site.start("two").run_until_active()
        await site.run("one")
        disk.free(os.getpid())
        assert (await site.run("two")).restored_at is not None


async def test_the_sinks_stay_closed_after_a_restart_until_they_were_compared(site: StandbySite) -> None:
    site.create_state("one")
    await site.run("one")
    first = await site.run("two")
    assert first.restored_at is not None
    assert (await site.run("two")).restored_at == first.restored_at
    compared = site.start("two")
    await compared.run_until_active()
    await compared.note_opened()
    assert compared.restored_at is None
    await compared.leave()


async def test_only_a_host_that_waits_prepares_for_a_take_over(site: StandbySite) -> None:
    active = site.start("one")
    await active.run_until_active()
    waiting = asyncio.create_task(site.start("two").run_until_active())
    assert await site.prepared.get() == "two"
    waiting.cancel()
    await asyncio.wait([waiting])
    await active.leave()
    assert site.prepared.empty()


async def test_a_place_of_other_pipelines_or_of_another_writer_is_refused(site: StandbySite) -> None:
    site.create_state("one")
    await site.run("one")
    with pytest.raises(ConfigurationError, match="shipments of other pipelines"):
        await site.start("two", pipelines=("q",)).run_until_active()
    other = site.start("three", place="elsewhere")
    await other.run_until_active()
    await other.leave()
    with pytest.raises(ConfigurationError, match="another configuration"):
        await site.start("three").run_until_active()


async def test_a_host_with_another_key_is_not_ready_and_does_not_replace_the_shipments(site: StandbySite) -> None:
    site.create_state("one")
    active = site.start("one")
    await active.run_until_active()
    await active.ship()
    waiting = site.start("two", key=bytes(32))
    taking = asyncio.create_task(waiting.run_until_active())
    await site.prepared.get()
    assert "standby.encryption_key" in "".join(waiting.status().failures)
    taking.cancel()
    await active.leave()
    with pytest.raises(ConfigurationError, match="Give this host the standby"):
        await site.start("two", key=bytes(32)).run_until_active()
    assert not site.state("two").exists()
    assert (await site.run("three")).restored_at is not None
    assert site.state("three").exists(), "the lease was released, and the shipment is still there"


async def test_the_first_host_decides_where_the_lease_is_when_the_service_responds(site: StandbySite) -> None:
    away = iter([True, False])

    async def choose(_writer: str) -> LeaseKind:
        if next(away):
            raise LeaseUnavailable("the service is away")
        return "database"

    async def refuse(_writer: str) -> LeaseKind:
        raise AssertionError("another host has decided it")

    first = site.start("one", choose_lease=choose)
    await first.run_until_active()
    await first.leave()
    assert [type(event).__name__ for event in site.events[:2]] == ["LeaseUnconfirmed", "LeaseInDatabase"]
    second = site.start("two", choose_lease=refuse)
    await second.run_until_active()
    await second.leave()
    assert [process.status().lease_store for process in (first, second)] == ["database", "database"]
