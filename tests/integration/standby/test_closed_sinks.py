"""After a take-over, sinks get nothing before they are compared, unless no pipeline writes them any more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from ingestd.daemon.assembly import Assembly, assemble
from ingestd.daemon.configuration import Configuration, read_configuration
from ingestd.process.change_signal import ChangeSignal
from ingestd.standby.standby import Standby
from tests.support.document_server import DocumentServer
from tests.support.standby_site import StandbySite

DEADLINE_SECONDS = 60


def pipeline(folder: Path, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "source": {"connector": "file", "path": str(folder / f"{name}.csv"), "settle_seconds": 0},
        "entries": {"key": "{part}", "value": "{mass}"},
        "sink": {"workspace": "Bench", "label": name.title()},
    }


def configured(folder: Path, url: str, pipelines: Sequence[dict[str, Any]]) -> Configuration:
    path = folder / "ingestd.yaml"
    state = "two/s.db"
    settings = {"service": {"url": url, "api_key": "test-key"}, "state": state, "pipelines": list(pipelines)}
    path.write_text(json.dumps(settings))
    return read_configuration(path, environment={}, cwd=folder)


@asynccontextmanager
async def daemon(configuration: Configuration, standby: Standby) -> AsyncIterator[tuple[Assembly, ChangeSignal]]:
    """Run the parts of a daemon that is active. The signal is notified when a sink opens."""
    opened = ChangeSignal()

    async with AsyncExitStack() as stack:
        assembly = await stack.enter_async_context(assemble(configuration, emit=lambda _: None, standby=standby))
        standby.gate.on_open = opened.notify
        tasks = [
            asyncio.create_task(run)
            for run in (
                assembly.supervisor.run(),
                assembly.dispatcher.run(),
                assembly.reloader.run(),
                assembly.ownership.run(assembly.supervisor.wake),
            )
        ]
        yield assembly, opened
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def knows_all_that_was_sent(standby: Standby) -> bool:
    return standby.restored_at is None


async def test_a_sink_is_closed_no_more_after_a_reload_removes_its_pipeline(tmp_path: Path) -> None:
    site = StandbySite(tmp_path)
    await site.run("one")
    (tmp_path / "parts.csv").write_text("part,mass\nx,1\n")  # the source of the other sink is away
    with DocumentServer() as service:
        service.workspace("Bench")
        both = [pipeline(tmp_path, "parts"), pipeline(tmp_path, "away")]
        standby = site.start("two")
        await standby.run_until_active()
        async with daemon(configured(tmp_path, service.url, both), standby) as (assembly, opened):
            async with asyncio.timeout(DEADLINE_SECONDS):
                await opened.wait_until(lambda: standby.status().waiting_sinks == ("Away in Bench",))
            await standby.note_opened()
            assert knows_all_that_was_sent(standby) is False
            configured(tmp_path, service.url, both[:1])
            reloaded = await assembly.reloader.reload(by="test")
            assert (reloaded.removed, reloaded.mistakes) == (("away",), ())
            async with asyncio.timeout(DEADLINE_SECONDS):
                await opened.wait_until(lambda: standby.status().waiting_sinks == ())
            await standby.note_opened()
            assert knows_all_that_was_sent(standby)
        await standby.leave()
