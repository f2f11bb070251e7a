"""Resolves the sink of a lane: finds the workspace and the sink, creates a missing sink, and adopts existing entries.

The sink is looked up before each creation, also after a request without a response or a crash. The same is true after the
service has reported that the sink is missing. So no failure creates a second sink with the same label.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
import polars as pl
from msgspec.structs import replace

from ingestd.client.addresses import sinks_named, workspaces_named
from ingestd.client.bodies import is_same_value
from ingestd.client.records import SinkSummary
from ingestd.client.response import ServiceResponse
from ingestd.core.normal_form import compared_name, nfc
from ingestd.delivery.blocker import Blocker, blocker_of
from ingestd.delivery.items import Item, split_items
from ingestd.delivery.lane_parts import LaneParts
from ingestd.delivery.lost_sink import find_sink, is_lost, stopped_by
from ingestd.delivery.origins import OriginEncoder
from ingestd.delivery.resolved_sink import ResolvedSink
from ingestd.delivery.sink_rows import Row, row_of
from ingestd.mirror.port import LaneState
from ingestd.telemetry.catalogue.delivery import SinkAdopted, SinkCreated, SinkFound, SinkLost
from ingestd.telemetry.catalogue.intake import RunHeld

T = TypeVar("T")

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_FRAME = {"key": str, "value": str, "data_type": str}


class SinkResolver:
    """Resolves the sink of one lane, as often as needed."""

    def __init__(self, lane: LaneParts) -> None:
        self._lane = lane
        self._creation = SinkCreation(lane)

    @property
    def is_creating(self) -> bool:
        """Whether a request that creates the sink is in flight."""
        return self._creation.is_running

    async def resolve(self, state: LaneState) -> ResolvedSink | Blocker | None:
        """Find, adopt or create the sink of a lane with pending entries. None: no entry is left to deliver."""
        workspace = await self._find_workspace()
        if isinstance(workspace, Blocker):
            return workspace
        # Pipelines may name one sink in several ways, such as by the label and by the id of its workspace. Without the lock,
        # each of their lanes would find no sink, and create one.
        async with self._lane.resolving[workspace.lower(), compared_name(self._lane.address.name)]:
            return await self._resolve_in(workspace, state)

    async def _resolve_in(self, workspace: str, state: LaneState) -> ResolvedSink | Blocker | None:
        listed = await self._list(workspace)
        if isinstance(listed, Blocker):
            return listed
        sink = await self._find_remembered(workspace, state, listed.value or ()) or self._find_addressed(
            listed.value or ()
        )
        if sink is None and listed.fenced and self._lane.read_back.has_unknown_outcomes:
            # A late request must not create the sink between this list and the next creation.
            fenced = self._record(await self._lane.client.fence(workspace))
            if fenced.outcome.remedy != "missing":
                await self._lane.results.record_attempt(fenced)
                return blocker_of(fenced.outcome)
            listed = await self._list(workspace)
            if isinstance(listed, Blocker):
                return listed
            sink = self._find_addressed(listed.value or ())
        if sink is None:
            return await self._creation.create(state.id, workspace, listed)
        if isinstance(sink, SinkSummary):
            sink = await self._only_address(state.id, sink)
        if isinstance(sink, SinkSummary) and (sink.id != state.sink_id or not state.adopted):
            sink = await self._adopt(state.id, workspace, sink)
        return sink if isinstance(sink, Blocker) else self._resolved(workspace, sink, listed)

    async def _list(self, workspace: str) -> ServiceResponse[tuple[SinkSummary, ...]] | Blocker:
        listed = self._record(await self._lane.client.list_sinks(workspace))
        if listed.value is not None:
            return listed
        await self._lane.results.record_attempt(listed)
        if listed.outcome.remedy in {"missing", "reject"}:
            return self._unknown_workspace(listed.outcome.sentence)
        return blocker_of(listed.outcome)

    def _record(self, response: ServiceResponse[T]) -> ServiceResponse[T]:
        self._lane.limiter.record_response(response)
        return response

    def _resolved(self, workspace: str, sink: SinkSummary, listed: ServiceResponse[Any]) -> ResolvedSink:
        bulk = str(listed.bulk) if listed.bulk else ""
        self._lane.emit(SinkFound(sink=str(self._lane.address), sink_id=sink.id, bulk=bulk))
        return ResolvedSink(workspace=workspace, sink=sink.id, bulk=listed.bulk, origin=listed.origin)

    async def _find_workspace(self) -> str | Blocker:
        """Return the id of the workspace, which may be configured by its label."""
        wanted = compared_name(self._lane.address.workspace)
        if _UUID.fullmatch(wanted):
            return wanted.lower()
        response = self._record(await self._lane.client.list_workspaces())
        if not response.ok or response.value is None:
            await self._lane.results.record_attempt(response)
            is_rejected = response.outcome.remedy in {"missing", "reject"}
            return blocker_of(response.outcome, reaction="pause" if is_rejected else None)
        found = workspaces_named(wanted, response.value)
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
        wanted = self._lane.address.workspace
        return Blocker(
            reaction="pause",
            sentence=f"The service at {self._lane.client.address} has no workspace {wanted!r} that the API key may use. "
            f"Check sink.workspace in the configuration, or give the key access. {reason}",
        )

    async def _find_remembered(
        self, workspace: str, state: LaneState, listed: Sequence[SinkSummary]
    ) -> SinkSummary | Blocker | None:
        """Return the sink that the mirror remembers.

        If the service no longer has it, the mirror forgets it, and the result is None.
        """
        if not state.sink_id:
            return None
        found = await find_sink(self._lane.client, replace(state, workspace_id=workspace), listed)
        if isinstance(found, SinkSummary):
            return found
        await self._lane.results.record_attempt(self._record(found))
        if found.outcome.remedy != "missing":
            return blocker_of(found.outcome)
        return await self._lose(state)

    async def check(self, state: LaneState) -> Blocker | None:
        """Check whether the service still has the remembered sink. If it was lost, its entries become pending again.

        Return a blocker if the configuration forbids creating a lost sink again. Other failures, for example an unreachable
        service, are ignored, because they do not prove a loss.
        """
        response = await self._lane.client.has_sink(state.workspace_id, state.sink_id)
        if response.outcome.remedy != "missing" or not await is_lost(self._lane.client, state):
            return None
        return await self._lose(state)

    async def _lose(self, state: LaneState) -> Blocker | None:
        """Forget a sink that the service has lost, unless the configuration forbids it."""
        if self._lane.limits.missing_sink == "stop":
            return stopped_by(self._lane.address, state.sink_id)
        await self._lane.mirror.forget_sink(state.id, lost=state.sink_id)
        self._lane.keys.record_refusal()
        self._lane.emit(SinkLost(sink=str(self._lane.address), sink_id=state.sink_id))
        return None

    def _find_addressed(self, listed: Sequence[SinkSummary]) -> SinkSummary | Blocker | None:
        """Return the sink with the configured address; None if it must be created."""
        name = compared_name(self._lane.address.name)
        found = sinks_named(name, listed, self._lane.address.by)
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(sorted(sink.visible_id or sink.id for sink in found))
            return Blocker(
                reaction="pause",
                sentence=f"{len(found)} sinks of the workspace have the label {name!r}: {ids}. Name the right one in the "
                "pipeline's sink by id or visible id.",
            )
        if self._lane.address.by == "label":
            return None
        return Blocker(
            reaction="pause",
            sentence=f"The workspace has no sink {name!r}. A sink named by id is never created: correct the pipeline's sink, or "
            "name it by label to have it created.",
        )

    async def _only_address(self, lane: int, sink: SinkSummary) -> SinkSummary | Blocker:
        """Return the sink, unless other pipelines write it under another address."""
        other = await self._lane.mirror.other_address(lane, sink.id)
        if other is None:
            return sink
        return Blocker(
            reaction="pause",
            sentence=f"{self._lane.address} and {other} are the same sink of the service, {sink.visible_id or sink.id}. Nothing "
            f"is sent to {self._lane.address}, because its pipelines would overwrite values of the pipelines of {other}. Name "
            "the sink in the same way in all these pipelines.",
        )

    async def _adopt(self, lane: int, workspace: str, sink: SinkSummary) -> SinkSummary | Blocker:
        """Read the entries of the sink into the mirror; an interrupted read starts again at the next resolution."""
        acknowledged = 0

        async def take(rows: list[Row]) -> None:
            nonlocal acknowledged
            acknowledged += await self._lane.mirror.adopt(lane, pl.DataFrame(rows, schema=_FRAME, orient="row"))

        await self._lane.mirror.remember_sink(lane, workspace_id=workspace, sink_id=sink.id, adopted=False)
        response = self._record(await self._lane.client.read_sink(workspace, sink.id, take, row_of))
        await self._lane.results.record_attempt(response, response.value or 0)
        if response.value is None:
            return blocker_of(response.outcome, reaction="retry" if response.outcome.remedy == "missing" else None)
        only = await self._only_address(lane, sink)  # another lane may have found the sink at the same time
        if isinstance(only, Blocker):
            return only
        contradicting = await self._lane.mirror.remember_sink(
            lane, workspace_id=workspace, sink_id=sink.id, adopted=True
        )
        for held in contradicting:
            self._lane.emit(
                RunHeld(pipeline=held.pipeline, partition=held.partition, run=held.run, sentence=held.sentence)
            )
        self._lane.emit(
            SinkAdopted(
                sink=str(self._lane.address), sink_id=sink.id, entries=response.value, acknowledged=acknowledged
            )
        )
        self._lane.results.on_progress()
        return sink


class SinkCreation:
    """Creates the sink of one lane."""

    def __init__(self, lane: LaneParts) -> None:
        self._lane = lane
        self.is_running = False

    async def create(self, lane: int, workspace: str, listed: ServiceResponse[Any]) -> ResolvedSink | Blocker | None:
        """Create the sink with the oldest pending entries. None: no pending entry belongs in the sink.

        ``listed``: the response with the list of the sinks, which announces the service's limits. If the service rejects the
        request because of an entry or its size, the sink is created empty. The entries then follow in usual requests, in which
        each entry has a separate outcome.
        """
        self.is_running = True
        try:
            return await self._create(lane, workspace, listed)
        finally:
            self.is_running = False

    async def _create(self, lane: int, workspace: str, listed: ServiceResponse[Any]) -> ResolvedSink | Blocker | None:
        claim = await self._lane.results.claim(
            max_items=self._lane.limits.create_items, max_bytes=self._lane.limits.create_bytes
        )
        if claim is None:
            return None
        try:
            items = split_items(claim)
            first = [item for item in items if item.kind != "delete"]
            if not first:
                # A sink that does not exist has no entries to delete.
                await self._lane.results.acknowledge_unsent(claim)
                return None
            origins = OriginEncoder(listed.origin, page=self._lane.limits.page).of_items(first)
            segments = [part.segment for part in claim.parts]
            response = await self._request(workspace, segments, first, origins)
            if response.value is not None and not response.replayed and _shows(response.value, first):
                await self._remember(lane, workspace, response.value, entries=len(first))
                await self._lane.results.acknowledge_all(claim, response)
                return _created(workspace, response.value, response, listed)
            await self._lane.results.release(claim, response)
        except asyncio.CancelledError:
            await self._lane.results.release(claim)
            raise
        if response.outcome.remedy in {"reject", "shrink"}:
            return await self._create_empty(lane, workspace, segments, listed)
        if response.value is not None:
            # The service repeated a stored response, or does not list the entries as they were sent. So the sink must be read.
            self._lane.keys.record_refusal()
            return Blocker(reaction="reopen", sentence="The sink was created; its content is being read.")
        return self._blocker(response)

    async def _create_empty(
        self, lane: int, workspace: str, segments: Sequence[int], listed: ServiceResponse[Any]
    ) -> ResolvedSink | Blocker:
        response = await self._request(workspace, segments)
        if response.value is not None and not response.replayed:
            await self._remember(lane, workspace, response.value, entries=0)
            return _created(workspace, response.value, response, listed)
        await self._lane.results.record_attempt(response)
        return self._blocker(response)

    async def _request(
        self, workspace: str, segments: Sequence[int], items: Sequence[Item] = (), origins: bytes = b""
    ) -> ServiceResponse[SinkSummary]:
        """Send the request that creates the sink. ``segments``: of the pending entries, even if the sink is created empty."""
        entries = tuple(msgspec.Raw(item.raw) for item in items)
        body = msgspec.json.encode(
            {"label": self._lane.address.name.strip()}
            | ({"entries": entries} if entries else {})
            | ({"origins": msgspec.Raw(origins)} if origins else {})
        )
        try:
            response = await self._lane.client.create_sink(
                workspace,
                body=body,
                keys=[item.key for item in items],
                idempotency_key=self._lane.keys.for_sink(f"{workspace}/{self._lane.address.name}", body),
            )
        except asyncio.CancelledError:
            self._lane.read_back.note(segments)
            raise
        self._lane.read_back.note_response(response, segments)
        self._lane.limiter.record_response(response)
        if not response.ok and response.status is not None:
            self._lane.keys.record_refusal()
        return response

    async def _remember(self, lane: int, workspace: str, sink: SinkSummary, *, entries: int) -> None:
        await self._lane.mirror.remember_sink(lane, workspace_id=workspace, sink_id=sink.id, adopted=True)
        self._lane.emit(SinkCreated(sink=str(self._lane.address), sink_id=sink.id, entries=entries))

    def _blocker(self, response: ServiceResponse[SinkSummary]) -> Blocker:
        """Return the blocker of a response; if the service rejects the sink itself, a person must act."""
        is_rejected = response.outcome.remedy in {"reject", "shrink", "missing"} and not response.is_refusal_of_proxy
        return blocker_of(response.outcome, reaction="pause" if is_rejected else None)


def _shows(created: SinkSummary, items: Sequence[Item]) -> bool:
    """Return whether a created sink lists the entries with the sent values."""
    if created.entries is None:
        return False
    shown = {nfc(entry.key): entry.value for entry in created.entries}
    return all(is_same_value(shown.get(nfc(item.key)), item.value) for item in items)


def _created(
    workspace: str, sink: SinkSummary, response: ServiceResponse[Any], listed: ServiceResponse[Any]
) -> ResolvedSink:
    return ResolvedSink(
        workspace=workspace, sink=sink.id, bulk=response.bulk or listed.bulk, origin=response.origin or listed.origin
    )
