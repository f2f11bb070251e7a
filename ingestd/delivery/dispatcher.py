"""The dispatcher: a lane for every sink that the mirror knows, and one place to wake them and to ask how they stand."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial

from ingestd.client.service import ServiceClient
from ingestd.core.address import SinkAddress
from ingestd.core.clock import Now, Random
from ingestd.delivery.delivery_limits import DeliveryLimits
from ingestd.delivery.lane import Lane
from ingestd.delivery.limiter import Limiter
from ingestd.delivery.report import LaneReport
from ingestd.mirror.port import Deliverable
from ingestd.process.change_signal import ChangeSignal
from ingestd.process.supervision import KeepRunning
from ingestd.telemetry.event import Emit


class Dispatcher:
    """Delivers what is pending, sink by sink, until cancelled. All methods belong to the event loop's thread.

    ``on_settled`` is called with the sink after each entry or group of entries that was settled: what waits for it (a file
    to be archived) can be looked at again. ``random`` also makes the run's idempotency keys differ from every other run's.
    ``keep_running`` supervises each lane: an unforeseen exception stops this lane only, and it starts again. ``clock``:
    seconds that never go back.
    """

    def __init__(
        self,
        *,
        mirror: Deliverable,
        client: ServiceClient,
        emit: Emit,
        now: Now,
        random: Random,
        on_settled: Callable[[SinkAddress], None],
        keep_running: KeepRunning,
        pace: DeliveryLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keep_running = keep_running
        self._mirror = mirror
        self._client = client
        self._emit = emit
        self._now = now
        self._random = random
        self._on_settled = on_settled
        self._pace = pace or DeliveryLimits()
        self.governor = Limiter(service=client.address, pace=self._pace, emit=emit, clock=clock, now=now, random=random)
        self._nonce = f"{now():.6f}-{random():.17f}"
        self._lanes: dict[int, Lane] = {}
        self._wakes = ChangeSignal()
        self._looked = -1
        """The wake after which the mirror was last asked for lanes."""
        self.changes = ChangeSignal()

    async def run(self) -> None:
        """Until cancelled; requests in flight then get the pace's grace to end and be settled.

        Raises:
            BaseExceptionGroup: the mirror failed; every lane has been stopped, and `run` may be called again.
        """
        self._lanes = {}
        self._looked = -1
        async with asyncio.TaskGroup() as lanes:
            while True:
                known = self._wakes.generation
                for state in await self._mirror.lanes():
                    if state.id not in self._lanes:
                        lane = Lane(
                            state,
                            mirror=self._mirror,
                            client=self._client,
                            emit=self._emit,
                            now=self._now,
                            random=self._random,
                            pace=self._pace,
                            governor=self.governor,
                            nonce=self._nonce,
                            on_settled=partial(self._on_settled, state.address),
                            changed=self.changes.notify,
                        )
                        lane.wake()
                        self._lanes[state.id] = lane
                        part = f"lane {state.address}"
                        lanes.create_task(self._keep_running(part, lane.run), name=part)
                self._looked = known
                self.changes.notify()
                await self._wakes.wait_past(known)

    def wake(self, sink: int | None = None) -> None:
        """Make the lane of a sink (None: of any) look at what became pending; a sink that is new gets a lane."""
        if sink in self._lanes:
            self._lanes[sink].wake()
            return
        self._wakes.notify()
        if sink is None:
            for lane in self._lanes.values():
                lane.wake()

    def retry_now(self) -> None:
        """Make every lane that backs off or is paused try at once; after a mended key or configuration, say."""
        self.governor.retry_now()
        for lane in self._lanes.values():
            lane.retry_now()

    def report(self) -> list[LaneReport]:
        """How every lane stands, by address."""
        return sorted((lane.report for lane in self._lanes.values()), key=lambda report: report.sink)

    async def drained(self) -> list[LaneReport]:
        """Wait until nothing is pending, or all that is left waits for a person; the lanes that are left, paused.

        Everything that was committed before the call is taken into account. A lane that backs off is waited for: give
        the wait a timeout. `run` has to be running.
        """
        self.wake()
        while True:
            known = self.changes.generation
            if self._at_rest():
                pending = {state.id for state in await self._mirror.lanes() if state.pending}
                left = [lane for lane in self._lanes.values() if lane.id in pending]
                if self._at_rest() and all(lane.report.standing == "paused" for lane in left):
                    return sorted((lane.report for lane in left), key=lambda report: report.sink)
            await self.changes.wait_past(known)

    def _at_rest(self) -> bool:
        return self._looked == self._wakes.generation and all(lane.at_rest for lane in self._lanes.values())
