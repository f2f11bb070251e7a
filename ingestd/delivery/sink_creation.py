"""Creation of a sink together with its first entries."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from ingestd.client.records import SinkSummary
from ingestd.client.response import ServiceResponse
from ingestd.client.service import ServiceClient
from ingestd.core.address import SinkAddress
from ingestd.delivery.blocker import Blocker, blocker_of
from ingestd.delivery.claim_results import ClaimResults
from ingestd.delivery.delivery_limits import DeliveryLimits
from ingestd.delivery.idempotency import IdempotencyKeys
from ingestd.delivery.items import Item, split_items
from ingestd.delivery.limiter import Limiter
from ingestd.delivery.read_back import ReadBack
from ingestd.delivery.resolved_sink import ResolvedSink
from ingestd.mirror.port import Deliverable
from ingestd.telemetry.catalogue.delivery import SinkCreated
from ingestd.telemetry.event import Emit
from ingestd.wire.bulk import BulkLimits


class SinkCreation:
    """Creates the sink of one lane."""

    def __init__(
        self,
        *,
        mirror: Deliverable,
        client: ServiceClient,
        address: SinkAddress,
        emit: Emit,
        results: ClaimResults,
        keys: IdempotencyKeys,
        limiter: Limiter,
        limits: DeliveryLimits,
        read_back: ReadBack,
    ) -> None:
        self._mirror = mirror
        self._client = client
        self._address = address
        self._emit = emit
        self._results = results
        self._keys = keys
        self._limiter = limiter
        self._read_back = read_back
        self._items = limits.create_items
        self._bytes = limits.create_bytes
        self.is_running = False

    async def create(self, lane: int, workspace: str, bulk: BulkLimits | None) -> ResolvedSink | Blocker | None:
        """Create the sink with the oldest pending entries. None: no pending entry belongs in it.

        If the service rejects the request for one of its entries, or for its size, the sink is created empty. The entries
        follow in the usual form, each with its own outcome.
        """
        self.is_running = True
        try:
            return await self._create(lane, workspace, bulk)
        finally:
            self.is_running = False

    async def _create(self, lane: int, workspace: str, bulk: BulkLimits | None) -> ResolvedSink | Blocker | None:
        claim = await self._results.claim(max_items=self._items, max_bytes=self._bytes)
        if claim is None:
            return None
        try:
            items = split_items(claim)
            first = [item for item in items if item.kind != "delete"]
            if not first:
                # A sink that does not exist has no entries to delete.
                await self._results.acknowledge_unsent(claim)
                return None
            response = await self._request(workspace, first)
            self._read_back.note_response(response, (part.segment for part in claim.parts))
            if response.value is not None and response.value.entries is not None and not response.replayed:
                await self._remember(lane, workspace, response.value, adopted=True, entries=len(first))
                await self._results.acknowledge_all(claim, response)
                return ResolvedSink(workspace=workspace, sink=response.value.id, bulk=response.bulk or bulk)
            await self._results.release(claim, response)
        except asyncio.CancelledError:
            self._read_back.note(part.segment for part in claim.parts)
            await self._results.release(claim)
            raise
        if response.outcome.remedy in {"reject", "shrink"}:
            return await self._create_empty(lane, workspace, bulk)
        if response.value is not None:
            # The response is a repeated one, or does not list what the service stored. Only a read of the sink is reliable.
            self._keys.record_refusal()
            return Blocker(reaction="reopen", sentence="The sink was created; what it holds is being read.")
        return self._blocker(response)

    async def _create_empty(self, lane: int, workspace: str, bulk: BulkLimits | None) -> ResolvedSink | Blocker:
        response = await self._request(workspace, ())
        if response.value is not None and not response.replayed:
            await self._remember(lane, workspace, response.value, adopted=True, entries=0)
            return ResolvedSink(workspace=workspace, sink=response.value.id, bulk=response.bulk or bulk)
        await self._results.record_attempt(response)
        return self._blocker(response)

    async def _request(self, workspace: str, items: Sequence[Item]) -> ServiceResponse[SinkSummary]:
        entries = tuple(msgspec.Raw(item.raw) for item in items)
        body = msgspec.json.encode({"label": self._address.name.strip()} | ({"entries": entries} if entries else {}))
        response = await self._client.create_sink(
            workspace,
            body=body,
            keys=[item.key for item in items],
            idempotency_key=self._keys.for_sink(f"{workspace}/{self._address.name}", body),
        )
        self._limiter.record_response(response)
        if not response.ok and response.status is not None:
            self._keys.record_refusal()
        return response

    async def _remember(self, lane: int, workspace: str, sink: SinkSummary, *, adopted: bool, entries: int) -> None:
        await self._mirror.remember_sink(lane, workspace_id=workspace, sink_id=sink.id, adopted=adopted)
        self._emit(SinkCreated(sink=str(self._address), sink_id=sink.id, entries=entries))

    def _blocker(self, response: ServiceResponse[SinkSummary]) -> Blocker:
        """Return the blocker of a response; if the service rejects the sink itself, a person must act."""
        is_rejected = response.outcome.remedy in {"reject", "shrink", "missing"} and not response.is_refusal_of_proxy
        return blocker_of(response.outcome, reaction="pause" if is_rejected else None)
