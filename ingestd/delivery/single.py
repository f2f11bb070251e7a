"""Delivery entry by entry, to a service that knows only the interface document; `ingestd.core.plan` holds the steps."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Any

from ingestd.client.operations import Unaddressable
from ingestd.client.records.summaries import EntrySummary
from ingestd.client.response import ServiceResponse
from ingestd.client.service import ServiceClient
from ingestd.core.outcome import Outcome
from ingestd.core.plan import MOST_STEPS, Step, after, first_step, needs_retype
from ingestd.delivery.blocker import Blocker, blocker_of, remedy_of
from ingestd.delivery.claim_results import ClaimResults, refusal_of
from ingestd.delivery.delivery_limits import DeliveryLimits
from ingestd.delivery.idempotency import IdempotencyKeys
from ingestd.delivery.items import Item, taken_apart
from ingestd.delivery.limiter import Limiter, Permit
from ingestd.delivery.resolved_sink import ResolvedSink
from ingestd.mirror.port import Claim, Parked


class _Group:
    """What is done of a claim but not yet settled; settled when it is large enough, or old enough, or when the claim ends."""

    def __init__(self, claim: Claim, settling: ClaimResults, pace: DeliveryLimits) -> None:
        self._claim = claim
        self._settling = settling
        self._pace = pace
        self._delivered: list[str] = []
        self._parked: list[Parked] = []
        self._last: ServiceResponse[Any] | None = None
        self._some = asyncio.Event()
        self._enough = asyncio.Event()
        self._flushing = asyncio.Lock()
        self._done = 0
        self._flushed = False

    def add(self, fate: str | Parked, reply: ServiceResponse[Any]) -> None:
        """A key that was delivered, or an entry to park."""
        if isinstance(fate, Parked):
            self._parked.append(fate)
        else:
            self._delivered.append(fate)
            self._done += 1
        self._last = reply
        self._some.set()
        if len(self._delivered) + len(self._parked) >= self._pace.settle_items:
            self._enough.set()

    async def settle_when_due(self) -> None:
        """Until cancelled."""
        while True:
            await self._some.wait()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pace.settle_seconds):
                    await self._enough.wait()
            async with self._flushing:
                await self._flush()

    async def _flush(self) -> None:
        """Settle what is done. What a cancelled flush held is in doubt and stays pending: writing it again is harmless."""
        delivered, parked, last = self._delivered, self._parked, self._last
        self._delivered, self._parked = [], []
        self._some.clear()
        self._enough.clear()
        if last is not None and (delivered or parked):
            self._flushed = True
            await self._settling.some(self._claim, delivered=delivered, parked=parked, reply=last)

    async def finish(self, flusher: asyncio.Task[None]) -> None:
        """End the claim: settle what is done, as a whole where that is everything, and give the rest back."""
        # A settling under way is let finish, so that no key is settled twice; a flusher that only waits is ended.
        async with self._flushing:
            flusher.cancel()
        await asyncio.wait([flusher])
        if not flusher.cancelled() and (error := flusher.exception()) is not None:
            raise error
        if self._done == self._claim.items and not self._flushed and self._last is not None:
            await self._settling.whole(self._claim, self._last)
            return
        await self._flush()
        await self._settling.release(self._claim)


class SingleForm:
    """Sends claims of one lane, several entries at a time.

    ``stopped`` is told an obstacle before the claim is given back, so that nobody takes it up at once and runs into the
    same.
    """

    def __init__(
        self,
        *,
        client: ServiceClient,
        place: ResolvedSink,
        settling: ClaimResults,
        keys: IdempotencyKeys,
        governor: Limiter,
        pace: DeliveryLimits,
        stopped: Callable[[Blocker], None],
    ) -> None:
        self._client = client
        self._where = (place.workspace, place.sink)
        self._creating, self._updating = f"{place}/", f"{place}/mass"
        self._settling = settling
        self._keys = keys
        self._governor = governor
        self._pace = pace
        self._stopped = stopped
        self._closing = asyncio.Event()
        self.announced = False
        """An answer announced bulk: the service has learned it since the lane was opened."""

    def close(self) -> None:
        """Begin no more requests."""
        self._closing.set()

    async def send(self, claim: Claim) -> None:
        """Deliver a claim; afterwards it is settled or released."""
        waiting = deque(taken_apart(claim))
        group = _Group(claim, self._settling, self._pace)
        met = asyncio.Event()

        def on() -> bool:
            return bool(waiting) and not met.is_set() and not self._closing.is_set()

        async def work(workers: asyncio.TaskGroup, permit: Permit | None) -> None:
            while permit is not None and on():
                item = waiting.popleft()
                # Where there is a place for one more, one more comes along.
                if on() and (another := self._governor.try_enter()) is not None:
                    start(workers, another)
                try:
                    fate, reply = await self._deliver(item)
                finally:
                    permit.give_back()
                if isinstance(fate, Blocker):
                    met.set()
                    self._stopped(fate)
                    await self._settling.note(reply, 1)
                    return
                group.add(fate, reply)
                # Goes on without being called again, unless somebody else stands in line.
                permit = self._governor.try_enter() if on() else None
            if permit is not None:
                permit.give_back()

        def start(workers: asyncio.TaskGroup, permit: Permit) -> None:
            permit.give_back_after(workers.create_task(work(workers, permit)))

        flushing = asyncio.create_task(group.settle_when_due())
        try:
            while on() and (permit := await self._permit(met)) is not None:
                async with asyncio.TaskGroup() as workers:
                    start(workers, permit)
        finally:
            await group.finish(flushing)

    async def _permit(self, met: asyncio.Event) -> Permit | None:
        """A place for one more request; None where something is in the way, or the end has come."""
        if met.is_set() or self._closing.is_set():
            return None
        if (permit := self._governor.try_enter()) is not None:
            return permit
        entering = asyncio.create_task(self._governor.enter())
        over = [asyncio.create_task(event.wait()) for event in (met, self._closing)]
        try:
            await asyncio.wait({entering, *over}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            entering.add_done_callback(_give_back)
            raise
        finally:
            for task in (entering, *over):
                task.cancel()
            await asyncio.wait({entering, *over})
        return None if entering.cancelled() else entering.result()

    async def _deliver(self, item: Item) -> tuple[str | Parked | Blocker, ServiceResponse[Any]]:
        """Take an entry's steps until it is delivered, parked, or has to stay pending."""
        null = item.value is None
        update_with = self._pace.update_with
        step: Step = first_step(item.kind, value_is_null=null, update_with=update_with)
        last: ServiceResponse[Any] | None = None
        for _ in range(MOST_STEPS):
            if last is not None:
                self._governor.again()
            try:
                reply = await self._take(step, item)
            except Unaddressable as unaddressable:
                return Parked(key=item.key, reason=str(unaddressable)), last or _not_sent(step, str(unaddressable))
            last = reply
            self._hear(reply)
            then = after(step, remedy_of(reply, len(item.raw)), value_is_null=null, update_with=update_with)
            if then == "done" and step == "mass_update_entry" and _wrong_type(item, reply):
                then = "patch_entry"
            match then:
                case "done":
                    return item.key, reply
                case "park":
                    return refusal_of(item.key, reply), reply
                case "stop":
                    return blocker_of(reply.outcome), reply
                case "sink?":
                    return blocker_of(reply.outcome, way="reopen"), reply
                case _:
                    step = then
        if last is None:
            raise AssertionError("an entry takes at least one step")
        sentence = f"The entry {item.key!r} keeps changing under our hands: does something else write or delete it?"
        return Blocker(way="retry", sentence=sentence), last

    def _hear(self, reply: ServiceResponse[Any]) -> None:
        self._governor.heard(reply, size=1)
        self.announced = self.announced or reply.bulk is not None
        if not reply.ok and reply.status is not None:
            self._keys.refused()

    async def _take(self, step: Step, item: Item) -> ServiceResponse[Any]:
        client, where = self._client, self._where
        if step == "create_entry":
            token = self._keys.for_entries(self._creating, (item.segment,), item.raw)
            return await client.create_entry(*where, key=item.key, body=item.raw, idempotency_key=token)
        if step == "mass_update_entry" and item.value is not None:
            token = self._keys.for_entries(self._updating, (item.segment,), item.raw)
            return await client.mass_update_entry(*where, key=item.key, value=item.value, idempotency_key=token)
        if step == "delete_entry":
            return await client.delete_entry(*where, key=item.key)
        return await client.patch_entry(*where, key=item.key, value=item.value, data_type=item.data_type)


def _give_back(entering: asyncio.Task[Permit]) -> None:
    """Give back a permit that came after its lane was cancelled."""
    if not entering.cancelled() and entering.exception() is None:
        entering.result().give_back()


def _not_sent(step: Step, sentence: str) -> ServiceResponse[Any]:
    """In place of an answer, where there was nothing to ask."""
    return ServiceResponse(operation=step, outcome=Outcome(word="rejected", remedy="park", sentence=sentence))


def _wrong_type(item: Item, reply: ServiceResponse[EntrySummary]) -> bool:
    return needs_retype(wanted=item.data_type, answered=reply.value.data_type if reply.value is not None else None)
