"""The dispatcher: creates a lane for each sink of the mirror, wakes the lanes, and reports their status."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial

from ingestd.client.service import ServiceClient
from ingestd.core.address import SinkAddress
from ingestd.core.clock import Now, Random
from ingestd.delivery.delivery_limits import DeliveryLimits
from ingestd.delivery.lane import Lane
from ingestd.delivery.lane_parts import SinkLocks
from ingestd.delivery.limiter import Limiter
from ingestd.delivery.report import LaneReport
from ingestd.mirror.sqlite.delivery.delivery_store import DeliveryStore
from ingestd.process.change_signal import ChangeSignal
from ingestd.process.supervision import KeepRunning
from ingestd.telemetry.event import Emit


class Dispatcher:
    """Delivers pending entries, one lane for each sink, until cancelled. All methods belong to the event loop's thread.

    ``on_acknowledged`` is called with the sink after entries of the sink were acknowledged in the mirror. ``random`` also makes
    the idempotency keys of this run unique. ``keep_running`` supervises each lane: an unexpected exception stops only that
    lane, which starts again. ``clock`` returns monotonic seconds. ``checks_sinks``: each lane first checks whether its sink
    still exists. ``may_send`` returns whether a sink may get entries; call `wake` when its result changes.
    """

    def __init__(
        self,
        *,
        mirror: DeliveryStore,
        client: ServiceClient,
        emit: Emit,
        now: Now,
        random: Random,
        on_acknowledged: Callable[[SinkAddress], None],
        keep_running: KeepRunning,
        limits: DeliveryLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
        checks_sinks: bool = False,
        may_send: Callable[[SinkAddress], bool] = lambda _: True,
    ) -> None:
        self._may_send = may_send
        self._keep_running = keep_running
        self._mirror = mirror
        self._client = client
        self._emit = emit
        self._now = now
        self._random = random
        self._on_acknowledged = on_acknowledged
        self._clock = clock
        self._checks_sinks = checks_sinks
        self._connect(client, limits or DeliveryLimits())
        self._next: tuple[ServiceClient, DeliveryLimits] | None = None
        self._is_running = False
        self._lanes: dict[int, Lane] = {}
        self._unknown: dict[int, int] = {}
        self._resolving: SinkLocks = defaultdict(asyncio.Lock)
        self._wakeups = ChangeSignal()
        self._checked_at = -1
        """The generation of `_wakeups` before the sinks were last read from the mirror."""
        self.changes = ChangeSignal()

    async def run(self) -> None:
        """Deliver until cancelled; then requests in flight get `DeliveryLimits.grace_seconds` to complete.

        Raises:
            BaseExceptionGroup: the mirror failed. Every lane has stopped, and `run` may be called again.
        """
        self._is_running = True
        try:
            while True:
                await self._deliver()
                self._take_next()
        finally:
            self._is_running = False
            self._take_next()

    async def use_service(self, client: ServiceClient, limits: DeliveryLimits) -> None:
        """Change the service or the limits. The new values apply when this call returns.

        The lanes end as at a cancellation of `run`, and start again. The caller may then close the former client.
        """
        self._next = (client, limits)
        if not self._is_running:
            self._take_next()
            return
        self._wakeups.notify()
        await self.changes.wait_until(lambda: self._client is client)

    def _connect(self, client: ServiceClient, limits: DeliveryLimits) -> None:
        self._client, self.limits = client, limits
        self.limiter = Limiter(
            service=client.address,
            limits=limits,
            emit=self._emit,
            clock=self._clock,
            now=self._now,
            random=self._random,
        )
        self._nonce = f"{self._now():.6f}-{self._random():.17f}"

    def _take_next(self) -> None:
        if self._next is not None:
            self._connect(*self._next)
            self._next = None
            self.changes.notify()

    async def _deliver(self) -> None:
        """Run the lanes until another service is to be used."""
        self._lanes = {}
        self._checked_at = -1
        tasks: list[asyncio.Task[None]] = []
        async with asyncio.TaskGroup() as lanes:
            while self._next is None:
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
                            limits=self.limits,
                            limiter=self.limiter,
                            nonce=self._nonce,
                            unknown=self._unknown,
                            resolving=self._resolving,
                            on_acknowledged=partial(self._on_acknowledged, state.address),
                            on_report=self.changes.notify,
                            checks_sink=self._checks_sinks,
                            may_send=partial(self._may_send, state.address),
                        )
                        lane.wake()
                        self._lanes[state.id] = lane
                        part = f"lane {state.address}"
                        tasks.append(lanes.create_task(self._keep_running(part, lane.run), name=part))
                self._checked_at = known
                self.changes.notify()
                await self._wakeups.wait_past(known)
            await _end(tasks)

    def wake(self, sink: int | None = None) -> None:
        """Notify the lane of a sink (None: all lanes) of pending entries; a new sink gets a lane."""
        if sink in self._lanes:
            self._lanes[sink].wake()
            return
        self._wakeups.notify()
        if sink is None:
            for lane in self._lanes.values():
                lane.wake()

    def check_sinks(self) -> None:
        """Make every lane check whether the service still has its sink. Entries of a lost sink become pending again."""
        for lane in self._lanes.values():
            lane.check_sink()

    def retry_now(self) -> None:
        """End the wait of every lane that backs off or is paused, for example after a key or configuration was corrected."""
        self.limiter.retry_now()
        for lane in self._lanes.values():
            lane.retry_now()

    def report(self) -> list[LaneReport]:
        """Return the report of every lane, by address."""
        return sorted((lane.report for lane in self._lanes.values()), key=lambda report: report.sink)

    async def drain(self) -> list[LaneReport]:
        """Wait until no entry is pending, except entries of paused lanes. Return the reports of these paused lanes.

        All entries that were committed before the call are delivered. A lane that backs off delays the end, so callers need a
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


async def _end(lanes: list[asyncio.Task[None]]) -> None:
    """Cancel lanes and wait until requests in flight have ended, even if the caller is cancelled meanwhile."""
    for lane in lanes:
        lane.cancel()
    if not lanes:
        return
    try:
        await asyncio.wait(lanes)
    except asyncio.CancelledError:
        # Without this wait, the task group would cancel the lanes again, which ends their wait for requests in flight.
        await asyncio.wait(lanes)
        raise
