"""The dispatcher: a lane for every sink that the mirror knows, and one place to wake them and to ask how they stand."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from ingestd.client.service import ServiceClient
from ingestd.core.clock import Now, Random
from ingestd.delivery.governor import Governor
from ingestd.delivery.lane import Lane
from ingestd.delivery.pace import Pace
from ingestd.delivery.report import LaneReport
from ingestd.mirror.port import Deliverable
from ingestd.telemetry.event import Emit


class Dispatcher:
    """Delivers what is pending, sink by sink, until cancelled. All methods belong to the event loop's thread.

    ``on_settled`` is called after each entry or group of entries that was settled: what waits for it (a file to be
    archived) can be looked at again. ``random`` also makes the run's idempotency keys differ from every other run's.
    """

    def __init__(
        self,
        *,
        mirror: Deliverable,
        client: ServiceClient,
        emit: Emit,
        now: Now,
        random: Random,
        on_settled: Callable[[], None],
        pace: Pace | None = None,
    ) -> None:
        self._mirror = mirror
        self._client = client
        self._emit = emit
        self._now = now
        self._random = random
        self._on_settled = on_settled
        self._pace = pace or Pace()
        self.governor = Governor(
            service=client.address, pace=self._pace, emit=emit, clock=time.monotonic, now=now, random=random
        )
        self._nonce = f"{now():.6f}-{random():.17f}"
        self._lanes: dict[int, Lane] = {}
        self._look = asyncio.Event()
        self._look.set()
        self._waiting: set[asyncio.Event] = set()

    async def run(self) -> None:
        """Until cancelled; requests in flight then get the pace's grace to end and be settled.

        Raises:
            BaseExceptionGroup: the mirror failed, or a bug of ours; every lane has been stopped.
        """
        async with asyncio.TaskGroup() as lanes:
            while True:
                self._look.clear()
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
                            on_settled=self._on_settled,
                            changed=self._changed,
                        )
                        lane.wake()
                        self._lanes[state.id] = lane
                        lanes.create_task(lane.run(), name=f"lane {state.address}")
                self._changed()
                await self._look.wait()

    def wake(self) -> None:
        """Something became pending: idle lanes look at once, and sinks that are new get a lane."""
        self._look.set()
        for lane in self._lanes.values():
            lane.wake()

    def report(self) -> list[LaneReport]:
        """How every lane stands, by address."""
        return sorted((lane.report for lane in self._lanes.values()), key=lambda report: report.sink)

    async def drained(self) -> list[LaneReport]:
        """Wait until nothing is pending, or all that is left waits for a person; the lanes that are left, paused.

        Everything that was committed before the call is taken into account. A lane that backs off is waited for: give
        the wait a timeout. `run` has to be running.
        """
        self.wake()
        changed = asyncio.Event()
        self._waiting.add(changed)
        try:
            while True:
                changed.clear()
                if self._at_rest():
                    pending = {state.id for state in await self._mirror.lanes() if state.pending}
                    left = [lane for lane in self._lanes.values() if lane.id in pending]
                    if self._at_rest() and all(lane.report.standing == "paused" for lane in left):
                        return sorted((lane.report for lane in left), key=lambda report: report.sink)
                await changed.wait()
        finally:
            self._waiting.discard(changed)

    def _at_rest(self) -> bool:
        return not self._look.is_set() and all(lane.at_rest for lane in self._lanes.values())

    def _changed(self) -> None:
        for changed in self._waiting:
            changed.set()
