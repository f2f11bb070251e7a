"""Delivery in bulk: a claim is one request; where the service refuses it, the bad entries are found and the rest goes on.

A refused request (400, 422) is sent again with ``partial=true``, which stores the good items and tells of each bad one.
A service that does not offer that is asked by halves. A request that is too large (413) is halved, and the lane remembers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from ingestd.client.records.summaries import BulkItemResult, BulkResult
from ingestd.client.response import ServiceResponse
from ingestd.client.service import ServiceClient
from ingestd.delivery.blocker import Blocker, blocker_of, remedy_of
from ingestd.delivery.claim_results import ClaimResults, refusal_of, without_places
from ingestd.delivery.idempotency import IdempotencyKeys
from ingestd.delivery.items import Item, array, halves, joined, taken_apart
from ingestd.delivery.limiter import Limiter, Permit
from ingestd.delivery.resolved_sink import ResolvedSink
from ingestd.mirror.port import Claim, Parked


class BulkForm:
    """Sends claims of one lane to a service that announces bulk.

    ``narrowed`` is told how many bytes a request may have after one was too large. ``stopped`` is told an obstacle before
    the claim is given back, so that nobody takes it up at once and runs into the same.
    """

    def __init__(
        self,
        *,
        client: ServiceClient,
        place: ResolvedSink,
        settling: ClaimResults,
        keys: IdempotencyKeys,
        governor: Limiter,
        narrowed: Callable[[int], None],
        stopped: Callable[[Blocker], None],
    ) -> None:
        self._client = client
        self._place = place
        self._settling = settling
        self._keys = keys
        self._governor = governor
        self._narrowed = narrowed
        self._stopped = stopped

    async def send(self, claim: Claim, permit: Permit) -> None:
        """Deliver a claim; afterwards it is settled or released. The permit is given back with the last answer."""
        try:
            body = joined(claim)
            reply = await self._request(body, claim.items, [part.segment for part in claim.parts])
            if reply.ok:
                # ClaimResults waits for the mirror, not for the service: another request may go meanwhile.
                permit.give_back()
                await self._settling.whole(claim, reply)
                return
            obstacle = await self._mend(claim, taken_apart(claim), reply, len(body), partial=True)
            if obstacle is not None:
                self._stopped(obstacle)
            await self._settling.release(claim, reply if obstacle else None)
        except asyncio.CancelledError:
            await self._settling.release(claim)
            raise
        finally:
            permit.give_back()

    async def _request(
        self, body: bytes, items: int, segments: Sequence[int], *, partial: bool = False
    ) -> ServiceResponse[BulkResult]:
        place = self._place
        reply = await self._client.mass_update(
            place.workspace,
            place.sink,
            body=body,
            items=items,
            idempotency_key=self._keys.for_entries(f"{place}?partial={partial}", segments, body),
            partial=partial,
        )
        self._governor.heard(reply, size=items)
        if not reply.ok and reply.status is not None:
            self._keys.refused()
        return reply

    async def _mend(
        self, claim: Claim, items: Sequence[Item], reply: ServiceResponse[BulkResult], size: int, *, partial: bool
    ) -> Blocker | None:
        """Go on after a refusal of ``items``; ``partial``: results by item may still be asked for."""
        if reply.outcome.remedy == "park":
            if partial and not await self._still_announced(reply):
                return Blocker(way="reopen", sentence="The service no longer announces bulk updates.")
            if reply.bulk is not None and reply.bulk.max_items < len(items):
                return Blocker(way="reopen", sentence="The service takes fewer entries at once than before.")
            return await self._sift(claim, items, reply, partial=partial)
        if remedy_of(reply, size) == "shrink":
            if len(items) == 1:
                await self._park(claim, items[0], reply)
                return None
            self._narrowed(max(1, size // 2))
            return await self._by_halves(claim, items, partial=partial)
        return blocker_of(reply.outcome)

    async def _still_announced(self, reply: ServiceResponse[BulkResult]) -> bool:
        """Whether a refusal comes from a service that takes bulk at all, rather than from one that took its place."""
        if reply.bulk is not None:
            return True
        listed = await self._client.list_sinks(self._place.workspace)
        return not listed.ok or listed.bulk is not None

    async def _sift(
        self, claim: Claim, items: Sequence[Item], refusal: ServiceResponse[BulkResult], *, partial: bool
    ) -> Blocker | None:
        if partial:
            body = array(items)
            reply = await self._request(body, len(items), _segments(items), partial=True)
            if reply.ok and reply.value is not None:
                return await self._by_results(claim, items, reply, reply.value)
            if reply.outcome.remedy != "park":
                return await self._mend(claim, items, reply, len(body), partial=True)
            refusal = reply
        if len(items) == 1:
            await self._park(claim, items[0], refusal)
            return None
        return await self._by_halves(claim, items, partial=False)

    async def _by_halves(self, claim: Claim, items: Sequence[Item], *, partial: bool) -> Blocker | None:
        for half in halves(items):
            body = array(half)
            reply = await self._request(body, len(half), _segments(half))
            if reply.ok:
                await self._settling.some(claim, delivered=[item.key for item in half], reply=reply)
            elif obstacle := await self._mend(claim, half, reply, len(body), partial=partial):
                return obstacle
        return None

    async def _by_results(
        self, claim: Claim, items: Sequence[Item], reply: ServiceResponse[BulkResult], result: BulkResult
    ) -> Blocker | None:
        """Settle by what the service says of each item; one that it could not store for now stays pending."""
        results = result.results
        if results is None:
            await self._settling.some(claim, delivered=[item.key for item in items], reply=reply)
            return None
        refused = [one for one in results if one.status >= 300]
        for_good = [one for one in refused if _for_good(one.status)]
        bad = {one.index for one in refused}
        await self._settling.some(
            claim,
            delivered=[item.key for index, item in enumerate(items) if index not in bad],
            parked=[_parked(items[one.index], one, reply) for one in for_good],
            reply=reply,
        )
        if len(for_good) < len(refused):
            later = next(one for one in refused if not _for_good(one.status))
            return Blocker(
                way="retry",
                sentence=f"The service could not store {len(refused) - len(for_good)} of {len(items)} entries for now "
                f"({later.status}): {later.reason}.",
            )
        return None

    async def _park(self, claim: Claim, item: Item, reply: ServiceResponse[BulkResult]) -> None:
        parked = refusal_of(item.key, reply)
        await self._settling.some(claim, delivered=(), parked=(parked,), reply=reply)


def _segments(items: Sequence[Item]) -> list[int]:
    return sorted({item.segment for item in items})


def _for_good(status: int) -> bool:
    return status in {400, 404, 409, 413, 422}


def _parked(item: Item, result: BulkItemResult, reply: ServiceResponse[BulkResult]) -> Parked:
    words = f"The service refuses it ({result.status}): {result.reason}"
    return replace(refusal_of(item.key, reply), reason=without_places(words), status=result.status)
