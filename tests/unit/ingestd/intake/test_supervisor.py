from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from ingestd.core.address import SinkAddress
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.core.record import Cursor, Partition, Settlement
from ingestd.intake import Reader, Supervisor
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.sdk import SourceBroken, SourceUnavailable
from ingestd.telemetry import Event
from ingestd.telemetry.catalogue.intake import PartitionRead, PartitionSettled, SourceAway, SourceBack, SourceStopped
from tests.support.scripted_source import Script, ScriptedConnector

DEADLINE = 10.0


class WatchedConnector(ScriptedConnector):
    """A scripted source that rings when the test says so."""

    rescan_seconds = 3600.0

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.wake: Callable[[], None] = lambda: None
        self.watching = threading.Event()
        self.failure: Exception | None = None
        self.ready_in: float | None = None

    @contextmanager
    def watch(self, wake: Callable[[], None]) -> Iterator[None]:
        self.wake = wake
        self.watching.set()
        yield

    def partitions(self) -> list[Partition]:
        if self.failure is not None:
            raise self.failure
        return list(super().partitions())

    def waiting(self) -> float | None:
        return self.ready_in

    def settled(self, partition: Partition, cursor: Cursor, settlement: Settlement) -> None:
        super().settled(partition, cursor, settlement)


class Heard:
    """Events as they come, to be waited for."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.events: asyncio.Queue[Event] = asyncio.Queue()

    def emit(self, event: Event) -> None:
        self.loop.call_soon_threadsafe(self.events.put_nowait, event)

    async def next(self, kind: type[Event]) -> Event:
        async with asyncio.timeout(DEADLINE):
            while True:
                event = await self.events.get()
                if isinstance(event, kind):
                    return event


@asynccontextmanager
async def supervised(
    path: Path, connector: WatchedConnector, *, scheduled: bool = False
) -> AsyncIterator[tuple[Supervisor, Heard, SqliteMirror]]:
    mirror = SqliteMirror.open(path / "state.db")
    heard = Heard()
    reader = Reader(
        pipeline="p", connector=connector, mapping=Mapping([EntrySpec(key="{k}", value="{v}")]),
        sink=SinkAddress(workspace="w", by="label", name="s"), mirror=mirror.intake, emit=heard.emit,
    )  # fmt: skip
    supervisor = Supervisor([reader], emit=heard.emit, random=lambda: 0.01, scheduled={"p"} if scheduled else set())
    running = asyncio.create_task(supervisor.run())
    try:
        yield supervisor, heard, mirror
    finally:
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        mirror.close()


async def test_a_watched_source_is_read_at_start_and_when_it_rings(tmp_path: Path) -> None:
    script = Script()
    script.write("a", [{"k": "x", "v": "1"}])
    connector = WatchedConnector(script)
    async with supervised(tmp_path, connector) as (_, heard, mirror):
        await heard.next(PartitionRead)
        script.write("b", [{"k": "y", "v": "2"}])
        connector.wake()
        read = await heard.next(PartitionRead)
        assert isinstance(read, PartitionRead)
        assert read.partition == "b"
        assert mirror.status.pending() == 2


async def test_a_scheduled_source_is_read_only_when_it_is_woken(tmp_path: Path) -> None:
    script = Script()
    script.write("a", [{"k": "x", "v": "1"}])
    connector = WatchedConnector(script)
    async with supervised(tmp_path, connector, scheduled=True) as (supervisor, heard, mirror):
        assert not connector.watching.is_set()
        assert mirror.status.pending() == 0
        supervisor.wake("p")
        await heard.next(PartitionRead)
        assert mirror.status.pending() == 1


async def test_a_source_that_is_away_is_tried_again_and_its_return_is_told(tmp_path: Path) -> None:
    script = Script()
    script.write("a", [{"k": "x", "v": "1"}])
    connector = WatchedConnector(script)
    connector.failure = SourceUnavailable("The share is not mounted.")
    async with supervised(tmp_path, connector) as (_, heard, _mirror):
        away = await heard.next(SourceAway)
        assert isinstance(away, SourceAway)
        assert away.sentence == "The share is not mounted."
        connector.failure = None
        await heard.next(SourceBack)


async def test_a_source_that_is_broken_is_told_once_and_read_when_it_is_mended(tmp_path: Path) -> None:
    script = Script()
    script.write("a", [{"k": "x", "v": "1"}])
    connector = WatchedConnector(script)
    connector.failure = SourceBroken("The folder may not be read.")
    async with supervised(tmp_path, connector) as (_, heard, _mirror):
        await heard.next(SourceStopped)
        connector.wake()
        connector.failure = None
        connector.wake()
        await heard.next(PartitionRead)
        assert not [event for event in heard.events._queue if isinstance(event, SourceStopped)]  # type: ignore[attr-defined]


async def test_what_is_about_to_be_ready_is_looked_at_again_by_itself(tmp_path: Path) -> None:
    script = Script()
    connector = WatchedConnector(script)
    connector.ready_in = 0.01
    async with supervised(tmp_path, connector) as (_, heard, _mirror):
        assert await asyncio.to_thread(connector.watching.wait, DEADLINE)
        script.write("a", [{"k": "x", "v": "1"}])
        await heard.next(PartitionRead)


async def test_reading_once_waits_for_what_is_about_to_be_ready(tmp_path: Path) -> None:
    script = Script()
    connector = WatchedConnector(script)
    connector.ready_in = 0.01
    looks = iter(range(3))
    original = connector.partitions

    def partitions() -> list[Partition]:
        if next(looks) == 2:
            script.write("a", [{"k": "x", "v": "1"}])
            connector.ready_in = None
        return original()

    connector.partitions = partitions  # type: ignore[method-assign]
    mirror = SqliteMirror.open(tmp_path / "state.db")
    reader = Reader(
        pipeline="p", connector=connector, mapping=Mapping([EntrySpec(key="{k}", value="{v}")]),
        sink=SinkAddress(workspace="w", by="label", name="s"), mirror=mirror.intake, emit=lambda event: None,
    )  # fmt: skip
    supervisor = Supervisor([reader], emit=lambda event: None, random=lambda: 0.0)
    reports = await supervisor.read_once(["p"])
    await supervisor.aclose()
    assert [len(report.read) for report in reports] == [0, 0, 1]
    mirror.close()


async def test_settled_partitions_are_acknowledged_when_delivery_says_so(tmp_path: Path) -> None:
    script = Script()
    script.write("a", [{"k": "x", "v": "1"}])
    connector = WatchedConnector(script)
    async with supervised(tmp_path, connector) as (supervisor, heard, mirror):
        await heard.next(PartitionRead)
        sink = (await mirror.delivery.lanes())[0].id
        claim = await mirror.delivery.claim(sink, max_items=10, max_bytes=1000)
        assert claim is not None
        await mirror.delivery.settle(claim)
        assert script.settled == []
        supervisor.settled()
        await heard.next(PartitionSettled)
        assert script.settled == [("a", 1)]
