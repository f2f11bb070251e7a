"""What a lane tells the mirror about its claims, and everybody else about what was settled."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Any

from ingestd.client.response import ServiceResponse
from ingestd.core.address import SinkAddress
from ingestd.mirror.port import Claim, Deliverable, DeliveryAttempt, Parked
from ingestd.telemetry.catalogue.delivery import EntriesDelivered, EntriesParked
from ingestd.telemetry.event import Emit

_KEYS_TOLD = 5
_PLACE = re.compile(r"(?<![^\s(])/\d+/(\w+)(?=:)")


def attempt_of(reply: ServiceResponse[Any], items: int) -> DeliveryAttempt:
    """A request as the mirror keeps it."""
    return DeliveryAttempt(
        operation=reply.operation,
        items=items,
        status=reply.status,
        milliseconds=round(reply.milliseconds, 3),
        outcome=reply.outcome.word,
        sentence=reply.outcome.sentence,
    )


def without_places(sentence: str) -> str:
    """The sentence with ``key`` instead of ``/17/key``: a place in a request means nothing to who looks for a row of a file."""
    return _PLACE.sub(r"\1", sentence)


def refusal_of(key: str, reply: ServiceResponse[Any]) -> Parked:
    """An entry that the service refused for good, by its answer to the request that was about this entry alone."""
    place = _PLACE.search(reply.outcome.sentence)
    return Parked(
        key=key,
        reason=without_places(reply.outcome.sentence),
        member=place[1] if place else "",
        status=reply.status,
        operation=reply.operation,
        request_id=reply.request_id,
    )


class ClaimResults:
    """Makes, settles and releases one lane's claims. ``progressed`` is called, in the event loop, after each settled group.

    A claim lives in memory: one that is neither settled nor released would keep its entries from ever being delivered. So
    every claim is held here until then, and `release_all` releases those that a failure has left behind.
    """

    def __init__(
        self,
        *,
        mirror: Deliverable,
        sink: int,
        address: SinkAddress,
        emit: Emit,
        progressed: Callable[[], None],
    ) -> None:
        self._mirror = mirror
        self._sink = sink
        self._address = str(address)
        self._emit = emit
        self._claims: dict[int, Claim] = {}
        self.progressed = progressed

    async def claim(self, *, max_items: int, max_bytes: int) -> Claim | None:
        """Claim pending entries; None: there are none."""
        claiming = asyncio.create_task(self._claim(max_items=max_items, max_bytes=max_bytes))
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            if (claim := await claiming) is not None:
                await self.release(claim)
            raise

    async def _claim(self, *, max_items: int, max_bytes: int) -> Claim | None:
        claim = await self._mirror.claim(self._sink, max_items=max_items, max_bytes=max_bytes)
        if claim is not None:
            self._claims[id(claim)] = claim
        return claim

    async def needless(self, claim: Claim) -> None:
        """Settle a claim that nothing has to be sent for."""
        await self._mirror.settle(claim)
        self._claims.pop(id(claim), None)
        self.progressed()

    async def whole(self, claim: Claim, reply: ServiceResponse[Any]) -> None:
        """The whole claim was delivered by one request."""
        await self._mirror.settle(claim, attempt=attempt_of(reply, claim.items))
        self._claims.pop(id(claim), None)
        self._tell_delivered(claim.items, reply)

    async def some(
        self, claim: Claim, *, delivered: Sequence[str], parked: Sequence[Parked] = (), reply: ServiceResponse[Any]
    ) -> None:
        """Some keys of a claim were delivered, some refused for good; ``reply`` to the last request among them."""
        if not delivered and not parked:
            return
        await self._mirror.settle_some(
            claim, delivered=delivered, parked=parked, attempt=attempt_of(reply, len(delivered) + len(parked))
        )
        if parked:
            self._emit(
                EntriesParked(
                    sink=self._address,
                    entries=len(parked),
                    keys=tuple(entry.key for entry in parked[:_KEYS_TOLD]),
                    reason=parked[0].reason,
                )
            )
        self._tell_delivered(len(delivered), reply)

    async def release(self, claim: Claim, reply: ServiceResponse[Any] | None = None) -> None:
        """Give a claim back; ``reply`` to the request that failed."""
        await self._mirror.release(claim, attempt=attempt_of(reply, claim.items) if reply is not None else None)
        self._claims.pop(id(claim), None)

    async def release_all(self) -> None:
        """Release the claims that are neither settled nor released; their entries are pending again."""
        while self._claims:
            _, claim = self._claims.popitem()
            await self._mirror.release(claim)

    async def note(self, reply: ServiceResponse[Any], items: int = 0) -> None:
        """Keep a request that settles nothing."""
        await self._mirror.note_attempt(self._sink, attempt_of(reply, items))

    def _tell_delivered(self, entries: int, reply: ServiceResponse[Any]) -> None:
        if entries:
            self._emit(
                EntriesDelivered(
                    sink=self._address,
                    entries=entries,
                    operation=reply.operation,
                    milliseconds=round(reply.milliseconds, 3),
                )
            )
        self.progressed()
