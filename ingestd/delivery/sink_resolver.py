"""Resolves the sink of a lane: finds its workspace and the sink, creates it if it does not exist, and adopts its entries.

The sink is looked up before each creation: after a request without a response, after a crash, and after the service reported
that the sink is missing. So no failure creates a second sink with the same label.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

import polars as pl
from msgspec.structs import replace

from ingestd.client.records import SinkSummary
from ingestd.client.response import ServiceResponse
from ingestd.client.service import ServiceClient
from ingestd.core.address import SinkAddress
from ingestd.core.normal_form import nfc
from ingestd.delivery.blocker import Blocker, blocker_of
from ingestd.delivery.claim_results import ClaimResults
from ingestd.delivery.delivery_limits import DeliveryLimits
from ingestd.delivery.idempotency import IdempotencyKeys
from ingestd.delivery.limiter import Limiter
from ingestd.delivery.lost_sink import find_sink, is_lost, stopped_by
from ingestd.delivery.read_back import ReadBack
from ingestd.delivery.resolved_sink import ResolvedSink
from ingestd.delivery.sink_creation import SinkCreation
from ingestd.delivery.sink_rows import Row, row_of
from ingestd.mirror.port import Deliverable, LaneState
from ingestd.telemetry.catalogue.delivery import SinkAdopted, SinkFound, SinkLost
from ingestd.telemetry.event import Emit
from ingestd.wire.bulk import BulkLimits

T = TypeVar("T")

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_FRAME = {"key": str, "value": str, "data_type": str}


class SinkResolver:
    """Resolves the sink of one lane, as often as needed."""

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
        self._read_back = read_back
        self._mirror = mirror
        self._client = client
        self._address = address
        self._emit = emit
        self._results = results
        self._keys = keys
        self._limiter = limiter
        self._missing_sink = limits.missing_sink
        self._creation = SinkCreation(
            mirror=mirror,
            client=client,
            address=address,
            emit=emit,
            results=results,
            keys=keys,
            limiter=limiter,
            limits=limits,
            read_back=read_back,
        )

    @property
    def is_creating(self) -> bool:
        """Whether a request that creates the sink is in flight."""
        return self._creation.is_running

    async def resolve(self, state: LaneState) -> ResolvedSink | Blocker | None:
        """Find, adopt or create the sink of a lane with pending entries. None: nothing is left to deliver."""
        workspace = await self._find_workspace()
        if isinstance(workspace, Blocker):
            return workspace
        listed = await self._list(workspace)
        if isinstance(listed, Blocker):
            return listed
        sink = await self._find_remembered(workspace, state, listed.value or ()) or self._find_addressed(
            listed.value or ()
        )
        if sink is None and listed.fenced and self._read_back.has_unknown_outcomes:
            # A late request must not create the sink between this list and the next creation.
            fenced = self._record(await self._client.fence(workspace))
            if fenced.outcome.remedy != "missing":
                await self._results.record_attempt(fenced)
                return blocker_of(fenced.outcome)
            listed = await self._list(workspace)
            if isinstance(listed, Blocker):
                return listed
            sink = self._find_addressed(listed.value or ())
        if sink is None:
            return await self._creation.create(state.id, workspace, listed.bulk)
        if isinstance(sink, SinkSummary) and (sink.id != state.sink_id or not state.adopted):
            sink = await self._adopt(state.id, workspace, sink)
        return sink if isinstance(sink, Blocker) else self._resolved(workspace, sink, listed.bulk)

    async def _list(self, workspace: str) -> ServiceResponse[tuple[SinkSummary, ...]] | Blocker:
        listed = self._record(await self._client.list_sinks(workspace))
        if listed.value is not None:
            return listed
        await self._results.record_attempt(listed)
        if listed.outcome.remedy in {"missing", "reject"}:
            return self._unknown_workspace(listed.outcome.sentence)
        return blocker_of(listed.outcome)

    def _record(self, response: ServiceResponse[T]) -> ServiceResponse[T]:
        self._limiter.record_response(response)
        return response

    def _resolved(self, workspace: str, sink: SinkSummary, bulk: BulkLimits | None) -> ResolvedSink:
        self._emit(SinkFound(sink=str(self._address), sink_id=sink.id, bulk=str(bulk) if bulk else ""))
        return ResolvedSink(workspace=workspace, sink=sink.id, bulk=bulk)

    async def _find_workspace(self) -> str | Blocker:
        """Return the id of the workspace, which may be configured by its label."""
        wanted = nfc(self._address.workspace.strip())
        if _UUID.fullmatch(wanted):
            return wanted.lower()
        response = self._record(await self._client.list_workspaces())
        if not response.ok or response.value is None:
            await self._results.record_attempt(response)
            is_rejected = response.outcome.remedy in {"missing", "reject"}
            return blocker_of(response.outcome, reaction="pause" if is_rejected else None)
        found = [workspace for workspace in response.value if wanted in {nfc(workspace.label.strip()), workspace.id}]
        if len(found) == 1:
            return found[0].id
        if found:
            ids = ", ".join(sorted(workspace.id for workspace in found))
            return Blocker(
                reaction="pause",
                sentence=f"{len(found)} workspaces have the label {wanted!r}: {ids}. Put the id of the right one into the "
                "pipeline's sink.workspace.",
            )
        return self._unknown_workspace("It lists none with this label.")

    def _unknown_workspace(self, reason: str) -> Blocker:
        return Blocker(
            reaction="pause",
            sentence=f"The service at {self._client.address} has no workspace {self._address.workspace!r} that the API key may "
            f"use. Check sink.workspace in the configuration, or give the key access. {reason}",
        )

    async def _find_remembered(
        self, workspace: str, state: LaneState, listed: Sequence[SinkSummary]
    ) -> SinkSummary | Blocker | None:
        """Return the sink that the mirror remembers; None if the service no longer has it, and the mirror forgets it."""
        if not state.sink_id:
            return None
        found = await find_sink(self._client, replace(state, workspace_id=workspace), listed)
        if isinstance(found, SinkSummary):
            return found
        await self._results.record_attempt(self._record(found))
        if found.outcome.remedy != "missing":
            return blocker_of(found.outcome)
        return await self._lose(state)

    async def check(self, state: LaneState) -> Blocker | None:
        """Look whether the service still has the remembered sink; if it has lost it, its entries are pending again.

        A blocker says that the sink is not created again. A service that is away shows nothing, so its failures do not count.
        """
        response = await self._client.get_sink(state.workspace_id, state.sink_id)
        if response.outcome.remedy != "missing" or not await is_lost(self._client, state):
            return None
        return await self._lose(state)

    async def _lose(self, state: LaneState) -> Blocker | None:
        """Forget a sink that the service has lost, unless the configuration forbids it."""
        if self._missing_sink == "stop":
            return stopped_by(self._address, state.sink_id)
        await self._mirror.forget_sink(state.id, lost=state.sink_id)
        self._keys.record_refusal()
        self._emit(SinkLost(sink=str(self._address), sink_id=state.sink_id))
        return None

    def _find_addressed(self, listed: Sequence[SinkSummary]) -> SinkSummary | Blocker | None:
        """Return the sink with the configured address; None if it must be created."""
        name = nfc(self._address.name.strip())
        if self._address.by == "label":
            found = [sink for sink in listed if nfc(sink.label.strip()) == name]
        elif self._address.by == "id":
            found = [sink for sink in listed if sink.id.lower() == name.lower()]
        else:
            found = [sink for sink in listed if nfc(sink.visible_id or "").lower() == name.lower()]
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(sorted(sink.visible_id or sink.id for sink in found))
            return Blocker(
                reaction="pause",
                sentence=f"{len(found)} sinks of the workspace have the label {name!r}: {ids}. Name the right one in the "
                "pipeline's sink by id or visible id.",
            )
        if self._address.by == "label":
            return None
        return Blocker(
            reaction="pause",
            sentence=f"The workspace has no sink {name!r}. A sink named by id is never created: correct the pipeline's sink, or "
            "name it by label to have it created.",
        )

    async def _adopt(self, lane: int, workspace: str, sink: SinkSummary) -> SinkSummary | Blocker:
        """Read the entries of the sink into the mirror; an interrupted read starts again at the next resolution."""
        acknowledged = 0

        async def take(rows: list[Row]) -> None:
            nonlocal acknowledged
            acknowledged += await self._mirror.adopt(lane, pl.DataFrame(rows, schema=_FRAME, orient="row"))

        await self._mirror.remember_sink(lane, workspace_id=workspace, sink_id=sink.id, adopted=False)
        response = self._record(await self._client.read_sink(workspace, sink.id, take, row_of))
        await self._results.record_attempt(response, response.value or 0)
        if response.value is None:
            return blocker_of(response.outcome, reaction="retry" if response.outcome.remedy == "missing" else None)
        await self._mirror.remember_sink(lane, workspace_id=workspace, sink_id=sink.id, adopted=True)
        self._emit(SinkAdopted(sink=str(self._address), sink_id=sink.id, entries=response.value, settled=acknowledged))
        self._results.on_progress()
        return sink
