"""SinkResolver a lane: which workspace, which sink, is it there, what does it hold.

A sink is looked up before it is created, every time: after a request whose answer was lost, after a crash, after the
service said that it is gone. So no failure makes a second sink of one label.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

import polars as pl

from ingestd.client.records.summaries import SinkSummary
from ingestd.client.response import ServiceResponse
from ingestd.client.service import ServiceClient
from ingestd.client.sink_stream import Row, row_of
from ingestd.core.address import SinkAddress
from ingestd.delivery.blocker import Blocker, blocker_of
from ingestd.delivery.claim_results import ClaimResults
from ingestd.delivery.delivery_limits import DeliveryLimits
from ingestd.delivery.idempotency import IdempotencyKeys
from ingestd.delivery.limiter import Limiter
from ingestd.delivery.resolved_sink import ResolvedSink
from ingestd.delivery.sink_creation import SinkCreation
from ingestd.mirror.port import Deliverable, LaneState
from ingestd.telemetry.catalogue.delivery import SinkAdopted, SinkFound, SinkLost
from ingestd.telemetry.event import Emit
from ingestd.wire.bulk import BulkLimits

T = TypeVar("T")

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_FRAME = {"key": pl.String, "value": pl.String, "data_type": pl.String}


class SinkResolver:
    """Opens one lane, as often as it has to be opened."""

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
        self._missing_sink = pace.missing_sink
        self._creation = SinkCreation(
            mirror=mirror,
            client=client,
            address=address,
            emit=emit,
            settling=settling,
            keys=keys,
            governor=governor,
            pace=pace,
        )

    @property
    def creating(self) -> bool:
        """A request that creates the sink is under way."""
        return self._creation.under_way

    async def open(self, state: LaneState) -> ResolvedSink | Blocker | None:
        """Find, adopt or create the sink of a lane with pending entries. None: there was nothing left to deliver."""
        workspace = await self._workspace()
        if isinstance(workspace, Blocker):
            return workspace
        listed = self._heard(await self._client.list_sinks(workspace))
        if listed.value is None:
            await self._settling.note(listed)
            if listed.outcome.remedy in {"missing", "park"}:
                return self._unknown_workspace(listed.outcome.sentence)
            return blocker_of(listed.outcome)
        sink = await self._remembered(workspace, state, listed.value) or self._addressed(listed.value)
        if sink is None:
            return await self._creation.create(state.id, workspace, listed.bulk)
        if isinstance(sink, SinkSummary) and (sink.id != state.sink_id or not state.adopted):
            sink = await self._adopted(state.id, workspace, sink)
        return sink if isinstance(sink, Blocker) else self._found(workspace, sink, listed.bulk)

    def _heard(self, reply: ServiceResponse[T]) -> ServiceResponse[T]:
        self._governor.heard(reply)
        return reply

    def _found(self, workspace: str, sink: SinkSummary, bulk: BulkLimits | None) -> ResolvedSink:
        self._emit(SinkFound(sink=str(self._address), sink_id=sink.id, bulk=str(bulk) if bulk else ""))
        return ResolvedSink(workspace=workspace, sink=sink.id, bulk=bulk)

    async def _workspace(self) -> str | Blocker:
        """The workspace's id; a label is looked up."""
        wanted = self._address.workspace.strip()
        if _UUID.fullmatch(wanted):
            return wanted.lower()
        reply = self._heard(await self._client.list_workspaces())
        if not reply.ok or reply.value is None:
            await self._settling.note(reply)
            return blocker_of(reply.outcome, way="pause" if reply.outcome.remedy in {"missing", "park"} else None)
        found = [workspace for workspace in reply.value if wanted in {workspace.label.strip(), workspace.id}]
        if len(found) == 1:
            return found[0].id
        if found:
            ids = ", ".join(sorted(workspace.id for workspace in found))
            return Blocker(
                way="pause",
                sentence=f"{len(found)} workspaces have the label {wanted!r}: {ids}. Put the id of the right one into the "
                "pipeline's sink.workspace.",
            )
        return self._unknown_workspace("It lists none with this label.")

    def _unknown_workspace(self, why: str) -> Blocker:
        return Blocker(
            way="pause",
            sentence=f"The service at {self._client.address} has no workspace {self._address.workspace!r} that the API key may "
            f"use. Check sink.workspace in the configuration, or give the key access. {why}",
        )

    async def _remembered(
        self, workspace: str, state: LaneState, listed: Sequence[SinkSummary]
    ) -> SinkSummary | Blocker | None:
        """The sink that the mirror remembers; None, and forgotten, where the service has it no more."""
        if not state.sink_id:
            return None
        found = next((sink for sink in listed if sink.id == state.sink_id), None)
        if found is not None:
            return found
        # A list alone is no proof: forgetting costs a rewrite of every entry, so the sink itself is asked for.
        reply = self._heard(await self._client.get_sink(workspace, state.sink_id))
        if reply.value is not None:
            return reply.value
        await self._settling.note(reply)
        if reply.outcome.remedy != "missing":
            return blocker_of(reply.outcome)
        if self._missing_sink == "stop":
            return Blocker(
                way="pause",
                sentence=f"The service no longer has the sink {state.sink_id} of {self._address}. It is not created again, for "
                "service.missing_sink is 'stop': restore the sink, or set it to 'create' to have all its entries written anew.",
            )
        await self._mirror.forget_sink(state.id)
        self._keys.refused()
        self._emit(SinkLost(sink=str(self._address), sink_id=state.sink_id))
        return None

    def _addressed(self, listed: Sequence[SinkSummary]) -> SinkSummary | Blocker | None:
        """The sink that the address names; None where it has to be created."""
        name = self._address.name.strip()
        if self._address.by == "label":
            found = [sink for sink in listed if sink.label.strip() == name]
        elif self._address.by == "id":
            found = [sink for sink in listed if sink.id.lower() == name.lower()]
        else:
            found = [sink for sink in listed if (sink.visible_id or "").lower() == name.lower()]
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(sorted(sink.visible_id or sink.id for sink in found))
            return Blocker(
                way="pause",
                sentence=f"{len(found)} sinks of the workspace have the label {name!r}: {ids}. Name the right one in the "
                "pipeline's sink by id or visible id.",
            )
        if self._address.by == "label":
            return None
        return Blocker(
            way="pause",
            sentence=f"The workspace has no sink {name!r}. A sink named by id is never created: correct the pipeline's sink, or "
            "name it by label to have it created.",
        )

    async def _adopted(self, lane: int, workspace: str, sink: SinkSummary) -> SinkSummary | Blocker:
        """Read what the sink holds into the mirror; a read that breaks off is begun again at the next opening."""
        settled = 0

        async def take(rows: list[Row]) -> None:
            nonlocal settled
            settled += await self._mirror.adopt(lane, pl.DataFrame(rows, schema=_FRAME, orient="row"))

        await self._mirror.remember_sink(lane, workspace_id=workspace, sink_id=sink.id, adopted=False)
        reply = self._heard(await self._client.read_sink(workspace, sink.id, take, row_of))
        await self._settling.note(reply, reply.value or 0)
        if reply.value is None:
            return blocker_of(reply.outcome, way="retry" if reply.outcome.remedy == "missing" else None)
        await self._mirror.remember_sink(lane, workspace_id=workspace, sink_id=sink.id, adopted=True)
        self._emit(SinkAdopted(sink=str(self._address), sink_id=sink.id, entries=reply.value, settled=settled))
        self._settling.progressed()
        return sink
