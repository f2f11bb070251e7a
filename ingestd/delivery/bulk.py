"""Delivery in bulk: a claim is one request. If the service rejects a request, its bad entries are isolated.

A rejected request (400, 422) is sent again with ``partial=true``. The service then stores the good items and returns a result
for each bad item. For a service without ``partial``, the items are sent in halves. A request that is too large (413) is
halved, and the lane uses the smaller size from then on.

An origin never prevents a delivery. If a request with ``partial=true`` is rejected, it is sent again without origins, and the
lane sends no origins until its sink is resolved again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from ingestd.client.records import BulkItemResult, BulkResult
from ingestd.client.response import ServiceResponse, without_item_paths
from ingestd.delivery.blocker import Blocker, blocker_of
from ingestd.delivery.claim_results import rejection_of
from ingestd.delivery.items import Item, split_in_half, split_items
from ingestd.delivery.lane_parts import LaneParts
from ingestd.delivery.limiter import Permit
from ingestd.delivery.origins import OriginEncoder
from ingestd.delivery.resolved_sink import ResolvedSink
from ingestd.mirror.port import Claim, RejectedEntry
from ingestd.telemetry.catalogue.delivery import OriginsRefused

_NO_ORIGINS = OriginEncoder(None, page="")


class BulkSender:
    """Sends claims of one lane to a service that announces bulk.

    ``on_too_large`` is called with the new limit in bytes after a request was too large. ``on_blocked`` is called with a blocker
    before the claim is released, so that no other task claims the same entries at once.
    """

    def __init__(
        self,
        lane: LaneParts,
        sink: ResolvedSink,
        *,
        on_too_large: Callable[[int], None],
        on_blocked: Callable[[Blocker], None],
    ) -> None:
        self._lane = lane
        self._sink = sink
        self._origins = OriginEncoder(sink.origin, page=lane.limits.page)
        self._max_bytes = sink.bulk.max_bytes if sink.bulk is not None else 0
        self._on_too_large = on_too_large
        self._on_blocked = on_blocked

    async def send(self, claim: Claim, permit: Permit) -> None:
        """Deliver a claim and acknowledge or release it. The permit is released after the last response."""
        try:
            body = self._origins.claim_body(claim, self._max_bytes)
            response = await self._request(body, claim.items, [part.segment for part in claim.parts])
            if response.ok and not self._lane.read_back.is_needed(min(part.oldest for part in claim.parts), response):
                # The next step waits for the mirror and not for the service, so another request may be sent now.
                permit.release()
                await self._lane.results.acknowledge_all(claim, response)
                return
            items = split_items(claim)
            if response.ok:
                blocker = await self._acknowledge(claim, items, response)
            else:
                blocker = await self._handle_rejection(claim, items, response, body, partial=True)
            if blocker is not None:
                self._on_blocked(blocker)
            await self._lane.results.release(claim, response if blocker else None)
        except asyncio.CancelledError:
            await self._lane.results.release(claim)
            raise
        finally:
            permit.release()

    async def _request(
        self, body: bytes, items: int, segments: Sequence[int], *, partial: bool = False
    ) -> ServiceResponse[BulkResult]:
        sink = self._sink
        response = await self._lane.client.mass_update(
            sink.workspace,
            sink.sink,
            body=body,
            items=items,
            idempotency_key=self._lane.keys.for_entries(f"{sink}?partial={partial}", segments, body),
            partial=partial,
        )
        self._lane.read_back.note_response(response, segments)
        self._lane.limiter.record_response(response, size=items)
        if not response.ok and response.status is not None:
            self._lane.keys.record_refusal()
        return response

    async def _handle_rejection(
        self, claim: Claim, items: Sequence[Item], response: ServiceResponse[BulkResult], body: bytes, *, partial: bool
    ) -> Blocker | None:
        """Deliver the ``items`` of a rejected request that can be delivered; reject the bad items.

        ``body``: the body of the rejected request. ``partial``: the items may still be sent with ``partial=true``.
        """
        origins = self._origins if _has_origins(body) else _NO_ORIGINS
        if response.outcome.remedy == "reject":
            if partial and not await self._announces_bulk(response):
                return Blocker(reaction="reopen", sentence="The service no longer announces bulk updates.")
            if response.bulk is not None and response.bulk.max_items < len(items):
                return Blocker(reaction="reopen", sentence="The service takes fewer entries at once than before.")
            return await self._isolate_bad_items(claim, items, response, origins, partial=partial)
        if response.remedy_for(len(body)) == "shrink":
            if len(items) == 1 and not _has_origins(body):
                await self._reject(claim, items[0], response)
                return None
            if len(items) > 1:
                self._on_too_large(max(1, len(body) // 2))
            return await self._send_halves(claim, items, origins if len(items) > 1 else _NO_ORIGINS, partial=partial)
        return blocker_of(response.outcome)

    async def _announces_bulk(self, response: ServiceResponse[BulkResult]) -> bool:
        """Return whether the service still takes bulk requests; another service may have replaced it."""
        if response.bulk is not None:
            return True
        listed = await self._lane.client.list_sinks(self._sink.workspace)
        return not listed.ok or listed.bulk is not None

    async def _isolate_bad_items(
        self,
        claim: Claim,
        items: Sequence[Item],
        rejection: ServiceResponse[BulkResult],
        origins: OriginEncoder,
        *,
        partial: bool,
    ) -> Blocker | None:
        if partial:
            body = origins.items_body(items, self._max_bytes)
            response = await self._request(body, len(items), _segments(items), partial=True)
            if response.ok and response.value is not None:
                return await self._apply_results(claim, items, response, response.value)
            if response.outcome.remedy != "reject":
                return await self._handle_rejection(claim, items, response, body, partial=True)
            if _has_origins(body):
                self._origins = _NO_ORIGINS
                self._lane.emit(OriginsRefused(sink=str(self._lane.address), sentence=response.outcome.sentence))
                return await self._isolate_bad_items(claim, items, response, _NO_ORIGINS, partial=True)
            rejection = response
        if len(items) == 1:
            await self._reject(claim, items[0], rejection)
            return None
        return await self._send_halves(claim, items, _NO_ORIGINS, partial=False)

    async def _send_halves(
        self, claim: Claim, items: Sequence[Item], origins: OriginEncoder, *, partial: bool
    ) -> Blocker | None:
        for half in filter(None, split_in_half(items)):
            body = origins.items_body(half, self._max_bytes)
            response = await self._request(body, len(half), _segments(half))
            if response.ok:
                blocker = await self._acknowledge(claim, half, response)
            else:
                blocker = await self._handle_rejection(claim, half, response, body, partial=partial)
            if blocker is not None:
                return blocker
        return None

    async def _acknowledge(
        self,
        claim: Claim,
        items: Sequence[Item],
        response: ServiceResponse[BulkResult],
        rejected: Sequence[RejectedEntry] = (),
    ) -> Blocker | None:
        """Acknowledge items that the service has stored.

        If the service shows other values, acknowledge nothing and return the blocker.
        """
        blocker = await self._lane.read_back.check(self._sink, items, response)
        delivered = [] if blocker is not None else [item.key for item in items]
        await self._lane.results.acknowledge_some(claim, delivered=delivered, rejected=rejected, response=response)
        return blocker

    async def _apply_results(
        self, claim: Claim, items: Sequence[Item], response: ServiceResponse[BulkResult], result: BulkResult
    ) -> Blocker | None:
        """Acknowledge items by their results. Items that could not be stored for a temporary reason stay pending."""
        results = result.results
        if results is None:
            return await self._acknowledge(claim, items, response)
        failed = [one for one in results if one.status >= 300]
        rejected = [one for one in failed if _is_final(one.status)]
        bad = {one.index for one in failed}
        blocker = await self._acknowledge(
            claim,
            [item for index, item in enumerate(items) if index not in bad],
            response,
            [_rejected_item(items[one.index], one, response) for one in rejected],
        )
        if blocker is None and len(rejected) < len(failed):
            first = next(one for one in failed if not _is_final(one.status))
            return Blocker(
                reaction="retry",
                sentence=f"The service could not store {len(failed) - len(rejected)} of {len(items)} entries for now "
                f"({first.status}): {first.reason}.",
            )
        return blocker

    async def _reject(self, claim: Claim, item: Item, response: ServiceResponse[BulkResult]) -> None:
        rejected = rejection_of(item.key, response)
        await self._lane.results.acknowledge_some(claim, delivered=(), rejected=(rejected,), response=response)


def _has_origins(body: bytes) -> bool:
    return body.startswith(b"{")


def _segments(items: Sequence[Item]) -> list[int]:
    return sorted({item.segment for item in items})


def _is_final(status: int) -> bool:
    return status in {400, 404, 409, 413, 422}


def _rejected_item(item: Item, result: BulkItemResult, response: ServiceResponse[BulkResult]) -> RejectedEntry:
    reason = f"The service refuses the entry ({result.status}): {result.reason}"
    return replace(rejection_of(item.key, response), reason=without_item_paths(reason), status=result.status)
