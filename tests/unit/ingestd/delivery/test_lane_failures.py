"""A lane that fails is restarted, keeps no claims, and stops no other lane; a full disk is waited for."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence

import httpx
import pytest

from ingestd.core.address import SinkAddress
from ingestd.core.errors import MirrorCorrupt, MirrorFull
from ingestd.daemon.part_supervisor import PartSupervisor
from ingestd.mirror.port import Claim, DeliveryAttempt, HeldRun, LaneBlocker, LaneState, RejectedEntry
from ingestd.telemetry import Event
from ingestd.telemetry.catalogue.daemon import PartFailed
from tests.support.bulk_service import BulkService
from tests.support.delivery_rig import rig
from tests.support.memory_mirror import MemoryMirror
from tests.support.supervised_parts import FailedParts

METHODS = (
    "lanes",
    "remember_sink",
    "claim",
    "acknowledge",
    "acknowledge_some",
    "release",
    "note_attempt",
    "note_blocker",
)
WRITES = ("remember_sink", "acknowledge", "acknowledge_some", "release", "note_attempt", "note_blocker")


class FailingMirror(MemoryMirror):
    """Raises ``error`` at the numbered calls of ``method``, counted from 1."""

    def __init__(self, method: str, error: Exception, numbers: Sequence[int] = (1,)) -> None:
        super().__init__()
        self._method = method
        self._error = error
        self._failing = numbers
        self._met_calls = 0
        self.raised = 0

    def _fail_if_due(self, method: str) -> None:
        if method == self._method:
            self._met_calls += 1
            if self._met_calls in self._failing:
                self.raised += 1
                raise self._error

    async def lanes(self) -> list[LaneState]:
        self._fail_if_due("lanes")
        return await super().lanes()

    async def remember_sink(self, sink: int, *, workspace_id: str, sink_id: str, adopted: bool) -> Sequence[HeldRun]:
        self._fail_if_due("remember_sink")
        return await super().remember_sink(sink, workspace_id=workspace_id, sink_id=sink_id, adopted=adopted)

    async def claim(self, sink: int, *, max_items: int, max_bytes: int) -> Claim | None:
        self._fail_if_due("claim")
        return await super().claim(sink, max_items=max_items, max_bytes=max_bytes)

    async def acknowledge(self, claim: Claim, *, attempt: DeliveryAttempt | None = None) -> None:
        self._fail_if_due("acknowledge")
        await super().acknowledge(claim, attempt=attempt)

    async def acknowledge_some(
        self,
        claim: Claim,
        *,
        delivered: Sequence[str],
        rejected: Sequence[RejectedEntry] = (),
        attempt: DeliveryAttempt | None = None,
    ) -> None:
        self._fail_if_due("acknowledge_some")
        await super().acknowledge_some(claim, delivered=delivered, rejected=rejected, attempt=attempt)

    async def release(self, claim: Claim, *, attempt: DeliveryAttempt | None = None) -> None:
        if attempt is not None:
            self._fail_if_due("release")
        await super().release(claim, attempt=attempt)

    async def note_attempt(self, sink: int, attempt: DeliveryAttempt) -> None:
        self._fail_if_due("note_attempt")
        await super().note_attempt(sink, attempt)

    async def note_blocker(self, sink: int, blocker: LaneBlocker | None) -> None:
        self._fail_if_due("note_blocker")
        await super().note_blocker(sink, blocker)


class Hiccups(httpx.AsyncBaseTransport):
    """Responds to some requests with 503, so that claims are also released and blockers recorded."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self.inner = inner
        self._random_numbers = random.Random(7)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self._random_numbers.random() < 0.3:
            return httpx.Response(503, headers={"Retry-After": "0"}, json={"error": "Later"})
        return await self.inner.handle_async_request(request)


def supervisor(emit: Callable[[Event], None]) -> PartSupervisor:
    # The random number is so small that a failed part restarts after half a second.
    return PartSupervisor(FailedParts(), emit=emit, now=lambda: 0.0, random=random.Random(1).random)


async def deliver(mirror: FailingMirror, *, announce: bool, emit: Callable[[Event], None]) -> BulkService:
    """Change three sinks of three entries each once, and deliver until nothing is pending."""
    service = BulkService(announce=announce, bad=lambda key: key == "bad", replay=False)
    workspace = str(service.store.create_workspace({"label": "Bench"})["id"])
    sinks = [SinkAddress(workspace=workspace, by="label", name=f"Sink {number}") for number in range(3)]
    async with rig(transport=Hiccups(service), mirror=mirror, keep_running=supervisor(emit)) as running:
        for value in ("1", "2"):
            for sink in sinks:
                running.desire(sink, dict.fromkeys(("a", "b", "bad"), (value, "scalar")))
            async with asyncio.timeout(60):
                while any(mirror.pending(lane) for lane in (1, 2, 3)):
                    assert running.task is not None
                    if running.task.done():
                        running.task.result()
                    await running.dispatcher.changes.wait_past(running.dispatcher.changes.generation, seconds=0.1)
    for sink in sinks:
        (made,) = service.store.by_label(sink.name)
        assert service.store.values(made) == {"a": ("2", "scalar"), "b": ("2", "scalar")}
    return service


@pytest.mark.parametrize("announce", [True, False], ids=["bulk", "single"])
@pytest.mark.parametrize("method", METHODS)
async def test_a_lane_that_fails_is_restarted_and_delivers_all(method: str, announce: bool) -> None:
    events: list[Event] = []
    # The dispatcher is the first to list the lanes.
    mirror = FailingMirror(method, ValueError("a bug"), numbers=(3,) if method == "lanes" else (2,))
    await deliver(mirror, announce=announce, emit=events.append)
    failed = [event for event in events if isinstance(event, PartFailed)]
    assert len(failed) == mirror.raised
    assert all(event.part.startswith("lane Sink") for event in failed)
    assert all("ValueError: a bug" in event.sentence and "Traceback" in event.traceback for event in failed)


@pytest.mark.parametrize("announce", [True, False], ids=["bulk", "single"])
@pytest.mark.parametrize("method", WRITES)
async def test_a_full_disk_is_waited_for_and_is_no_failure(method: str, announce: bool) -> None:
    events: list[Event] = []
    mirror = FailingMirror(method, MirrorFull("the disk is full"), numbers=range(2, 6))
    await deliver(mirror, announce=announce, emit=events.append)
    assert events == []


async def test_a_damaged_state_file_ends_delivery() -> None:
    mirror = FailingMirror("claim", MirrorCorrupt("it is damaged"))
    with pytest.RaisesGroup(pytest.RaisesExc(MirrorCorrupt), flatten_subgroups=True):
        await deliver(mirror, announce=True, emit=lambda _: None)


async def test_a_transport_with_an_unexpected_exception_stops_only_its_lane() -> None:
    class Buggy(httpx.AsyncBaseTransport):
        def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
            self.inner = inner
            self.writes = 0

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            self.writes += request.method == "POST"
            if self.writes == 2:
                raise ZeroDivisionError("a bug")
            return await self.inner.handle_async_request(request)

    service, events = BulkService(), list[Event]()
    workspace = str(service.store.create_workspace({"label": "Bench"})["id"])
    sinks = [SinkAddress(workspace=workspace, by="label", name=f"Sink {number}") for number in range(3)]
    mirror = MemoryMirror()
    async with rig(transport=Buggy(service), mirror=mirror, keep_running=supervisor(events.append)) as running:
        for sink in sinks:
            running.desire(sink, {"a": ("1", "scalar")})
        (report,) = await running.drained()
        assert "ZeroDivisionError: a bug" in report.sentence
        acknowledged = running.acknowledgements.reached(1)
        await asyncio.wait_for(acknowledged.wait(), 20)
    assert not any(mirror.pending(lane) for lane in (1, 2, 3))
    assert len(events) == 1
