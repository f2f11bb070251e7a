"""Creating a sink together with its first entries."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from ingestd.client.records.summaries import SinkSummary
from ingestd.client.response import ServiceResponse
from ingestd.client.service import ServiceClient
from ingestd.core.address import SinkAddress
from ingestd.delivery.blocker import Blocker, blocker_of
from ingestd.delivery.claim_results import ClaimResults
from ingestd.delivery.delivery_limits import DeliveryLimits
from ingestd.delivery.idempotency import IdempotencyKeys
from ingestd.delivery.items import Item, taken_apart
from ingestd.delivery.limiter import Limiter
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
        settling: ClaimResults,
        keys: IdempotencyKeys,
        governor: Limiter,
        pace: DeliveryLimits,
    ) -> None:
        self._mirror = mirror
        self._client = client
        self._address = address
        self._emit = emit
        self._settling = settling
        self._keys = keys
        self._governor = governor
        self._items = pace.create_items
        self._bytes = pace.create_bytes
        self.under_way = False

    async def create(self, lane: int, workspace: str, bulk: BulkLimits | None) -> ResolvedSink | Blocker | None:
        """Create the sink with the oldest pending entries. None: nothing that belongs into it is pending.

        Where the service refuses the request for one of its entries, or for its size, the sink is created empty and
        the entries follow one by one or in bulk, each with its own outcome.
        """
        self.under_way = True
        try:
            return await self._create(lane, workspace, bulk)
        finally:
            self.under_way = False

    async def _create(self, lane: int, workspace: str, bulk: BulkLimits | None) -> ResolvedSink | Blocker | None:
        claim = await self._settling.claim(max_items=self._items, max_bytes=self._bytes)
        if claim is None:
            return None
        try:
            items = taken_apart(claim)
            first = [item for item in items if item.kind != "delete"]
            if not first:
                # Nothing has to be removed from a sink that does not exist.
                await self._settling.needless(claim)
                return None
            reply = await self._request(workspace, first)
            if reply.value is not None and reply.value.entries is not None and not reply.replayed:
                await self._remember(lane, workspace, reply.value, adopted=True, entries=len(first))
                await self._settling.whole(claim, reply)
                return ResolvedSink(workspace=workspace, sink=reply.value.id, bulk=reply.bulk or bulk)
            await self._settling.release(claim, reply)
        except asyncio.CancelledError:
            await self._settling.release(claim)
            raise
        if reply.outcome.remedy in {"park", "shrink"}:
            return await self._empty(lane, workspace, bulk)
        if reply.value is not None:
            # A repeated answer, or one that does not list what it stored: believe what the sink says when it is read.
            self._keys.refused()
            return Blocker(way="reopen", sentence="The sink was created; what it holds is being read.")
        return self._obstacle(reply)

    async def _empty(self, lane: int, workspace: str, bulk: BulkLimits | None) -> ResolvedSink | Blocker:
        reply = await self._request(workspace, ())
        if reply.value is not None and not reply.replayed:
            await self._remember(lane, workspace, reply.value, adopted=True, entries=0)
            return ResolvedSink(workspace=workspace, sink=reply.value.id, bulk=reply.bulk or bulk)
        await self._settling.note(reply)
        return self._obstacle(reply)

    async def _request(self, workspace: str, items: Sequence[Item]) -> ServiceResponse[SinkSummary]:
        entries = tuple(msgspec.Raw(item.raw) for item in items)
        body = msgspec.json.encode({"label": self._address.name.strip()} | ({"entries": entries} if entries else {}))
        reply = await self._client.create_sink(
            workspace,
            body=body,
            keys=[item.key for item in items],
            idempotency_key=self._keys.for_sink(f"{workspace}/{self._address.name}", body),
        )
        self._governor.heard(reply)
        if not reply.ok and reply.status is not None:
            self._keys.refused()
        return reply

    async def _remember(self, lane: int, workspace: str, sink: SinkSummary, *, adopted: bool, entries: int) -> None:
        await self._mirror.remember_sink(lane, workspace_id=workspace, sink_id=sink.id, adopted=adopted)
        self._emit(SinkCreated(sink=str(self._address), sink_id=sink.id, entries=entries))

    def _obstacle(self, reply: ServiceResponse[SinkSummary]) -> Blocker:
        """A refusal that is about the sink itself is for a person; anything else passes."""
        refused = reply.outcome.remedy in {"park", "shrink", "missing"} and not reply.is_refusal_of_proxy
        return blocker_of(reply.outcome, way="pause" if refused else None)
