"""What a lane tells the mirror about its claims, and everybody else about what was settled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ingestd.client.reply import Reply
from ingestd.core.address import SinkAddress
from ingestd.mirror.port import Attempt, Claim, Deliverable, Parked
from ingestd.telemetry.catalogue.delivery import EntriesDelivered, EntriesParked
from ingestd.telemetry.event import Emit

_KEYS_TOLD = 5


def attempt_of(reply: Reply[Any], items: int) -> Attempt:
    """A request as the mirror keeps it."""
    return Attempt(
        operation=reply.operation,
        items=items,
        status=reply.status,
        milliseconds=round(reply.milliseconds, 3),
        outcome=reply.outcome.word,
        sentence=reply.outcome.sentence,
    )


def refusal_of(key: str, reply: Reply[Any]) -> Parked:
    """An entry that the service refused for good, by its answer to the request that was about this entry alone."""
    return Parked(
        key=key,
        reason=reply.outcome.sentence,
        status=reply.status,
        operation=reply.operation,
        request_id=reply.request_id,
    )


class Settling:
    """Settles one lane's claims. ``progressed`` is called, in the event loop, after each entry or group that is settled."""

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
        self.progressed = progressed

    async def whole(self, claim: Claim, reply: Reply[Any]) -> None:
        """The whole claim was delivered by one request."""
        await self._mirror.settle(claim, attempt=attempt_of(reply, claim.items))
        self._tell_delivered(claim.items, reply)

    async def some(
        self, claim: Claim, *, delivered: Sequence[str], parked: Sequence[Parked] = (), reply: Reply[Any]
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

    async def release(self, claim: Claim, reply: Reply[Any] | None = None) -> None:
        """Give a claim back; ``reply`` to the request that failed."""
        await self._mirror.release(claim, attempt=attempt_of(reply, claim.items) if reply is not None else None)

    async def note(self, reply: Reply[Any], items: int = 0) -> None:
        """Keep a request that settles nothing."""
        await self._mirror.note_attempt(self._sink, attempt_of(reply, items))

    def _tell_delivered(self, entries: int, reply: Reply[Any]) -> None:
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
