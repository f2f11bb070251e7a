"""The dispatcher: creates a lane for each sink of the mirror, wakes the lanes, and reports their status."""

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
    """Delivers pending entries, one lane for each sink, until cancelled. All methods belong to the event loop's thread.

    ``on_acknowledged`` is called with the sink after entries of it were acknowledged in the mirror. ``random`` also makes the
    idempotency keys of this run unique. ``keep_running`` supervises each lane: an unexpected exception stops only that lane,
    which starts again. ``clock`` returns monotonic seconds.
    """

    def __init__(
        self,
        *,
        mirror: Deliverable,
        client: ServiceClient,
        emit: Emit,
        now: Now,
        random: Random,
        on_acknowledged: Callable[[SinkAddress], None],
        keep_running: KeepRunning,
        limits: DeliveryLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keep_running = keep_running
        self._mirror = mirror
        self._client = client
        self._emit = emit
        self._now = now
        self._random = random
        self._on_acknowledged = on_acknowledged
        self._limits = limits or DeliveryLimits()
        self.limiter = Limiter(
            service=client.address, limits=self._limits, emit=emit, clock=clock, now=now, random=random
        )
        self._nonce = f"{now():.6f}-{random():.17f}"
        self._lanes: dict[int, Lane] = {}
        self._wakeups = ChangeSignal()
        self._checked_at = -1
        """The generation of the wake-ups when the mirror was last asked for lanes."""
        self.changes = ChangeSignal()

    async def run(self) -> None:
        """Deliver until cancelled; then requests in flight get `DeliveryLimits.grace_seconds` to complete.

        Raises:
            BaseExceptionGroup: the mirror failed. Every lane has stopped, and `run` may be called again.
        """
        self._lanes = {}
        self._checked_at = -1
        async with asyncio.TaskGroup() as lanes:
            while True:
                known = self._wakeups.generation
                for state in await self._mirror.lanes():
                    if state.id not in self._lanes:
                        lane = Lane(
                            state,
                            mirror=self._mirror,
                            client=self._client,
                            emit=self._emit,
                            now=self._now,
                            random=self._random,
                            limits=self._limits,
                            limiter=self.limiter,
                            nonce=self._nonce,
                            on_acknowledged=partial(self._on_acknowledged, state.address),
                            on_report=self.changes.notify,
                        )
                        lane.wake()
                        self._lanes[state.id] = lane
                        part = f"lane {state.address}"
                        lanes.create_task(self._keep_running(part, lane.run), name=part)
                self._checked_at = known
                self.changes.notify()
                await self._wakeups.wait_past(known)

    def wake(self, sink: int | None = None) -> None:
        """Notify the lane of a sink (None: all lanes) of pending entries; a new sink gets a lane."""
        if sink in self._lanes:
            self._lanes[sink].wake()
            return
        self._wakeups.notify()
        if sink is None:
            for lane in self._lanes.values():
                lane.wake()

    def retry_now(self) -> None:
        """End the wait of every lane that backs off or is paused; after a corrected key or configuration, for example."""
        self.limiter.retry_now()
        for lane in self._lanes.values():
            lane.retry_now()

    def report(self) -> list[LaneReport]:
        """Return the report of every lane, by address."""
        return sorted((lane.report for lane in self._lanes.values()), key=lambda report: report.sink)

    async def drain(self) -> list[LaneReport]:
        """Wait until no entry is pending, or every lane with pending entries is paused; return the reports of those.

        Includes everything that was committed before the call. A lane that backs off delays the end, so callers need a
        timeout. `run` must be running.
        """
        self.wake()
        while True:
            known = self.changes.generation
            if self._is_at_rest():
                pending = {state.id for state in await self._mirror.lanes() if state.pending}
                left = [lane for lane in self._lanes.values() if lane.id in pending]
                if self._is_at_rest() and all(lane.report.status == "paused" for lane in left):
                    return sorted((lane.report for lane in left), key=lambda report: report.sink)
            await self.changes.wait_past(known)

    def _is_at_rest(self) -> bool:
        return self._checked_at == self._wakeups.generation and all(lane.is_at_rest for lane in self._lanes.values())
