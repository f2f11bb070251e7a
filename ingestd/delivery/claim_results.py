"""The results of a lane's claims, reported to the mirror and as events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from ingestd.client.response import ITEM_PATH, ServiceResponse, without_item_paths
from ingestd.core.address import SinkAddress
from ingestd.mirror.port import Claim, DeliveryAttempt, RejectedEntry
from ingestd.mirror.sqlite.delivery.delivery_store import DeliveryStore
from ingestd.telemetry.catalogue.delivery import EntriesDelivered, EntriesRejected
from ingestd.telemetry.event import Emit

_REPORTED_KEYS = 5


def attempt_of(response: ServiceResponse[Any], items: int) -> DeliveryAttempt:
    """Return what the mirror stores about a request: its operation, its size and its result."""
    return DeliveryAttempt(
        operation=response.operation,
        items=items,
        status=response.status,
        milliseconds=round(response.milliseconds, 3),
        outcome=response.outcome.word,
        sentence=response.outcome.sentence,
    )


def rejection_of(key: str, response: ServiceResponse[Any]) -> RejectedEntry:
    """Return the rejection of an entry; ``response`` rejects a request that has only this entry."""
    path = ITEM_PATH.search(response.outcome.sentence)
    return RejectedEntry(
        key=key,
        reason=without_item_paths(response.outcome.sentence),
        member=path[1] if path else "",
        status=response.status,
        operation=response.operation,
        request_id=response.request_id,
    )


class ClaimResults:
    """Makes, acknowledges and releases the claims of one lane. ``on_progress`` is called after each acknowledged group.

    A claim exists only in memory. If it is neither acknowledged nor released, its entries are never delivered. So this class
    keeps every open claim, and `release_all` releases the claims that a failure has left open.
    """

    def __init__(
        self,
        *,
        mirror: DeliveryStore,
        sink: int,
        address: SinkAddress,
        emit: Emit,
        on_progress: Callable[[], None],
    ) -> None:
        self._mirror = mirror
        self._sink = sink
        self._address = str(address)
        self._emit = emit
        self._claims: dict[int, Claim] = {}
        self.releases = 0
        """The number of releases. After each release, entries may be pending again."""
        self.on_progress = on_progress

    async def claim(self, *, max_items: int, max_bytes: int) -> Claim | None:
        """Claim pending entries; return None if no entry is pending."""
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

    async def acknowledge_unsent(self, claim: Claim) -> None:
        """Acknowledge a claim for which no request is needed."""
        await self._mirror.acknowledge(claim)
        self._claims.pop(id(claim), None)
        self.on_progress()

    async def acknowledge_all(self, claim: Claim, response: ServiceResponse[Any]) -> None:
        """Acknowledge a claim that one request delivered as a whole."""
        await self._mirror.acknowledge(claim, attempt=attempt_of(response, claim.items))
        self._claims.pop(id(claim), None)
        self._report_delivered(claim.items, response)

    async def acknowledge_some(
        self,
        claim: Claim,
        *,
        delivered: Sequence[str],
        rejected: Sequence[RejectedEntry] = (),
        response: ServiceResponse[Any],
    ) -> None:
        """Acknowledge keys of a claim that were delivered or rejected; ``response`` is the last response."""
        if not delivered and not rejected:
            return
        await self._mirror.acknowledge_some(
            claim, delivered=delivered, rejected=rejected, attempt=attempt_of(response, len(delivered) + len(rejected))
        )
        if rejected:
            self._emit(
                EntriesRejected(
                    sink=self._address,
                    entries=len(rejected),
                    keys=tuple(entry.key for entry in rejected[:_REPORTED_KEYS]),
                    reason=rejected[0].reason,
                )
            )
        self._report_delivered(len(delivered), response)

    async def release(self, claim: Claim, response: ServiceResponse[Any] | None = None) -> None:
        """Make the unacknowledged entries of a claim pending again. ``response``: the response to the failed request."""
        attempt = attempt_of(response, claim.items) if response is not None else None
        self.releases += 1
        await self._mirror.release(claim, attempt=attempt)
        self._claims.pop(id(claim), None)

    async def release_all(self) -> None:
        """Release every claim that is neither acknowledged nor released, so that its entries are pending again."""
        while self._claims:
            _, claim = self._claims.popitem()
            self.releases += 1
            await self._mirror.release(claim)

    async def record_attempt(self, response: ServiceResponse[Any], items: int = 0) -> None:
        """Store a request that acknowledges no entry."""
        await self._mirror.note_attempt(self._sink, attempt_of(response, items))

    def _report_delivered(self, entries: int, response: ServiceResponse[Any]) -> None:
        if entries:
            self._emit(
                EntriesDelivered(
                    sink=self._address,
                    entries=entries,
                    operation=response.operation,
                    milliseconds=round(response.milliseconds, 3),
                )
            )
        self.on_progress()
