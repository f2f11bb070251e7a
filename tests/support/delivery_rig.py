"""A dispatcher that runs during a test, with a mirror and a service."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import cast

import httpx

from ingestd.client.service import ServiceClient
from ingestd.client.transport import Timeouts
from ingestd.client.writer import RisingWriter
from ingestd.core.address import SinkAddress
from ingestd.core.backoff import Backoff
from ingestd.delivery.delivery_limits import DeliveryLimits
from ingestd.delivery.dispatcher import Dispatcher
from ingestd.delivery.report import LaneReport
from ingestd.mirror.sqlite.delivery.delivery_store import DeliveryStore
from ingestd.process.supervision import KeepRunning, Run
from ingestd.telemetry.event import Event
from ingestd.wire.writer import Writer
from tests.support.memory_mirror import Desired, MemoryMirror

FAST_LIMITS = DeliveryLimits(
    retry=Backoff(base_seconds=0.001, cap_seconds=0.01),
    pause=Backoff(base_seconds=3600, cap_seconds=3600),
    grace_seconds=2,
)
"""Limits with retries after milliseconds. A pause lasts an hour, so that a test can observe it."""


class AcknowledgementCounter:
    """Counts the dispatcher's acknowledgement signals."""

    def __init__(self) -> None:
        self.count = 0
        self._waiting: list[tuple[int, asyncio.Event]] = []

    def __call__(self) -> None:
        self.count += 1
        for count, event in self._waiting:
            if self.count >= count:
                event.set()

    def reached(self, more: int) -> asyncio.Event:
        """Return an event that is set after this number of further signals."""
        event = asyncio.Event()
        self._waiting.append((self.count + more, event))
        return event


@dataclass(slots=True, kw_only=True)
class Rig:
    mirror: MemoryMirror
    client: ServiceClient
    dispatcher: Dispatcher
    events: list[Event]
    acknowledgements: AcknowledgementCounter
    task: asyncio.Task[None] | None = None

    def desire(self, address: SinkAddress, entries: Mapping[str, Desired | None]) -> int:
        lane = self.mirror.desire(address, entries)
        self.dispatcher.wake()
        return lane

    async def drained(self, seconds: float = 30) -> list[LaneReport]:
        """Wait until the dispatcher is drained; return its report. Fail at once if the dispatcher fails."""
        if self.task is None:
            raise AssertionError("the rig is not running")
        draining = asyncio.create_task(self.dispatcher.drain())
        try:
            async with asyncio.timeout(seconds):
                await asyncio.wait({draining, self.task}, return_when=asyncio.FIRST_COMPLETED)
            if self.task.done():
                self.task.result()
            return draining.result()
        finally:
            draining.cancel()

    async def acknowledged_more(self, groups: int) -> None:
        """Wait until ``groups`` further groups are acknowledged, or nothing is pending."""
        event = self.acknowledgements.reached(groups)
        reached, drained = asyncio.create_task(event.wait()), asyncio.create_task(self.drained())
        await asyncio.wait({reached, drained}, return_when=asyncio.FIRST_COMPLETED)
        for task in (reached, drained):
            task.cancel()
        await asyncio.wait({reached, drained})

    def events_of(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]

    async def start(self) -> None:
        self.task = asyncio.create_task(self.dispatcher.run())

    async def stop(self) -> None:
        """Cancel the dispatcher and wait until it has ended."""
        if self.task is not None and not self.task.done():
            self.task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self.task


def wake_callback(running: Rig) -> Callable[[int], None]:
    """Return the callback that a mirror calls, from any thread, when an entry becomes pending."""
    loop = asyncio.get_running_loop()

    def wake(sink: int) -> None:
        loop.call_soon_threadsafe(running.dispatcher.wake, sink)

    return wake


async def unsupervised(part: str, run: Run) -> None:
    """Run a part once. An exception of the part fails the test."""
    await run()


@contextlib.asynccontextmanager
async def rig(
    *,
    url: str = "http://service.test",
    transport: httpx.AsyncBaseTransport | None = None,
    mirror: MemoryMirror | None = None,
    deliverable: DeliveryStore | None = None,
    limits: DeliveryLimits = FAST_LIMITS,
    api_key: str = "test-key",
    timeouts: Timeouts | None = None,
    seed: int = 1,
    keep_running: KeepRunning = unsupervised,
    writer: RisingWriter | None = None,
    checks_sinks: bool = False,
) -> AsyncIterator[Rig]:
    """Run a dispatcher until the block ends. ``deliverable``: a store to use instead of the mirror in memory."""
    events: list[Event] = []
    acknowledgements = AcknowledgementCounter()
    state = mirror or MemoryMirror()
    writer = writer or RisingWriter(Writer(name="tester", epoch=1, attempt=1))
    async with ServiceClient(
        url=url, api_key=api_key, client_id="tester", transport=transport, timeouts=timeouts, writer=writer
    ) as client:
        dispatcher = Dispatcher(
            mirror=deliverable or cast("DeliveryStore", state),
            client=client,
            emit=events.append,
            now=time.time,
            random=random.Random(seed).random,
            on_acknowledged=lambda _: acknowledgements(),
            keep_running=keep_running,
            limits=limits,
            checks_sinks=checks_sinks,
        )
        running = Rig(
            mirror=state, client=client, dispatcher=dispatcher, events=events, acknowledgements=acknowledgements
        )
        await running.start()
        try:
            yield running
        finally:
            await running.stop()
