"""Texts for an operator when a limit is reached: a timeout, or a limit of the service.

As `test_operator_texts`, for situations without a response of a service.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from ingestd.client.transport import Timeouts
from ingestd.core.address import SinkAddress
from ingestd.daemon.status_text import sink_line
from ingestd.delivery.delivery_limits import DeliveryLimits
from ingestd.mirror.reports import SinkStatus
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.telemetry.catalogue.delivery import BatchNarrowed, DeliveryDelayed, EntriesRejected
from ingestd.telemetry.event import Event
from tests.integration.delivery.test_operator_texts import MASS_BUDGET, PATIENT
from tests.support.bulk_service import BulkService
from tests.support.delivery_rig import FAST_LIMITS, Rig, rig, wake_callback
from tests.support.desired_entries import desire_all
from tests.support.document_server import Delay, DocumentServer, Refuse
from tests.support.golden_texts import check_delivery_text, logged, masked
from tests.support.memory_mirror import Desired

THREE: dict[str, Desired] = {f"P-{n}": ("1.50", "scalar") for n in range(3)}
PATIENTLY = Timeouts(connect_seconds=60, write_seconds=60, read_seconds=60, pool_seconds=60)
SHORT = 0.1


@asynccontextmanager
async def delivering(
    folder: Path,
    *,
    url: str = "http://service.test",
    transport: httpx.AsyncBaseTransport | None = None,
    timeouts: Timeouts = PATIENTLY,
    limits: DeliveryLimits = PATIENT,
) -> AsyncIterator[tuple[Rig, SqliteMirror]]:
    mirror = SqliteMirror.open(folder / "ingestd.db")
    try:
        async with rig(
            url=url, transport=transport, deliverable=mirror.delivery, limits=limits, timeouts=timeouts
        ) as running:
            mirror.on_pending = wake_callback(running)
            yield running, mirror
    finally:
        mirror.close()


async def blocked_sink(mirror: SqliteMirror, sentence: str, *, of: str = "") -> SinkStatus:
    """Return a blocked sink with this sentence; ``of``: a line of the log that names the sink."""
    async with asyncio.timeout(60):
        while True:
            for sink in await asyncio.to_thread(mirror.status.sinks):
                named = not of or f"sink={sink.address} " in of
                if named and sink.blocker is not None and sentence in sink.blocker.sentence:
                    return sink


def text_of(sink: SinkStatus, events: list[Event]) -> str:
    return masked("\n".join([sink_line(sink), *map(logged, events)])) + "\n"


@contextlib.contextmanager
def full() -> Iterator[str]:
    """Yield the address of a listener that accepts no connection: the system's queue is full."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        with contextlib.suppress(TimeoutError):
            while True:
                stack.enter_context(socket.create_connection(listener.getsockname(), timeout=0.2))
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


async def test_a_connection_that_is_never_accepted_is_reported(tmp_path: Path) -> None:
    with full() as url:
        timeouts = Timeouts(connect_seconds=SHORT, read_seconds=60)
        async with delivering(tmp_path, url=url, timeouts=timeouts) as (running, mirror):
            await asyncio.to_thread(desire_all, mirror, MASS_BUDGET, THREE)
            sink = await blocked_sink(mirror, "")
            check_delivery_text("takes-no-connection", text_of(sink, running.events_of(DeliveryDelayed)))


async def test_a_service_that_does_not_read_the_request_is_reported(tmp_path: Path) -> None:
    with DocumentServer() as server:
        server.workspace("Bench")
        server.stop_reading_writes()
        timeouts = Timeouts(connect_seconds=60, write_seconds=SHORT, read_seconds=60)
        async with delivering(tmp_path, url=server.url, timeouts=timeouts) as (running, mirror):
            # More than the buffers of the system accept.
            large: dict[str, Desired] = dict.fromkeys(THREE, ("x" * 1300000, "text"))
            await asyncio.to_thread(desire_all, mirror, MASS_BUDGET, large)
            sink = await blocked_sink(mirror, "")
            check_delivery_text("does-not-read", text_of(sink, running.events_of(DeliveryDelayed)))


async def test_an_exhausted_connection_pool_is_reported(tmp_path: Path) -> None:
    """A hundred connections are permitted, and more sinks are created concurrently."""
    with DocumentServer() as server:
        server.workspace("Bench")
        server.fault_of = lambda request: Delay(seconds=600) if request.writes else None
        timeouts = Timeouts(connect_seconds=60, read_seconds=60, pool_seconds=SHORT)
        async with delivering(tmp_path, url=server.url, timeouts=timeouts) as (running, mirror):
            mirror.on_pending = lambda _: None
            for n in range(104):
                sink = SinkAddress(workspace="Bench", by="label", name=f"S{n}")
                await asyncio.to_thread(desire_all, mirror, sink, {f"{n}": ("1", "scalar")})
            running.dispatcher.wake()
            await blocked_sink(mirror, "All connections")
            first = logged(running.events_of(DeliveryDelayed)[0])
            status = await blocked_sink(mirror, "All connections", of=first)
            text = f"{sink_line(status)}\n{first}\n".replace(str(status.address), "SINK")
            check_delivery_text("connections-busy", masked(text))


async def test_a_rejected_entry_is_reported_and_the_others_arrive(tmp_path: Path) -> None:
    with DocumentServer() as server:
        server.workspace("Bench")
        bad = Refuse(status=400, body=b'{"error":"The value is out of range."}')
        server.fault_of = lambda request: bad if request.writes and b'"P-1"' in request.body else None
        async with delivering(tmp_path, url=server.url, limits=FAST_LIMITS) as (running, mirror):
            await asyncio.to_thread(desire_all, mirror, MASS_BUDGET, THREE)
            assert await running.drained() == []
            (sink,) = await asyncio.to_thread(mirror.status.sinks)
            text = text_of(sink, running.events_of(EntriesRejected))
        assert set(server.values("Mass budget")) == {"P-0", "P-2"}
    assert "0 pending, 1 rejected" in text
    assert "The value is out of range." in text
    check_delivery_text("entry-refused", text)


async def test_a_lower_size_limit_is_learned_and_nothing_stays_pending(tmp_path: Path) -> None:
    """An intermediary accepts less than the service announces, as a proxy with its own limit does."""
    service = BulkService()
    service.store.create_workspace({"label": "Bench"})
    async with delivering(tmp_path, transport=service, limits=FAST_LIMITS) as (running, mirror):
        await asyncio.to_thread(desire_all, mirror, MASS_BUDGET, THREE)
        assert await running.drained() == []
        service.real_max_bytes = 2_000
        many: dict[str, Desired] = {f"K-{n:03}": ("1.50", "scalar") for n in range(100)}
        await asyncio.to_thread(desire_all, mirror, MASS_BUDGET, many)
        assert await running.drained() == []
        (sink,) = await asyncio.to_thread(mirror.status.sinks)
        text = text_of(sink, running.events_of(BatchNarrowed))
    assert "0 pending, 0 rejected" in text
    check_delivery_text("request-too-large", text)
