"""The steps of the demo. All files of the demo are in one temporary folder, which is removed at the end."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ingestd.client.service import ServiceClient
from ingestd.commands.demo import samples
from ingestd.commands.demo.arrivals import Arrivals
from ingestd.commands.demo.child import READY_SECONDS, DemoFailed, environment_for_children, output_of, running

Say = Callable[[str], None]

_WORKSPACE = "Demo"
"""The workspace of the demo's configuration."""


async def run_demo(say: Say, *, stay: bool) -> None:
    """Run the demo, and pass its output to ``say``, line by line. With ``stay``, report deliveries until cancelled.

    Raises:
        DemoFailed: a step failed; the sentence names the step.
    """
    with tempfile.TemporaryDirectory(prefix="ingestd-demo-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        data = str(folder / "workspace")
        # The demo reads the service at each event of the daemon, and exceeds the default rate limit.
        environment = environment_for_children() | {"WORKSPACED_REQUESTS_PER_MINUTE": "0"}
        say(f"Starting the workspace service and the daemon in {folder}")
        key = await output_of(
            ["workspaced", "keys", "create", "demo", "--role", "owner", "--data", data], environment=environment
        )
        service = _Address()
        command = ["workspaced", "serve", "--data", data, "--port", "0"]
        async with running(command, environment=environment, listen=service.listen):
            environment |= {"INGESTD_DEMO_URL": await service.url(), "INGESTD_DEMO_KEY": key.split()[-1]}
            async with ServiceClient(
                url=environment["INGESTD_DEMO_URL"], api_key=environment["INGESTD_DEMO_KEY"], client_id="demo"
            ) as client:
                await _with_service(say, folder, client, environment, stay=stay)


async def _with_service(
    say: Say, folder: Path, client: ServiceClient, environment: Mapping[str, str], *, stay: bool
) -> None:
    response = await client.create_workspace(_WORKSPACE)
    if response.value is None:
        raise DemoFailed(f"The service did not create a workspace: {response.outcome.sentence}")
    configuration = samples.write_configuration(folder)
    samples.create_database(folder)
    arrivals = Arrivals(client, response.value.id)
    live = _LiveReport(say)

    def listen(line: str) -> None:
        if line.startswith("{"):
            event = json.loads(line)
            arrivals.listen(event)
            live.listen(event)

    command = ["ingestd", "run", "--config", str(configuration), "--log-level", "debug"]
    try:
        async with running(command, environment=environment, listen=listen):
            await _samples_arrive(say, folder, arrivals)
            await _change_two_cells(say, folder, arrivals)
            if stay:
                say("")
                say(f"The demo keeps running. Change or add files in {folder / 'drop'}")
                say("  named mass-budget*.csv, bench-run-*.csv or *.ndjson, with the columns of the existing files.")
                say(f"See the values: {environment['INGESTD_DEMO_URL']}/ui")
                say(f"  The key to sign in with: {environment['INGESTD_DEMO_KEY']}")
                say("Ctrl-C stops the demo and removes its files.")
                live.on = True
                await asyncio.Event().wait()
    finally:
        live.on = False
        if arrivals.delivered():
            say(f"{_grouped(arrivals.delivered())} entries delivered")


async def _samples_arrive(say: Say, folder: Path, arrivals: Arrivals) -> None:
    say("")
    for sample in samples.SAMPLES:
        text = sample.text
        entries = sample.entries(text)
        dropped = time.perf_counter()
        samples.drop(folder, sample.file, text)
        milliseconds = await arrivals.wait_visible(sample.sink, entries, since=dropped)
        say(_line(sample.file, len(entries), milliseconds))
    filled = time.perf_counter()
    entries = samples.fill_database(folder)
    milliseconds = await arrivals.wait_visible(samples.DATABASE_SINK, entries, since=filled)
    say(_line("pdm.db (polled every second)", len(entries), milliseconds))


async def _change_two_cells(say: Say, folder: Path, arrivals: Arrivals) -> None:
    sample = samples.SAMPLES[0]
    await arrivals.wait_acknowledged(sample.pipeline, 0)
    text, changes = samples.change_two_cells(sample.text)
    entries = sample.entries(text)
    address = f"{sample.sink} in {_WORKSPACE}"
    acknowledged, delivered = arrivals.acknowledged(sample.pipeline), arrivals.delivered(address)
    dropped = time.perf_counter()
    samples.drop(folder, sample.file, text)
    milliseconds = await arrivals.wait_visible(sample.sink, entries, since=dropped)
    await arrivals.wait_acknowledged(sample.pipeline, acknowledged)
    await arrivals.wait_delivered(address, delivered)
    sent = arrivals.delivered(address) - delivered
    say("")
    say(f"Two cells of {sample.file} changed: {' and '.join(changes)}.")
    if sent != len(changes):
        raise DemoFailed(f"{sent} entries were sent, expected {len(changes)}. Please report this.")
    say(_line(sample.file, sent, milliseconds))


class _Address:
    """The URL of the service, read from the service's output, because the service chooses a free port."""

    def __init__(self) -> None:
        self._url: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def listen(self, line: str) -> None:
        found = re.search(r"http://127\.0\.0\.1:\d+", line)
        if found and not self._url.done():
            self._url.set_result(found[0])

    async def url(self) -> str:
        try:
            async with asyncio.timeout(READY_SECONDS):
                return await self._url
        except TimeoutError:
            raise DemoFailed("The workspace service is ready but did not print its address.") from None


class _LiveReport:
    """Prints events while the demo keeps running."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self.on = False

    def listen(self, event: Mapping[str, Any]) -> None:
        if not self.on:
            return
        match event:
            case {"event": "entries_delivered", "sink": sink, "entries": entries, "milliseconds": milliseconds}:
                self._say(f"  {sink}: {entries} entries delivered, the request took {milliseconds:.0f} ms")
            case {"event": "partition_acknowledged", "pipeline": pipeline, "partition": partition}:
                self._say(f"  {pipeline}: {partition} is delivered")
            case {"level": "warning" | "error", "sentence": sentence}:
                self._say(f"  {sentence}")


def _line(what: str, entries: int, milliseconds: float) -> str:
    return f"  {what:<28} {_grouped(entries):>6} entries visible after {milliseconds:6.0f} ms"


def _grouped(number: int) -> str:
    return f"{number:,}".replace(",", " ")
