"""A lane: delivery of one sink's pending entries, with waits while it is blocked.

A lane waits only for signals: a wake-up while idle, a response while delivering, and a timer while blocked. An idle lane sends
at once. Entries that become pending while its requests are in flight form the next batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableMapping

from ingestd.client.service import ServiceClient
from ingestd.core.clock import Now, Random
from ingestd.core.errors import MirrorFull
from ingestd.delivery.blocker import Blocker
from ingestd.delivery.bulk import BulkSender
from ingestd.delivery.claim_results import ClaimResults
from ingestd.delivery.delivery_limits import DeliveryLimits
from ingestd.delivery.idempotency import IdempotencyKeys
from ingestd.delivery.lane_parts import LaneParts, SinkLocks
from ingestd.delivery.limiter import Limiter, Permit
from ingestd.delivery.read_back import ReadBack
from ingestd.delivery.report import LaneReport, LaneReporter
from ingestd.delivery.resolved_sink import ResolvedSink
from ingestd.delivery.single import SingleSender
from ingestd.delivery.sink_resolver import SinkResolver
from ingestd.mirror.port import Claim, LaneState
from ingestd.mirror.sqlite.delivery.delivery_store import DeliveryStore
from ingestd.process.change_signal import ChangeSignal
from ingestd.process.supervision import finish_within, leaves, one_line
from ingestd.telemetry.catalogue.delivery import BatchNarrowed
from ingestd.telemetry.event import Emit


class Lane:
    """Delivers the pending entries of one sink.

    ``checks_sink``: the first turn checks whether the service still has the sink. ``on_report`` is called when the report
    changes, ``on_acknowledged`` after entries are acknowledged in the mirror. ``unknown``: see `ReadBack`. While ``may_send``
    returns False, the lane is idle; call `wake` when it returns True again.
    """

    def __init__(
        self,
        state: LaneState,
        *,
        mirror: DeliveryStore,
        client: ServiceClient,
        emit: Emit,
        now: Now,
        random: Random,
        limits: DeliveryLimits,
        limiter: Limiter,
        nonce: str,
        unknown: MutableMapping[int, int],
        resolving: SinkLocks,
        on_acknowledged: Callable[[], None],
        on_report: Callable[[], None],
        checks_sink: bool = False,
        may_send: Callable[[], bool] = lambda: True,
    ) -> None:
        self.id = state.id
        self._may_send = may_send
        self._address = state.address
        self._now = now
        self._random = random
        self._limits = limits
        self._limiter = limiter
        self._on_acknowledged = on_acknowledged
        self._on_report = on_report
        keys = IdempotencyKeys(f"{nonce}/{state.id}")
        self._results = ClaimResults(
            mirror=mirror, sink=state.id, address=state.address, emit=emit, on_progress=self._on_progress
        )
        self._parts = LaneParts(
            address=state.address,
            mirror=mirror,
            client=client,
            emit=emit,
            limiter=limiter,
            limits=limits,
            keys=keys,
            results=self._results,
            read_back=ReadBack(state, client=client, keys=keys, unknown=unknown),
            resolving=resolving,
        )
        self._resolver = SinkResolver(self._parts)
        self._sender: BulkSender | SingleSender | None = None
        self._sink: ResolvedSink | None = None
        self._blocker: Blocker | None = None
        self._max_bytes: int | None = None
        self._permit: Permit | None = None
        self._unacknowledged_bytes = 0
        self._wakeups = ChangeSignal()
        self._checked_at = -1
        """The generation of the wake-ups before the lane last queried the mirror for pending entries."""
        self._all_claimed: tuple[int, int] | None = None
        """`_pending_changes` before the last claim, if the claim took all pending entries; None: entries may be left."""
        self._retry = ChangeSignal()
        self._is_check_due = checks_sink
        self._failures = 0
        self._reporter = LaneReporter(state, mirror=mirror, emit=emit, now=now, on_report=on_report)

    @property
    def report(self) -> LaneReport:
        """The current report of the lane."""
        return self._reporter.report

    @property
    def is_at_rest(self) -> bool:
        """Whether the lane does nothing soon without a signal: it is paused, or idle after all wake-ups and checks."""
        status = self.report.status
        is_handled = self._checked_at == self._wakeups.generation and not self._is_check_due
        return status == "paused" or (status == "idle" and is_handled)

    def wake(self) -> None:
        """Notify the lane of pending entries. An idle lane checks at once; a blocked lane first completes its wait."""
        self._wakeups.notify()

    def check_sink(self) -> None:
        """Check whether the service still has the sink, even without pending entries."""
        self._is_check_due = True
        self._wakeups.notify()

    def retry_now(self) -> None:
        """End the wait of a lane that is paused or backs off."""
        self._retry.notify()

    async def run(self) -> None:
        """Deliver until cancelled; then requests in flight get `DeliveryLimits.grace_seconds` to complete.

        May be called again after an exception, because no entry stays claimed.

        Raises:
            MirrorError: the mirror failed, except by a full disk.
        """
        self._sink = None
        try:
            await self._run()
        except Exception as error:
            self._reporter.fail(
                f"Delivery failed unexpectedly ({one_line(error)}) and restarts automatically. See the log."
            )
            raise
        finally:
            await self._results.release_all()

    async def _run(self) -> None:
        while True:
            await self._wait_for_turn()
            self._checked_at = self._wakeups.generation
            try:
                blocker = await self._deliver_until_blocked()
            finally:
                self._limiter.end_turn(self)
            if blocker is not None:
                await self._handle_blocker(blocker)
            elif self._checked_at == self._wakeups.generation:
                await self._reporter.clear()
                self._reporter.set_status("idle")
                self._on_report()
                await self._wakeups.wait_past(self._checked_at)
                if self._limits.gather_seconds:
                    await asyncio.sleep(self._limits.gather_seconds)

    async def _deliver_until_blocked(self) -> Blocker | None:
        """Deliver; a full disk becomes a blocker, and open claims are released."""
        try:
            blocker = await self._resolve_and_deliver()
        except* MirrorFull as full:
            await self._results.release_all()
            blocker = Blocker(reaction="retry", sentence=str(next(leaves(full))))
        return blocker

    async def _resolve_and_deliver(self) -> Blocker | None:
        """Deliver until no pending entry is left or the lane is blocked."""
        if not self._may_send():
            return None
        if self._is_check_due and (blocker := await self._find_loss()) is not None:
            return blocker
        self._is_check_due = False
        if self._sink is None:
            state = await self._parts.mirror.lane(self.id)
            if state is None or not state.pending:
                return None
            self._reporter.set_status("delivering")
            resolved = await self._resolve(state)
            if not isinstance(resolved, ResolvedSink):
                return resolved
            self._use_sink(resolved)
        return await self._deliver()

    async def _find_loss(self) -> Blocker | None:
        """Make the entries of a lost sink pending again. Does nothing if entries are pending: their delivery finds the loss."""
        state = await self._parts.mirror.lane(self.id)
        if state is None or state.pending or not state.adopted:
            return None
        blocker = await self._resolver.check(state)
        if blocker is None and (known := await self._parts.mirror.lane(self.id)) is not None and not known.adopted:
            self._sink = None
        return blocker

    def _use_sink(self, sink: ResolvedSink) -> None:
        self._sink = sink
        if sink.bulk is None:
            self._sender = SingleSender(self._parts, sink, on_blocked=self._on_blocked)
        else:
            self._sender = BulkSender(self._parts, sink, on_too_large=self._on_too_large, on_blocked=self._on_blocked)

    def _on_blocked(self, blocker: Blocker) -> None:
        """Send no more claims. The first blocker counts; later blockers have the same cause."""
        self._blocker = self._blocker or blocker

    async def _deliver(self) -> Blocker | None:
        in_flight: set[asyncio.Task[None]] = set()
        self._blocker = None
        self._all_claimed = None
        try:
            while True:
                self._checked_at = self._wakeups.generation
                needs_permit = await self._send_claims(in_flight)
                if not in_flight and (not needs_permit or not self._can_send()):
                    return self._blocker
                for task in await self._wait_for_next(in_flight, needs_permit=needs_permit):
                    in_flight.discard(task)
                    task.result()
        finally:
            self._release_permit()
            await self._finish(in_flight)

    async def _send_claims(self, in_flight: set[asyncio.Task[None]]) -> bool:
        """Send the entries that can be sent now. Return True if more could be sent with another permit."""
        while self._can_send() and self._has_room(in_flight):
            if self._all_claimed == self._pending_changes:
                return False
            if not self._try_acquire():
                return True
            claim = await self._claim()
            if claim is None:
                self._release_permit()
                return False
            if not self._can_send():  # the lane was blocked while the claim was made
                self._release_permit()
                await self._results.release(claim)
                return False
            self._reporter.set_status("delivering")
            permit, self._permit = self._permit, None
            sending = asyncio.create_task(self._send(claim, permit), name=f"delivery to {self._address}")
            if permit is not None:
                permit.release_after(sending)
            in_flight.add(sending)
        return False

    @property
    def _pending_changes(self) -> tuple[int, int]:
        """A value that changes when further entries may be pending: the wake-ups, and the releases of claims."""
        return self._wakeups.generation, self._results.releases

    def _can_send(self) -> bool:
        """Return whether the sink is resolved and the lane is not blocked."""
        return self._blocker is None and self._sink is not None

    def _has_room(self, in_flight: set[asyncio.Task[None]]) -> bool:
        """Return whether another claim may be sent. After a failure, a single claim probes the service."""
        if self._failures:
            return not in_flight
        if isinstance(self._sender, SingleSender):
            # A second claim is made, so that no permit is unused while the last entries of the first claim are in flight.
            return len(in_flight) < 2
        most = self._limiter.limit + self._limits.unacknowledged_claims
        return len(in_flight) < most and self._unacknowledged_bytes < self._limits.unacknowledged_bytes

    def _try_acquire(self) -> bool:
        """Acquire a permit if the lane sends in bulk; return False if none is available.

        The permit precedes the claim, so that the claim covers all entries that are pending when it is sent.
        """
        if isinstance(self._sender, BulkSender) and self._permit is None:
            self._permit = self._limiter.try_acquire()
            return self._permit is not None
        return True

    def _release_permit(self) -> None:
        if self._permit is not None:
            permit, self._permit = self._permit, None
            permit.release()

    async def _claim(self) -> Claim | None:
        bulk = self._sink.bulk if self._sink is not None else None
        if bulk is None:
            items, size = self._limits.single_claim_items, self._limits.single_claim_bytes
        else:
            items, size = bulk.max_items, min(bulk.max_bytes, self._max_bytes or bulk.max_bytes)
        before = self._pending_changes
        claim = await self._results.claim(max_items=items, max_bytes=size)
        self._all_claimed = before if claim is not None and claim.is_complete else None
        return claim

    async def _send(self, claim: Claim, permit: Permit | None) -> None:
        sender = self._sender
        size = sum(len(part.body) for part in claim.parts)
        self._unacknowledged_bytes += size
        is_over = False
        try:
            if isinstance(sender, BulkSender) and permit is not None:
                await sender.send(claim, permit)
            elif isinstance(sender, SingleSender):
                await sender.send(claim)
            else:
                raise AssertionError("a lane sends only after its sink is resolved, and in bulk with a permit")
            is_over = True
        finally:
            self._unacknowledged_bytes -= size
            if not is_over:
                self._parts.read_back.note(part.segment for part in claim.parts)
        if isinstance(sender, SingleSender) and sender.is_bulk_announced and self._blocker is None:
            # The service offers bulk now: resolve the sink again to learn its limits.
            self._sink = None

    async def _wait_for_next(
        self, in_flight: set[asyncio.Task[None]], *, needs_permit: bool
    ) -> set[asyncio.Task[None]]:
        """Wait until a claim ends, or until another claim can be sent; return the claims that ended."""
        if not needs_permit and (not self._can_send() or not self._has_room(in_flight)):
            done, _ = await asyncio.wait(in_flight, return_when=asyncio.FIRST_COMPLETED)
            return done
        signal: asyncio.Task[object] = asyncio.create_task(
            self._acquire_permit() if needs_permit else self._wakeups.wait_past(self._checked_at)
        )
        try:
            await asyncio.wait({*in_flight, signal}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            signal.cancel()
            await asyncio.wait({signal})
        return {task for task in in_flight if task.done()}

    async def _acquire_permit(self) -> None:
        self._permit = await self._limiter.acquire()

    async def _resolve(self, state: LaneState) -> ResolvedSink | Blocker | None:
        resolving = asyncio.create_task(self._resolver.resolve(state), name=f"resolution of {self._address}")
        try:
            return await asyncio.shield(resolving)
        finally:
            # A lookup or a read of a sink can be cancelled at any time; the creation of a sink may complete.
            await finish_within(self._limits.grace_seconds if self._resolver.is_creating else 0.0, {resolving})

    async def _finish(self, in_flight: set[asyncio.Task[None]]) -> None:
        """Let requests in flight complete within the grace period, then cancel them. Their entries then stay pending."""
        if isinstance(self._sender, SingleSender) and in_flight:
            self._sender.close()
        await finish_within(self._limits.grace_seconds, in_flight)
        for task in in_flight:
            if not task.cancelled():
                task.exception()  # the first failure ends the lane; later failures have the same cause

    async def _wait_for_turn(self) -> None:
        """Wait while the service is away or denies access, unless this lane may try for all lanes."""
        while True:
            known = self._limiter.changes.generation
            wait = self._limiter.request_turn(self, self._address.workspace)
            if wait is None:
                return
            await self._reporter.block(wait.status, wait.sentence, since=self._reporter.since, until=wait.until)
            await self._limiter.wait_for_turn(known, wait)

    async def _handle_blocker(self, blocker: Blocker) -> None:
        known = self._retry.generation
        self._failures += 1
        is_paused = blocker.reaction == "pause"
        if blocker.reaction != "retry":
            self._sink = None
        if blocker.reaction == "reopen" and self._failures == 1:
            return
        if is_paused and blocker.denied:
            # The limiter decides which lane tries again.
            self._limiter.record_denial(blocker.denied, self._address.workspace, blocker.sentence)
            if not self._reporter.reason:
                self._reporter.log(blocker, self._limits.denied_seconds, self._now(), failures=self._failures)
            return
        backoff = self._limits.pause if is_paused else self._limits.retry
        seconds = backoff.delay(self._failures, self._random())
        if blocker.retry_after_seconds is not None:
            # The lane never retries earlier than the service requests. Jitter separates senders that got the same Retry-After.
            seconds = blocker.retry_after_seconds + self._limits.retry.delay(1, self._random())
        since = self._reporter.since
        self._reporter.log(blocker, seconds, since, failures=self._failures)
        until = self._now() + seconds
        await self._reporter.block("paused" if is_paused else "backing off", blocker.sentence, since=since, until=until)
        await self._retry.wait_past(known, seconds=seconds)

    def _on_progress(self) -> None:
        """Unblock the lane, because entries were acknowledged."""
        self._failures = 0
        self._limiter.clear_denial(self._address.workspace)
        self._reporter.unblock()
        self._on_acknowledged()

    def _on_too_large(self, max_bytes: int) -> None:
        if self._max_bytes is None or max_bytes < self._max_bytes:
            self._max_bytes = max_bytes
            self._parts.emit(BatchNarrowed(sink=str(self._address), max_bytes=max_bytes))
