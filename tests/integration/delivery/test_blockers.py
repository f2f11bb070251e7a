"""Blockers of a lane: what is reported, what waits, and that nothing is lost or sent twice meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from ingestd.client.transport import Timeouts
from ingestd.core.address import SinkAddress
from ingestd.delivery.delivery_limits import DeliveryLimits
from ingestd.delivery.report import LaneReport
from ingestd.telemetry.catalogue.delivery import DeliveryDelayed, DeliveryPaused, DeliveryResumed, SinkLost
from tests.support.delivery_rig import FAST_LIMITS, Rig, rig
from tests.support.document_server import Delay, DocumentServer, Garbage, Refuse, Truncate

UNKNOWN = "11111111-2222-4333-8444-555555555555"


@pytest.fixture
def server() -> Iterator[DocumentServer]:
    with DocumentServer() as running:
        yield running
        assert running.errors == 0


def address(workspace: str) -> SinkAddress:
    return SinkAddress(workspace=workspace, by="label", name="Mass budget")


async def with_status(running: Rig, wanted: str) -> LaneReport:
    """Wait for the lane's report with this status."""
    async with asyncio.timeout(10):
        while True:
            known = running.dispatcher.changes.generation
            for report in running.dispatcher.report():
                if report.status == wanted:
                    return report
            await running.dispatcher.changes.wait_past(known)


async def only_paused(running: Rig) -> LaneReport:
    (report,) = await running.drained()
    assert report.status == "paused"
    assert report.until is not None
    return report


async def test_an_unknown_key_pauses_the_lane_and_reports_where_the_key_is_configured(server: DocumentServer) -> None:
    to = address(server.workspace())
    async with rig(url=server.url, api_key="not-the-key") as running:
        running.desire(to, {"a": ("1", "scalar")})
        report = await only_paused(running)
        assert "does not know the API key (401)" in report.sentence
        assert "service.api_key" in report.sentence
        assert running.mirror.pending(1) == {"a"}
        assert "not-the-key" not in str((report, running.client, running.events, running.mirror.attempts))
    assert len(running.events_of(DeliveryPaused)) == 1


async def test_a_paused_lane_resumes_when_access_is_granted(server: DocumentServer) -> None:
    to = address(server.workspace())
    limits = DeliveryLimits(denied_seconds=0.02)
    server.fail(*[Refuse(status=403)] * 5)
    async with rig(url=server.url, limits=limits) as running:
        running.desire(to, {"a": ("1", "scalar")})
        await with_status(running, "paused")
        await with_status(running, "idle")
    assert server.values("Mass budget") == {"a": ("1", "scalar")}
    assert len(running.events_of(DeliveryPaused)) == 1
    assert len(running.events_of(DeliveryResumed)) == 1


@pytest.mark.parametrize("workspace", [UNKNOWN, "No such bench"])
async def test_an_unknown_workspace_is_named(server: DocumentServer, workspace: str) -> None:
    async with rig(url=server.url) as running:
        running.desire(address(workspace), {"a": ("1", "scalar")})
        report = await only_paused(running)
    assert workspace in report.sentence or "(403)" in report.sentence
    assert server.writes() == []


async def test_a_workspace_can_be_named_by_its_label(server: DocumentServer) -> None:
    server.workspace("Other")
    server.workspace("Bench")
    async with rig(url=server.url) as running:
        running.desire(address("Bench"), {"a": ("1", "scalar")})
        assert await running.drained() == []
    assert server.values("Mass budget") == {"a": ("1", "scalar")}


async def test_a_label_of_two_workspaces_pauses_the_lane_and_names_both(server: DocumentServer) -> None:
    ids = [server.workspace("Bench"), server.workspace("Bench")]
    async with rig(url=server.url) as running:
        running.desire(address("Bench"), {"a": ("1", "scalar")})
        report = await only_paused(running)
    assert all(one in report.sentence for one in ids)


async def test_a_label_of_two_sinks_pauses_the_lane_and_names_both_visible_ids(server: DocumentServer) -> None:
    workspace = server.workspace()
    for _ in range(2):
        server.store.create_sink(workspace, {"label": "Mass budget"})
    async with rig(url=server.url) as running:
        running.desire(address(workspace), {"a": ("1", "scalar")})
        report = await only_paused(running)
    assert "SNK-1, SNK-2" in report.sentence
    assert server.writes() == []


async def test_a_sink_is_found_by_its_visible_id_and_by_its_id(server: DocumentServer) -> None:
    workspace = server.workspace()
    sink = server.store.create_sink(workspace, {"label": "Mass budget"})
    async with rig(url=server.url) as running:
        running.desire(SinkAddress(workspace=workspace, by="visible_id", name="snk-1"), {"a": ("1", "scalar")})
        running.desire(SinkAddress(workspace=workspace, by="id", name=str(sink["id"]).upper()), {"b": ("1", "scalar")})
        assert await running.drained() == []
    assert set(server.values("Mass budget")) == {"a", "b"}


async def test_a_sink_named_by_id_is_never_created(server: DocumentServer) -> None:
    workspace = server.workspace()
    async with rig(url=server.url) as running:
        running.desire(SinkAddress(workspace=workspace, by="visible_id", name="SNK-9"), {"a": ("1", "scalar")})
        report = await only_paused(running)
    assert "has no sink 'SNK-9'" in report.sentence
    assert server.writes() == []


async def test_a_deleted_sink_that_was_named_by_id_pauses_the_lane_and_keeps_everything_pending(
    server: DocumentServer,
) -> None:
    workspace = server.workspace()
    sink = str(server.store.create_sink(workspace, {"label": "Mass budget"})["id"])
    to = SinkAddress(workspace=workspace, by="id", name=sink)
    async with rig(url=server.url) as running:
        running.desire(to, {"a": ("1", "scalar"), "b": ("1", "scalar")})
        await running.drained()
        server.store.delete_sink(workspace, sink)
        running.desire(to, {"a": ("2", "scalar")})
        await only_paused(running)
        assert running.mirror.pending(1) == {"a", "b"}
    assert len(running.events_of(SinkLost)) == 1


async def test_retry_after_in_seconds_is_respected(server: DocumentServer) -> None:
    to = address(server.workspace())
    server.fail(Refuse(status=429, headers={"Retry-After": "120"}))
    async with rig(url=server.url) as running:
        before = time.time()
        running.desire(to, {"a": ("1", "scalar")})
        report = await with_status(running, "backing off")
        assert report.until is not None
        assert before + 120 <= report.until <= time.time() + 121
        assert "limits the request rate (429)" in report.sentence
    assert len(server.requests) == 1


async def test_retry_after_as_a_date_is_respected_and_limited(server: DocumentServer) -> None:
    to = address(server.workspace())
    server.fail(Refuse(status=503, headers={"Retry-After": "Fri, 31 Dec 2100 23:59:59 GMT"}))
    async with rig(url=server.url) as running:
        running.desire(to, {"a": ("1", "scalar")})
        report = await with_status(running, "backing off")
        assert report.until is not None
        assert 290 < report.until - time.time() <= 301


async def test_an_unreachable_service_is_reported_with_its_time_and_found_when_it_returns(
    server: DocumentServer,
) -> None:
    to = address(server.workspace())
    port, store = server.port, server.store
    gone = DocumentServer(store)  # occupies a port without a server
    async with rig(url=gone.url, timeouts=Timeouts(connect_seconds=1, read_seconds=0.05)) as running:
        running.desire(to, {"a": ("1", "scalar")})
        first = await with_status(running, "backing off")
        assert first.since <= time.time()
        running.desire(to, {"a": ("2", "scalar")})
        again = await with_status(running, "backing off")
        assert again.since == first.since
        with gone:
            assert await running.drained() == []
        assert running.dispatcher.report()[0].sentence == ""
    assert port != gone.port
    assert store.values(store.by_label("Mass budget")[0]) == {"a": ("2", "scalar")}
    assert running.events_of(DeliveryDelayed)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Garbage(), "not the content of the service"),
        (Garbage(status=502), "the service does not respond (502)"),
        (Truncate(), "The connection broke"),
        (
            Refuse(status=302, headers={"Location": "http://u:pw@other.test/x?key=1"}),
            "redirects (302) to http://other.test/x",
        ),
        (Refuse(status=405), "refuses the request itself (405)"),
    ],
)
async def test_a_response_that_is_not_from_the_service_is_no_success(
    server: DocumentServer, fault: Garbage, words: str
) -> None:
    to = address(server.workspace())
    limits = DeliveryLimits(retry=FAST_LIMITS.retry, pause=FAST_LIMITS.retry)
    async with rig(url=server.url, limits=limits) as running:
        running.desire(to, {"a": ("1", "scalar")})
        await running.drained()
        server.fail(fault, when=lambda request: request.writes)
        running.desire(to, {"a": ("2", "scalar")})
        await with_status(running, "idle")
        async with asyncio.timeout(10):
            await running.dispatcher.changes.wait_until(lambda: not running.mirror.pending(1))
    assert server.values("Mass budget") == {"a": ("2", "scalar")}
    sentences = [attempt.sentence for _, attempt in running.mirror.attempts]
    assert any(words in sentence for sentence in sentences)
    assert not any("pw" in sentence or "key=1" in sentence for sentence in sentences)


async def test_many_updates_of_a_key_during_an_outage_become_one_write(server: DocumentServer) -> None:
    to = address(server.workspace())
    async with rig(url=server.url) as running:
        running.desire(to, {f"K-{n}": ("0", "scalar") for n in range(10)})
        await running.drained()
        server.forget_requests()
        server.fault_of = lambda _: Refuse(status=503)
        for turn in range(1, 101):
            running.desire(to, {f"K-{n}": (str(turn), "scalar") for n in range(10)})
        await with_status(running, "backing off")
        refused = len(server.writes())
        server.fault_of = None
        assert await running.drained() == []
        # Requests that failed in the outage may still have been in flight when it ended.
        assert len(server.writes()) - refused <= 10 + 16
    assert server.values("Mass budget") == {f"K-{n}": ("100", "scalar") for n in range(10)}


async def test_cancellation_waits_for_requests_in_flight_and_acknowledges_them(server: DocumentServer) -> None:
    to = address(server.workspace())
    eight = DeliveryLimits(retry=FAST_LIMITS.retry, pause=FAST_LIMITS.pause, in_flight_at_first=8, in_flight_at_most=8)
    async with rig(url=server.url, limits=eight) as running:
        running.desire(to, {"start": ("1", "scalar")})
        await running.drained()
        server.fail(*[Delay(seconds=600)] * 8, when=lambda request: request.writes)
        server.forget_requests()
        running.desire(to, {f"K-{n:02}": ("1", "scalar") for n in range(30)})
        async with asyncio.timeout(60):
            while len(server.writes()) < 8:
                await asyncio.to_thread(server.arrived.wait, 1)
                server.arrived.clear()
        stopping = asyncio.create_task(running.stop())
        for _ in range(20):
            await asyncio.sleep(0)  # the cancellation passes through the tasks of the dispatcher
        server.end_delays()
        await stopping
        assert len(server.writes()) == 8
        assert len(running.mirror.pending(1)) == 22
    assert len(server.values("Mass budget")) == 9


async def test_cancellation_abandons_requests_after_the_grace_period_and_keeps_them_pending(
    server: DocumentServer,
) -> None:
    to = address(server.workspace())
    limits = DeliveryLimits(retry=FAST_LIMITS.retry, pause=FAST_LIMITS.pause, grace_seconds=0.1)
    async with rig(url=server.url, limits=limits) as running:
        running.desire(to, {"start": ("1", "scalar")})
        await running.drained()
        server.fail(Delay(seconds=600), when=lambda request: request.writes)
        server.arrived.clear()
        running.desire(to, {"slow": ("1", "scalar")})
        await asyncio.to_thread(server.arrived.wait, 60)
        await running.stop()
        assert running.mirror.pending(1) == {"slow"}
        async with rig(url=server.url, mirror=running.mirror) as again:
            assert await again.drained() == []
    assert server.values("Mass budget")["slow"] == ("1", "scalar")


async def test_a_broken_mirror_ends_the_dispatcher_with_its_exception(server: DocumentServer) -> None:
    to = address(server.workspace())
    async with rig(url=server.url) as running:

        async def broken(*_: object, **__: object) -> None:
            raise OSError("disk gone")

        running.mirror.acknowledge = broken  # type: ignore[method-assign]
        running.desire(to, {"a": ("1", "scalar")})
        assert running.task is not None
        await asyncio.wait({running.task}, timeout=60)
        assert isinstance(running.task.exception(), BaseExceptionGroup)
