"""A pipeline is paused or resumed while another request, or a reload, changes the same."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from ingestd.client.service import ServiceClient
from ingestd.daemon.assembly import Assembly
from ingestd.daemon.control.requests import ControlPipeline, PipelineControlled
from ingestd.delivery.delivery_limits import DeliveryLimits
from tests.integration.daemon.test_reload_equivalence import Passes, Site, passes

__all__ = ["passes"]

Action = Literal["pause", "resume"]


def configured(*names: str) -> list[dict[str, Any]]:
    """Return pipelines with a folder each."""
    return [
        {
            "name": name,
            "source": {"connector": "directory", "path": f"drop{number}", "settle_seconds": 0, "rescan_seconds": 3600},
            "entries": {"key": f"{number}.{{part}}", "value": "{mass}"},
            "sink": {"workspace": "Bench", "label": f"Sink {number}"},
        }
        for number, name in enumerate(names)
    ]


@pytest.fixture
def site(tmp_path: Path, passes: Passes) -> Iterator[Site]:
    """A site with the pipelines steady and former."""
    with Site(tmp_path / "site", passes) as made:
        made.write(configured("steady", "former"), {})
        yield made


async def control(assembly: Assembly, action: Action, name: str) -> PipelineControlled:
    done = await assembly.command_handler.perform(ControlPipeline(pipeline=name, action=action), "operator")
    assert isinstance(done, PipelineControlled)
    return done


async def reload_and(site: Site, assembly: Assembly, action: Action, name: str) -> PipelineControlled:
    """Rename former to present by a reload; act when the state file has the new name, before the daemon uses it."""
    done: list[PipelineControlled] = []
    use_service = assembly.dispatcher.use_service

    async def act_first(client: ServiceClient, limits: DeliveryLimits) -> None:
        done.append(await control(assembly, action, name))
        await use_service(client, limits)

    site.write(configured("steady", "present"), {"requests_at_most": 2})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assembly.dispatcher, "use_service", act_first)
        reloaded = await assembly.reloader.reload(by="test")
    assert reloaded.renamed == (("former", "present"),)
    return done[0]


def paused(assembly: Assembly) -> list[str]:
    return [reader.pipeline for reader in assembly.readers if reader.is_paused]


async def test_a_pause_during_a_reload_is_not_lost(site: Site, passes: Passes) -> None:
    async with site.daemon() as assembly:
        await passes.wait_for(["steady", "former"], Counter())
        assert (await reload_and(site, assembly, "pause", "steady")).is_done
        assert paused(assembly) == ["steady"]


async def test_the_end_of_a_pause_during_a_reload_is_not_lost(site: Site, passes: Passes) -> None:
    async with site.daemon() as assembly:
        await passes.wait_for(["steady", "former"], Counter())
        for name in ("steady", "former"):
            await control(assembly, "pause", name)
        assert (await reload_and(site, assembly, "resume", "steady")).is_done
        assert paused(assembly) == ["present"]


async def test_a_name_that_a_reload_has_changed_is_not_paused(site: Site, passes: Passes) -> None:
    async with site.daemon() as assembly:
        await passes.wait_for(["steady", "former"], Counter())
        done = await reload_and(site, assembly, "pause", "former")
        assert done.sentence == "There is no pipeline 'former'. A reload renames or removes it now."
        assert (done.is_done, paused(assembly)) == (False, [])


async def test_the_second_of_two_pauses_at_the_same_time_reports_the_first(site: Site) -> None:
    async with site.daemon() as assembly:
        first, second = await asyncio.gather(*(control(assembly, "pause", "steady") for _ in range(2)))
        assert first.sentence.startswith("Pipeline steady is paused: ")
        assert second.sentence.endswith(" by operator already.")
        assert paused(assembly) == ["steady"]
