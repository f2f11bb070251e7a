"""Delivery of single entries, for a service without bulk requests; `ingestd.core.plan` decides the steps.

An origin never prevents a delivery: a rejected step is sent again without its origin. A patch has no origin, because its body
has no member for it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from ingestd.client.request import Unaddressable
from ingestd.client.response import ServiceResponse
from ingestd.core.outcome import Fault, Outcome
from ingestd.core.plan import MAX_STEPS, NextStep, Step, first_step, next_step
from ingestd.delivery.blocker import Blocker, blocker_of
from ingestd.delivery.claim_results import ClaimResults, rejection_of
from ingestd.delivery.delivery_limits import DeliveryLimits
from ingestd.delivery.items import Item, single_body, split_items
from ingestd.delivery.lane_parts import LaneParts
from ingestd.delivery.limiter import Permit
from ingestd.delivery.origins import OriginEncoder
from ingestd.delivery.resolved_sink import ResolvedSink
from ingestd.mirror.port import Claim, RejectedEntry


class _ClaimProgress:
    """Results of a claim that are not acknowledged yet. They are flushed if they are many or old, and when the claim ends."""

    def __init__(self, claim: Claim, results: ClaimResults, limits: DeliveryLimits) -> None:
        self._claim = claim
        self._results = results
        self._limits = limits
        self._delivered: list[str] = []
        self._rejected: list[RejectedEntry] = []
        self._last_response: ServiceResponse[Any] | None = None
        self._has_results = asyncio.Event()
        self._is_full = asyncio.Event()
        self._flushing = asyncio.Lock()
        self._delivered_count = 0
        self._has_flushed = False

    def add(self, result: str | RejectedEntry, response: ServiceResponse[Any]) -> None:
        """Add the key of a delivered entry, or a rejection."""
        if isinstance(result, RejectedEntry):
            self._rejected.append(result)
        else:
            self._delivered.append(result)
            self._delivered_count += 1
        self._last_response = response
        self._has_results.set()
        if len(self._delivered) + len(self._rejected) >= self._limits.acknowledge_items:
            self._is_full.set()

    async def flush_when_due(self) -> None:
        """Flush results when they are many or old enough, until cancelled."""
        while True:
            await self._has_results.wait()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._limits.acknowledge_seconds):
                    await self._is_full.wait()
            async with self._flushing:
                await self._flush()

    async def _flush(self) -> None:
        """Acknowledge the results. Entries of a cancelled flush stay pending, because writing them again is harmless."""
        delivered, rejected, response = self._delivered, self._rejected, self._last_response
        self._delivered, self._rejected = [], []
        self._has_results.clear()
        self._is_full.clear()
        if response is not None and (delivered or rejected):
            self._has_flushed = True
            await self._results.acknowledge_some(self._claim, delivered=delivered, rejected=rejected, response=response)

    async def finish(self, flusher: asyncio.Task[None]) -> None:
        """End the claim: acknowledge its results, and release the other entries.

        If all entries are delivered and no results were flushed, the claim is acknowledged as a whole.
        """
        # Wait for a running flush, so that no key is acknowledged twice; then cancel the waiting flusher.
        async with self._flushing:
            flusher.cancel()
        await asyncio.wait([flusher])
        if not flusher.cancelled() and (error := flusher.exception()) is not None:
            raise error
        if self._delivered_count == self._claim.items and not self._has_flushed and self._last_response is not None:
            await self._results.acknowledge_all(self._claim, self._last_response)
            return
        await self._flush()
        await self._results.release(self._claim)


class SingleSender:
    """Sends claims of one lane, several entries at a time.

    ``on_blocked`` is called with a blocker before the claim is released, so that no other task claims the same entries at
    once.
    """

    def __init__(self, lane: LaneParts, sink: ResolvedSink, *, on_blocked: Callable[[Blocker], None]) -> None:
        self._lane = lane
        self._sink = sink
        self._origins = OriginEncoder(sink.origin, page=lane.limits.page)
        self._sink_ids = (sink.workspace, sink.sink)
        self._create_path, self._update_path = f"{sink}/", f"{sink}/mass"
        self._on_blocked = on_blocked
        self._closing = asyncio.Event()
        self.is_bulk_announced = False
        """A response announced bulk, which the service did not offer when the sink was resolved."""

    def close(self) -> None:
        """Start no more requests."""
        self._closing.set()

    async def send(self, claim: Claim) -> None:
        """Deliver a claim and acknowledge or release it."""
        waiting = deque(split_items(claim))
        progress = _ClaimProgress(claim, self._lane.results, self._lane.limits)
        blocked = asyncio.Event()

        def has_more() -> bool:
            return bool(waiting) and not blocked.is_set() and not self._closing.is_set()

        async def work(workers: asyncio.TaskGroup, permit: Permit | None) -> None:
            while permit is not None and has_more():
                item = waiting.popleft()
                # If another permit is available, another worker starts.
                if has_more() and (another := self._lane.limiter.try_acquire()) is not None:
                    start(workers, another)
                try:
                    result, response = await self._deliver(item)
                finally:
                    permit.release()
                if isinstance(result, Blocker):
                    blocked.set()
                    self._on_blocked(result)
                    await self._lane.results.record_attempt(response, 1)
                    return
                progress.add(result, response)
                # The worker continues without waiting, unless another caller waits for a permit.
                permit = self._lane.limiter.try_acquire() if has_more() else None
            if permit is not None:
                permit.release()

        def start(workers: asyncio.TaskGroup, permit: Permit) -> None:
            permit.release_after(workers.create_task(work(workers, permit)))

        flushing = asyncio.create_task(progress.flush_when_due())
        try:
            while has_more() and (permit := await self._acquire(blocked)) is not None:
                async with asyncio.TaskGroup() as workers:
                    start(workers, permit)
        finally:
            await progress.finish(flushing)

    async def _acquire(self, blocked: asyncio.Event) -> Permit | None:
        """Return a permit for one more request; None if the lane is blocked or closing."""
        if blocked.is_set() or self._closing.is_set():
            return None
        if (permit := self._lane.limiter.try_acquire()) is not None:
            return permit
        acquiring = asyncio.create_task(self._lane.limiter.acquire())
        ends = [asyncio.create_task(event.wait()) for event in (blocked, self._closing)]
        try:
            await asyncio.wait({acquiring, *ends}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            acquiring.add_done_callback(_release_permit)
            raise
        finally:
            for task in (acquiring, *ends):
                task.cancel()
            await asyncio.wait({acquiring, *ends})
        return None if acquiring.cancelled() else acquiring.result()

    async def _deliver(self, item: Item) -> tuple[str | RejectedEntry | Blocker, ServiceResponse[Any]]:
        """Send the steps of an entry until it is delivered, rejected, or must stay pending."""
        update_with = self._lane.limits.update_with
        step: Step = first_step(item.kind, value_is_null=item.value is None, update_with=update_with)
        last: ServiceResponse[Any] | None = None
        is_repeated = False
        origin = self._origins.of_item(item)
        for _ in range(MAX_STEPS):
            if last is not None:
                self._lane.limiter.record_request()
            try:
                response = await self._send_step(step, item, origin)
            except Unaddressable as error:
                return RejectedEntry(key=item.key, reason=str(error)), last or _unsent_response(step, str(error))
            last = response
            self._record_response(response, item)
            match following := self._next_step(step, item, response):
                case "reject" if origin or (response.facts.fault is Fault.VALUE_CHANGED and not is_repeated):
                    # The origin may be the reason. A changed value may come from a later write of another program.
                    origin, is_repeated = b"", True
                case "done":
                    return await self._lane.read_back.check(self._sink, (item,), response) or item.key, response
                case "reject":
                    return rejection_of(item.key, response), response
                case "stop":
                    return blocker_of(response.outcome), response
                case "check_sink":
                    return blocker_of(response.outcome, reaction="reopen"), response
                case _:
                    step = following
        if last is None:
            raise AssertionError("an entry takes at least one step")
        sentence = (
            f"The entry {item.key!r} changes between our requests. Check whether another program writes or deletes it."
        )
        return Blocker(reaction="retry", sentence=sentence), last

    def _next_step(self, step: Step, item: Item, response: ServiceResponse[Any]) -> NextStep:
        return next_step(
            step,
            response.remedy_for(len(item.raw)),
            value_is_null=item.value is None,
            update_with=self._lane.limits.update_with,
            wanted=item.data_type,
            found=response.value.data_type if response.value is not None else None,
        )

    def _record_response(self, response: ServiceResponse[Any], item: Item) -> None:
        self._lane.read_back.note_response(response, (item.segment,))
        self._lane.limiter.record_response(response, size=1)
        self.is_bulk_announced = self.is_bulk_announced or response.bulk is not None
        if not response.ok and response.status is not None:
            self._lane.keys.record_refusal()

    async def _send_step(self, step: Step, item: Item, origin: bytes) -> ServiceResponse[Any]:
        client, sink = self._lane.client, self._sink_ids
        if step == "create_entry":
            body = single_body(item.raw, origin)
            token = self._lane.keys.for_entries(self._create_path, (item.segment,), body)
            return await client.create_entry(*sink, key=item.key, value=item.value, body=body, idempotency_key=token)
        if step == "mass_update_entry" and item.value is not None:
            body = single_body(msgspec.json.encode({"key": item.key, "value": item.value}), origin)
            token = self._lane.keys.for_entries(self._update_path, (item.segment,), item.raw)
            return await client.mass_update_entry(
                *sink, key=item.key, value=item.value, body=body, idempotency_key=token
            )
        if step == "delete_entry":
            return await client.delete_entry(*sink, key=item.key)
        return await client.patch_entry(*sink, key=item.key, value=item.value, data_type=item.data_type)


def _release_permit(acquiring: asyncio.Task[Permit]) -> None:
    """Release a permit that was granted after its lane was cancelled."""
    if not acquiring.cancelled() and acquiring.exception() is None:
        acquiring.result().release()


def _unsent_response(step: Step, sentence: str) -> ServiceResponse[Any]:
    """Return the response of a step that cannot be sent."""
    return ServiceResponse(operation=step, outcome=Outcome(word="rejected", remedy="reject", sentence=sentence))
