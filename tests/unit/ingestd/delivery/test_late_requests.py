"""A request that the daemon gave up on arrives after a newer one: the sink keeps the newer value."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx
import pytest
from msgspec.structs import replace

from ingestd.client.service import ServiceClient
from ingestd.client.writer import RisingWriter
from ingestd.core.address import SinkAddress
from ingestd.telemetry.catalogue.delivery import DeliveryDelayed, DeliveryPaused, EntriesRejected
from ingestd.wire.writer import Writer
from tests.support.bulk_service import BulkService
from tests.support.delivery_rig import FAST_LIMITS, rig
from tests.support.memory_mirror import Desired

LOST: tuple[httpx.Response | Exception, ...] = (
    httpx.ReadTimeout("no response"),
    httpx.WriteTimeout("not sent in time"),
    httpx.RemoteProtocolError("closed"),
    httpx.ReadError("reset"),
    httpx.Response(502, html="<html>Bad gateway</html>"),
    httpx.Response(504),
    httpx.Response(200, html="<html>Sign in</html>"),
    httpx.Response(404, html="<html>No route</html>"),
)
"""What a client gets while a proxy or a frozen host still has its request."""


@dataclass(slots=True, kw_only=True)
class HoldingProxy(httpx.AsyncBaseTransport):
    """Holds the next write for which ``wanted`` holds, and gives ``lost`` to its sender. `release` lets it arrive.

    ``at_once``: it arrives after the next write of k took effect and before its response, so before the sender knows of that.
    """

    service: BulkService
    wanted: Callable[[httpx.Request], bool] = lambda _: False
    lost: httpx.Response | Exception = field(default_factory=lambda: LOST[0])
    at_once: bool = False
    held: httpx.Request | None = None
    holds: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        if request.method != "GET" and self.held is None and self.wanted(request):
            self.held, self.wanted = request, lambda _: False
            self.holds.set()
            if isinstance(self.lost, Exception):
                raise self.lost
            return self.lost
        response = await self.service.handle_async_request(request)
        if request.method != "GET" and self.at_once and self.held is not None and writes_k(request):
            await self.release()
        return response

    async def release(self) -> int:
        held, self.held = self.held, None
        assert held is not None
        return (await self.service.handle_async_request(held)).status_code


def bench(service: BulkService, label: str = "Test bench") -> SinkAddress:
    found = list(service.store.workspaces) or [service.store.create_workspace({"label": "Bench"})["id"]]
    return SinkAddress(workspace=str(found[0]), by="label", name=label)


def held(service: BulkService, label: str = "Test bench") -> dict[str, str | None]:
    (sink,) = service.store.by_label(label)
    return {key: value for key, (value, _) in service.store.values(sink).items()}


def one(value: str | None, key: str = "k") -> dict[str, Desired | None]:
    return {key: None if value is None else (value, "scalar")}


def writes_k(request: httpx.Request) -> bool:
    return b'"k"' in request.content or request.url.path.endswith("/k")


CHANGES = (("1", "2", "3"), ("1", "2", None), ("1", None, "3"), (None, "2", "3"), (None, "2", None))
"""The confirmed value, that of the late request, and the newest one; None: no entry."""


@pytest.mark.parametrize("bulk", [True, False], ids=["bulk", "single"])
@pytest.mark.parametrize(("before", "late", "newest"), CHANGES)
async def test_a_request_that_arrives_after_a_newer_one_is_refused(
    *, before: str | None, late: str | None, newest: str | None, bulk: bool
) -> None:
    service = BulkService(announce=bulk)
    proxy = HoldingProxy(service=service)
    async with rig(transport=proxy) as running:
        to = bench(service)
        running.desire(to, one(before) | one("0", "other"))
        await running.drained()
        proxy.wanted = writes_k
        running.desire(to, one(late))
        await running.drained()
        assert proxy.held is not None, "the late request was sent"
        running.desire(to, one(newest))
        assert await running.drained() == []
        assert await proxy.release() == 409
    assert held(service).get("k") == newest


@pytest.mark.parametrize("lost", LOST, ids=str)
async def test_every_outcome_that_is_unknown_makes_the_next_request_newer(lost: httpx.Response | Exception) -> None:
    service = BulkService()
    proxy = HoldingProxy(service=service, lost=lost)
    async with rig(transport=proxy) as running:
        running.desire(bench(service), one("1"))
        await running.drained()
        proxy.wanted = writes_k
        running.desire(bench(service), one("2"))
        await running.drained()
        assert await proxy.release() == 409


@pytest.mark.parametrize("lost", [httpx.ConnectError("refused"), httpx.Response(429), httpx.Response(401)], ids=str)
async def test_an_outcome_that_is_known_raises_nothing(lost: httpx.Response | Exception) -> None:
    writer = RisingWriter(Writer(name="tester", epoch=1, attempt=7))
    service = BulkService()
    proxy = HoldingProxy(service=service, lost=lost, wanted=writes_k)
    async with rig(transport=proxy, writer=writer) as running:
        running.desire(bench(service), one("1"))
        async with asyncio.timeout(10):
            while not (proxy.held and running.dispatcher.report()[0].sentence):
                await running.dispatcher.changes.wait_past(running.dispatcher.changes.generation)
    assert writer.current.attempt == 7


@pytest.mark.parametrize("bulk", [True, False], ids=["bulk", "single"])
@pytest.mark.parametrize(("before", "late", "newest"), CHANGES)
async def test_from_a_service_without_a_fence_an_entry_is_read_back_before_it_is_acknowledged(
    *, before: str | None, late: str | None, newest: str | None, bulk: bool
) -> None:
    service = BulkService(announce=bulk, fence=False)
    proxy = HoldingProxy(service=service)
    async with rig(transport=proxy) as running:
        to = bench(service)
        running.desire(to, one(before) | one("0", "other"))
        await running.drained()
        proxy.wanted, proxy.at_once = writes_k, True
        lane = running.desire(to, one(late))
        async with asyncio.timeout(10):
            await proxy.holds.wait()
        running.desire(to, one(newest) | one("5", "more"))
        assert await running.drained() == []
        assert running.mirror.pending(lane) == set()
    assert held(service) == {"other": "0", "more": "5"} | ({} if newest is None else {"k": newest})


async def test_what_the_service_without_a_fence_shows_is_read_only_after_an_unknown_outcome() -> None:
    service = BulkService(announce=False, fence=False)
    proxy = HoldingProxy(service=service)
    async with rig(transport=proxy) as running:
        to = bench(service)
        for value in "12":
            running.desire(to, {f"K-{n}": (value, "scalar") for n in range(20)})
            await running.drained()
        reads = [request for request in service.requests if request.method == "GET"]
        assert [request.url.path.rpartition("/")[2] for request in reads] == ["list"]
        proxy.wanted = lambda request: b'"K-3"' in request.content
        running.desire(to, {f"K-{n}": ("3", "scalar") for n in range(20)})
        await running.drained()
        assert any(request.url.path.endswith("/K-3") for request in service.requests if request.method == "GET")
        service.requests.clear()
        running.desire(to, {f"K-{n}": ("4", "scalar") for n in range(20)})
        await running.drained()
        assert [request for request in service.requests if request.method == "GET"] == []


async def test_requests_of_other_lanes_are_sent_again_without_a_failure() -> None:
    service = BulkService()
    arrived, gate = asyncio.Event(), asyncio.Event()

    class Gate(httpx.AsyncBaseTransport):
        """Lets the writes of the second sink wait on their way, and loses one of the first."""

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            await request.aread()
            if b'"slow"' in request.content and request.headers["X-Writer"].endswith(";7"):
                arrived.set()
                await gate.wait()
            if b'"lost"' in request.content and request.headers["X-Writer"].endswith(";7"):
                raise httpx.ReadTimeout("no response")
            return await service.handle_async_request(request)

    writer = RisingWriter(Writer(name="tester", epoch=1, attempt=7))
    limits = replace(FAST_LIMITS, in_flight_at_first=4)
    async with rig(transport=Gate(), writer=writer, limits=limits) as running:
        first, second = bench(service, "First"), bench(service, "Second")
        for to in (first, second):
            running.desire(to, one("0"))
            await running.drained()
        slow = running.desire(second, one("1", "slow"))
        async with asyncio.timeout(10):
            await arrived.wait()
            delivered = running.acknowledgements.reached(1)
            running.desire(first, one("1", "lost"))
            await delivered.wait()
        assert "slow" in running.mirror.pending(slow)
        gate.set()
        assert await running.drained() == []
        shown = [
            event for event in running.events if isinstance(event, DeliveryDelayed | DeliveryPaused | EntriesRejected)
        ]
    assert [event.sink for event in shown] == [str(first)], "only the lane with the lost request has waited"
    assert held(service, "Second") == {"k": "0", "slow": "1"}


@pytest.mark.parametrize("rejected", [{}, one("1", "bad")], ids=["with its entries", "empty, for a rejected entry"])
async def test_a_late_creation_makes_no_second_sink(rejected: dict[str, Desired | None]) -> None:
    """The creation arrives after the daemon has looked for the sink, and before it creates it again."""
    service = BulkService(bad=lambda key: key == "bad")
    proxy = HoldingProxy(
        service=service,
        wanted=lambda request: b'"label"' in request.content and (not rejected or b'"entries"' not in request.content),
    )

    class AfterTheList(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            response = await proxy.handle_async_request(request)
            if request.url.path.endswith("/list") and proxy.held is not None:
                await proxy.release()
            return response

    async with rig(transport=AfterTheList()) as running:
        running.desire(bench(service), one("1") | rejected)
        async with asyncio.timeout(10):
            await proxy.holds.wait()
        running.desire(bench(service), one("2"))
        await running.drained()
    assert held(service) == {"k": "2"}


async def test_a_cancelled_request_makes_the_next_one_newer() -> None:
    arrived = asyncio.Event()

    async def never_respond(_: httpx.Request) -> httpx.Response:
        arrived.set()
        await asyncio.Event().wait()
        raise AssertionError

    writer = RisingWriter(Writer(name="tester", epoch=1, attempt=7))
    async with ServiceClient(
        url="http://service.test",
        api_key="key",
        client_id="tester",
        transport=httpx.MockTransport(never_respond),
        writer=writer,
    ) as client:
        sending = asyncio.create_task(client.delete_entry("workspace", "sink", key="k"))
        await arrived.wait()
        sending.cancel()
        await asyncio.wait([sending])
    assert writer.current.attempt == 8


class OtherProcess:
    """Writes to the same workspace under the same name."""

    def __init__(self, service: BulkService, writer: Writer) -> None:
        self.client = ServiceClient(
            url="http://service.test",
            api_key="key",
            client_id="other",
            transport=service,
            writer=RisingWriter(writer),
        )

    async def write(self, to: SinkAddress, sink: str, value: str) -> int | None:
        async with self.client as client:
            response = await client.patch_entry(to.workspace, sink, key="k", value=value, data_type=None)
        return response.status


async def test_the_first_write_of_an_older_state_says_so_and_is_repeated_newer_than_what_the_service_has() -> None:
    service = BulkService()
    behind: list[Writer] = []

    async def note(newest: Writer) -> None:
        behind.append(newest)

    to = bench(service)
    newest = Writer(name="tester", epoch=1, attempt=50)
    service.newest[to.workspace, "tester"] = newest
    writer = RisingWriter(Writer(name="tester", epoch=1, attempt=7), on_behind=note)
    async with rig(transport=service, writer=writer) as running:
        running.desire(to, one("1"))
        assert await running.drained() == []
        running.desire(to, one("2"))
        assert await running.drained() == []
        assert running.events_of(DeliveryDelayed) == []
    assert behind == [newest]
    assert writer.current == Writer(name="tester", epoch=1, attempt=51)
    assert held(service) == {"k": "2"}


@pytest.mark.parametrize(
    "other", [Writer(name="tester", epoch=1, attempt=99), Writer(name="tester", epoch=2, attempt=1)]
)
async def test_a_daemon_stops_if_another_process_writes_under_its_name_after_it(other: Writer) -> None:
    service = BulkService()
    to = bench(service)
    async with rig(transport=service) as running:
        running.desire(to, one("1"))
        await running.drained()
        (sink,) = service.store.by_label("Test bench")
        assert await OtherProcess(service, other).write(to, sink, "theirs") == 200
        running.desire(to, one("2"))
        (paused,) = await running.drained()
    assert "Another process writes with a copy of this state file" in paused.sentence
    assert held(service) == {"k": "theirs"}


async def test_a_newer_epoch_fences_a_daemon_that_has_not_written_to_the_workspace_yet() -> None:
    service = BulkService()
    to = bench(service)
    service.newest[to.workspace, "tester"] = Writer(name="tester", epoch=2, attempt=1)
    async with rig(transport=service) as running:
        running.desire(to, one("1"))
        (paused,) = await running.drained()
    assert "has taken over from this one" in paused.sentence
    assert service.store.sinks == {}
