"""A lane: one sink's delivery, from the first pending entry to the last, over every obstacle on the way.

It waits for signals only: a wake when it is idle, an answer while it delivers, the end of a wait when it backs off. An
idle lane sends at once; what arrives while its requests are in flight is the next batch.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Literal

from ingestd.client.service import ServiceClient
from ingestd.core.clock import Now, Random, moment
from ingestd.core.errors import MirrorFull
from ingestd.delivery.blocker import Blocker
from ingestd.delivery.bulk import BulkForm
from ingestd.delivery.claim_results import ClaimResults
from ingestd.delivery.delivery_limits import DeliveryLimits
from ingestd.delivery.idempotency import IdempotencyKeys
from ingestd.delivery.limiter import Limiter, Permit
from ingestd.delivery.report import LaneReport, Standing
from ingestd.delivery.resolved_sink import ResolvedSink
from ingestd.delivery.single import SingleForm
from ingestd.delivery.sink_resolver import SinkResolver
from ingestd.mirror.port import Claim, Deliverable, LaneState, Trouble
from ingestd.process.change_signal import ChangeSignal
from ingestd.process.supervision import leaves, one_line
from ingestd.telemetry.catalogue.delivery import BatchNarrowed, DeliveryDelayed, DeliveryPaused, DeliveryResumed
from ingestd.telemetry.event import Emit


class Lane:
    """Delivers what is pending of one sink. ``changed`` is called whenever the report changes, ``on_settled`` after settling."""

    def __init__(
        self,
        state: LaneState,
        *,
        mirror: Deliverable,
        client: ServiceClient,
        emit: Emit,
        now: Now,
        random: Random,
        pace: DeliveryLimits,
        governor: Limiter,
        nonce: str,
        on_settled: Callable[[], None],
        changed: Callable[[], None],
    ) -> None:
        self.id = state.id
        self._address = state.address
        self._mirror = mirror
        self._client = client
        self._emit = emit
        self._now = now
        self._random = random
        self._pace = pace
        self._governor = governor
        self._on_settled = on_settled
        self._changed = changed
        self._keys = IdempotencyKeys(f"{nonce}/{state.id}")
        self._settling = ClaimResults(
            mirror=mirror, sink=state.id, address=state.address, emit=emit, progressed=self._progressed
        )
        self._opening = SinkResolver(
            mirror=mirror,
            client=client,
            address=state.address,
            emit=emit,
            settling=self._settling,
            keys=self._keys,
            governor=governor,
            pace=pace,
        )
        self._form: BulkForm | SingleForm | None = None
        self._place: ResolvedSink | None = None
        self._obstacle: Blocker | None = None
        self._most_bytes: int | None = None
        self._permit: Permit | None = None
        self._unsettled_bytes = 0
        self._wakes = ChangeSignal()
        self._looked = -1
        """The wake after which the mirror was last asked for pending entries."""
        self._retry = ChangeSignal()
        self._failures = 0
        self._trouble = ""
        # An earlier run of the daemon may have left a note behind.
        self._noted = True
        self._report = LaneReport(sink=state.address, standing="idle", since=now())

    @property
    def report(self) -> LaneReport:
        """How the lane stands now."""
        return self._report

    @property
    def at_rest(self) -> bool:
        """Nothing will happen by itself soon: idle without a wake to answer, or paused."""
        standing = self._report.standing
        return standing == "paused" or (standing == "idle" and self._looked == self._wakes.generation)

    def wake(self) -> None:
        """Something became pending. An idle lane looks at once; a waiting one keeps to its wait."""
        self._wakes.notify()

    def retry_now(self) -> None:
        """End the wait of a lane that is paused or backs off."""
        self._retry.notify()

    async def run(self) -> None:
        """Deliver until cancelled; requests in flight then get the pace's grace to end and be settled.

        May be called again after it has raised: nothing stays claimed.

        Raises:
            MirrorError: the mirror failed in another way than by a full disk.
        """
        self._place = None
        try:
            await self._run()
        except Exception as error:
            since = self._now()
            sentence = (
                f"Delivery failed unexpectedly ({one_line(error)}) and starts again by itself. The log says more."
            )
            self._set(LaneReport(sink=self._address, standing="paused", since=since, sentence=sentence))
            raise
        finally:
            await self._settling.release_all()

    async def _run(self) -> None:
        while True:
            await self._wait_for_turn()
            self._looked = self._wakes.generation
            try:
                obstacle = await self._try_work()
            finally:
                self._governor.probe_over(self)
            if obstacle is not None:
                await self._wait_out(obstacle)
            elif self._looked == self._wakes.generation:
                await self._no_trouble()
                self._stand("idle")
                self._changed()
                await self._wakes.wait_past(self._looked)
                if self._pace.gather_seconds:
                    await asyncio.sleep(self._pace.gather_seconds)

    async def _try_work(self) -> Blocker | None:
        """Work; a full disk is an obstacle like others, and what was claimed is released."""
        obstacle: Blocker | None = None
        try:
            obstacle = await self._work()
        except* MirrorFull as full:
            await self._settling.release_all()
            obstacle = Blocker(way="retry", sentence=str(next(leaves(full))))
        return obstacle

    # ------------------------------------------------------------------------------------------------ working

    async def _work(self) -> Blocker | None:
        """Deliver until nothing is left to claim, or something is in the way."""
        if self._place is None:
            state = await self._mirror.lane(self.id)
            if state is None or not state.pending:
                return None
            self._stand("delivering")
            opened = await self._open(state)
            if not isinstance(opened, ResolvedSink):
                return opened
            self._settle_in(opened)
        return await self._deliver()

    def _settle_in(self, place: ResolvedSink) -> None:
        self._place = place
        if place.bulk is None:
            self._form = SingleForm(
                client=self._client,
                place=place,
                settling=self._settling,
                keys=self._keys,
                governor=self._governor,
                pace=self._pace,
                stopped=self._meet,
            )
        else:
            self._form = BulkForm(
                client=self._client,
                place=place,
                settling=self._settling,
                keys=self._keys,
                governor=self._governor,
                narrowed=self._narrow,
                stopped=self._meet,
            )

    def _meet(self, obstacle: Blocker) -> None:
        """Something is in the way: begin nothing more. The first obstacle counts; others are of the same making."""
        self._obstacle = self._obstacle or obstacle

    async def _deliver(self) -> Blocker | None:
        in_flight: set[asyncio.Task[None]] = set()
        self._obstacle = None
        try:
            while True:
                self._looked = self._wakes.generation
                crowded = await self._fill(in_flight)
                if not in_flight and (not crowded or not self._may_send()):
                    return self._obstacle
                for task in await self._next_done(in_flight, crowded=crowded):
                    in_flight.discard(task)
                    task.result()
        finally:
            self._give_back_permit()
            await self._end(in_flight)

    async def _fill(self, in_flight: set[asyncio.Task[None]]) -> bool:
        """Send what can be sent now. Whether more could be, were there a place among the requests to the service."""
        while self._may_send() and self._has_room(in_flight):
            if not self._enter():
                return True
            claim = await self._claim()
            if claim is None:
                self._give_back_permit()
                return False
            if not self._may_send():
                # It was met while the claim was made.
                self._give_back_permit()
                await self._settling.release(claim)
                return False
            self._stand("delivering")
            permit, self._permit = self._permit, None
            sending = asyncio.create_task(self._send(claim, permit), name=f"delivery to {self._address}")
            if permit is not None:
                permit.give_back_after(sending)
            in_flight.add(sending)
        return False

    def _may_send(self) -> bool:
        """The sink is known and nothing is in the way."""
        return self._obstacle is None and self._place is not None

    def _has_room(self, in_flight: set[asyncio.Task[None]]) -> bool:
        """Another claim may be out. After a failure one goes ahead to see whether the way is free."""
        if self._failures:
            return not in_flight
        if isinstance(self._form, SingleForm):
            # A second one, so that no place stays empty while the last entries of the first are under way.
            return len(in_flight) < 2
        most = self._governor.limit + self._pace.unsettled_claims
        return len(in_flight) < most and self._unsettled_bytes < self._pace.unsettled_bytes

    def _enter(self) -> bool:
        """In bulk a claim is a request and needs a place before it is made, so that what comes meanwhile goes along."""
        if isinstance(self._form, BulkForm) and self._permit is None:
            self._permit = self._governor.try_enter()
            return self._permit is not None
        return True

    def _give_back_permit(self) -> None:
        if self._permit is not None:
            permit, self._permit = self._permit, None
            permit.give_back()

    async def _claim(self) -> Claim | None:
        bulk = self._place.bulk if self._place is not None else None
        if bulk is None:
            items, size = self._pace.single_claim_items, self._pace.single_claim_bytes
        else:
            items, size = bulk.max_items, min(bulk.max_bytes, self._most_bytes or bulk.max_bytes)
        return await self._settling.claim(max_items=items, max_bytes=size)

    async def _send(self, claim: Claim, permit: Permit | None) -> None:
        form = self._form
        size = sum(len(part.body) for part in claim.parts)
        self._unsettled_bytes += size
        try:
            if isinstance(form, BulkForm) and permit is not None:
                await form.send(claim, permit)
            elif isinstance(form, SingleForm):
                await form.send(claim)
            else:
                raise AssertionError("a lane sends only after it was opened, and in bulk with a permit")
        finally:
            self._unsettled_bytes -= size
        if isinstance(form, SingleForm) and form.announced and self._obstacle is None:
            # The service has learned bulk meanwhile: find out how much it takes.
            self._place = None

    async def _next_done(self, in_flight: set[asyncio.Task[None]], *, crowded: bool) -> set[asyncio.Task[None]]:
        """The claims that ended next; none where new work or a place came first and another request may be sent."""
        if not crowded and (not self._may_send() or not self._has_room(in_flight)):
            done, _ = await asyncio.wait(in_flight, return_when=asyncio.FIRST_COMPLETED)
            return done
        coming: asyncio.Task[object] = asyncio.create_task(
            self._place_free() if crowded else self._wakes.wait_past(self._looked)
        )
        try:
            await asyncio.wait({*in_flight, coming}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            coming.cancel()
            await asyncio.wait({coming})
        return {task for task in in_flight if task.done()}

    async def _place_free(self) -> None:
        self._permit = await self._governor.enter()

    # ---------------------------------------------------------------------------------------------- stopping

    async def _open(self, state: LaneState) -> ResolvedSink | Blocker | None:
        opening = asyncio.create_task(self._opening.open(state), name=f"opening of {self._address}")
        try:
            return await asyncio.shield(opening)
        finally:
            # Looking for a sink and reading it can be dropped at any time; one that is being created is let come to be.
            await _within(self._pace.grace_seconds if self._opening.creating else 0.0, {opening})

    async def _end(self, in_flight: set[asyncio.Task[None]]) -> None:
        """Let requests in flight end within the grace, then drop them; what they carried is settled or stays pending."""
        if isinstance(self._form, SingleForm) and in_flight:
            self._form.close()
        await _within(self._pace.grace_seconds, in_flight)
        for task in in_flight:
            if not task.cancelled():
                task.exception()  # the first failure ends the lane; others are of the same making

    # ------------------------------------------------------------------------------------------------ trouble

    async def _wait_for_turn(self) -> None:
        """While the service is away, or denies access, only one asks, for all lanes."""
        while True:
            known = self._governor.changes.generation
            wait = self._governor.turn(self, self._address.workspace)
            if wait is None:
                return
            since = self._report.since if self._trouble else self._now()
            self._trouble = wait.sentence
            await self._wait_because(wait.standing, since=since, until=wait.until)
            await self._governor.turn_changed(known, wait)

    async def _wait_out(self, obstacle: Blocker) -> None:
        known = self._retry.generation
        self._failures += 1
        if obstacle.way == "reopen":
            self._place = None
            if self._failures == 1:
                return
        paused = obstacle.way == "pause"
        if paused:
            self._place = None
        if paused and obstacle.denied:
            # The governor knows when it is whose turn to ask again.
            self._governor.deny(obstacle.denied, self._address.workspace, obstacle.sentence)
            if not self._trouble:
                self._tell(obstacle, self._pace.denied_seconds, self._now(), paused=True)
            return
        backoff = self._pace.pause if paused else self._pace.retry
        seconds = backoff.delay(self._failures, self._random())
        if obstacle.retry_after_seconds is not None:
            # Not a moment before the service asks for; the jitter keeps senders apart that were told the same.
            seconds = obstacle.retry_after_seconds + self._pace.retry.delay(1, self._random())
        since = self._report.since if self._trouble else self._now()
        self._trouble = obstacle.sentence
        self._tell(obstacle, seconds, since, paused=paused)
        await self._wait_because("paused" if paused else "backing off", since=since, until=self._now() + seconds)
        await self._retry.wait_past(known, seconds=seconds)

    async def _wait_because(self, standing: Literal["backing off", "paused"], *, since: float, until: float) -> None:
        """Report the trouble, once it is kept where `ingestd status` finds it."""
        self._noted = True
        trouble = Trouble(standing=standing, sentence=self._trouble, since=since, until=until)
        with contextlib.suppress(MirrorFull):
            await self._mirror.note_trouble(self.id, trouble)
        self._set(
            LaneReport(sink=self._address, standing=standing, since=since, until=until, sentence=trouble.sentence)
        )

    async def _no_trouble(self) -> None:
        self._trouble = ""
        if self._noted:
            with contextlib.suppress(MirrorFull):
                await self._mirror.note_trouble(self.id, None)
                self._noted = False

    def _tell(self, obstacle: Blocker, seconds: float, since: float, *, paused: bool) -> None:
        seconds = round(seconds, 3)
        if paused:
            self._emit(
                DeliveryPaused(
                    sink=str(self._address), sentence=obstacle.sentence, seconds=seconds, since=moment(since)
                )
            )
        else:
            self._emit(
                DeliveryDelayed(
                    sink=str(self._address),
                    sentence=obstacle.sentence,
                    seconds=seconds,
                    failures=self._failures,
                    since=moment(since),
                )
            )

    def _progressed(self) -> None:
        """Something was settled: whatever was in the way is over."""
        self._failures = 0
        self._governor.admit(self._address.workspace)
        if self._trouble:
            self._trouble = ""
            self._emit(DeliveryResumed(sink=str(self._address), since=moment(self._report.since)))
            self._set(LaneReport(sink=self._address, standing="delivering", since=self._now()))
        self._on_settled()

    def _narrow(self, max_bytes: int) -> None:
        if self._most_bytes is not None and self._most_bytes <= max_bytes:
            return
        self._most_bytes = max_bytes
        self._emit(BatchNarrowed(sink=str(self._address), max_bytes=self._most_bytes))

    def _stand(self, standing: Standing) -> None:
        """Take a standing; trouble is told on until something was settled."""
        report = self._report
        if standing != report.standing or report.until is not None:
            since = report.since if self._trouble else self._now()
            self._set(LaneReport(sink=self._address, standing=standing, since=since, sentence=self._trouble))

    def _set(self, report: LaneReport) -> None:
        self._report = report
        self._changed()


async def _within(seconds: float, tasks: set[asyncio.Task[Any]]) -> None:
    """Give tasks so long to end, then cancel them and see them end."""
    if running := {task for task in tasks if not task.done()}:
        _, late = await asyncio.wait(running, timeout=seconds)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)
