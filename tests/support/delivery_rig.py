"""A dispatcher at work on a mirror and a service, for the length of a test."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

import httpx

from ingestd.client.service import ServiceClient, Timeouts
from ingestd.core.address import SinkAddress
from ingestd.core.backoff import Backoff
from ingestd.delivery.dispatcher import Dispatcher
from ingestd.delivery.pace import Pace
from ingestd.delivery.report import LaneReport
from ingestd.telemetry.event import Event
from tests.support.memory_mirror import Desired, MemoryMirror

QUICK = Pace(
    retry=Backoff(base_seconds=0.001, cap_seconds=0.01),
    pause=Backoff(base_seconds=3600, cap_seconds=3600),
    grace_seconds=2,
)
"""Backs off for milliseconds; pauses for good, so that a pause shows."""


@dataclass(slots=True, kw_only=True)
class Rig:
    mirror: MemoryMirror
    client: ServiceClient
    dispatcher: Dispatcher
    events: list[Event]
    settlings: list[int] = field(default_factory=list)
    task: asyncio.Task[None] | None = None

    def desire(self, address: SinkAddress, entries: Mapping[str, Desired | None]) -> int:
        lane = self.mirror.desire(address, entries)
        self.dispatcher.wake()
        return lane

    async def drained(self, seconds: float = 30) -> list[LaneReport]:
        """As the dispatcher has it; a dispatcher that failed fails the test at once."""
        if self.task is None:
            raise AssertionError("the rig is not running")
        draining = asyncio.create_task(self.dispatcher.drained())
        async with asyncio.timeout(seconds):
            await asyncio.wait({draining, self.task}, return_when=asyncio.FIRST_COMPLETED)
        if self.task.done():
            draining.cancel()
            self.task.result()
        return draining.result()

    def told(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]

    async def start(self) -> None:
        self.task = asyncio.create_task(self.dispatcher.run())

    async def stop(self) -> None:
        """Cancel and see it end."""
        if self.task is not None and not self.task.done():
            self.task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self.task


@contextlib.asynccontextmanager
async def rig(
    *,
    url: str = "http://service.test",
    transport: httpx.AsyncBaseTransport | None = None,
    mirror: MemoryMirror | None = None,
    pace: Pace = QUICK,
    api_key: str = "test-key",
    timeouts: Timeouts | None = None,
    seed: int = 1,
) -> AsyncIterator[Rig]:
    """A dispatcher that runs until the block ends."""
    events: list[Event] = []
    settlings: list[int] = []
    state = mirror or MemoryMirror()
    async with ServiceClient(
        url=url, api_key=api_key, client_id="tester", transport=transport, timeouts=timeouts
    ) as client:
        dispatcher = Dispatcher(
            mirror=state,
            client=client,
            emit=events.append,
            now=time.time,
            random=random.Random(seed).random,
            on_settled=lambda: settlings.append(1),
            pace=pace,
        )
        running = Rig(mirror=state, client=client, dispatcher=dispatcher, events=events, settlings=settlings)
        await running.start()
        try:
            yield running
        finally:
            await running.stop()
