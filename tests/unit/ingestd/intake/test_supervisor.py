from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from ingestd.core.address import SinkAddress
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.core.record import Cursor, Partition, Settlement
from ingestd.intake import Reader, SourceSupervisor, thread_pool
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.process.change_signal import ChangeSignal
from ingestd.sdk import SourceBroken, SourceUnavailable
from ingestd.telemetry import Event
from ingestd.telemetry.catalogue.daemon import PartFailed
from ingestd.telemetry.catalogue.intake import (
    PartitionRead,
    PartitionSettled,
    SettlingFailed,
    SourceAway,
    SourceBack,
    SourceFailed,
    SourceSlow,
    SourceStopped,
)
from tests.support.scripted_source import Script, ScriptedConnector
from tests.support.supervised_parts import FailedParts, supervise

DEADLINE = 10.0
SINK = SinkAddress(workspace="w", by="label", name="s")


def ignored(_: Event) -> None:
    """For tests that look at no event."""


class WatchedConnector(ScriptedConnector):
    """A scripted source that rings when the test says so."""

    rescan_seconds = 3600.0

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.faults: dict[str, Exception] = {}
        self.wake: Callable[[], None] = lambda: None
        self.watching = threading.Event()
        self.failure: Exception | None = None
        self.ready_in: float | None = None

    @contextmanager
    def watch(self, wake: Callable[[], None]) -> Iterator[None]:
        self.fail("entering the watch")
        self.wake = wake
        self.watching.set()
        yield
        self.watching.clear()
        self.fail("leaving the watch")

    def fail(self, where: str) -> None:
        """Fail once at a place that the test names."""
        if (fault := self.faults.pop(where, None)) is not None:
            raise fault

    def close(self) -> None:
        self.fail("closing")

    def partitions(self) -> list[Partition]:
        self.fail("listing")
        if self.failure is not None:
            raise self.failure
        return list(super().partitions())

    def waiting(self) -> float | None:
        self.fail("waiting")
        return self.ready_in

    def settled(self, partition: Partition, cursor: Cursor, settlement: Settlement) -> None:
        self.fail("settling")
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
    path: Path, connector: WatchedConnector, *, scheduled: bool = False, parts: FailedParts | None = None
) -> AsyncIterator[tuple[SourceSupervisor, Heard, SqliteMirror]]:
    mirror = SqliteMirror.open(path / "state.db")
    heard = Heard()
    reader = Reader(
        pipeline="p", connector=connector, mapping=Mapping([EntrySpec(key="{k}", value="{v}")]),
        sink=SINK, mirror=mirror.intake, emit=heard.emit,
    )  # fmt: skip
    supervisor = SourceSupervisor(
        [reader], emit=heard.emit, random=lambda: 0.01, keep_running=supervise(heard.emit, parts),
        scheduled={"p"} if scheduled else set(),
    )  # fmt: skip
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
        sink=SINK, mirror=mirror.intake, emit=lambda event: None,
    )  # fmt: skip
    supervisor = SourceSupervisor([reader], emit=ignored, random=lambda: 0.0, keep_running=supervise(ignored))
    reports = await supervisor.read_once(["p"])
    await supervisor.aclose()
    assert [len(report.read) for report in reports] == [0, 0, 1]
    mirror.close()


async def test_settled_partitions_are_acknowledged_when_delivery_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script()
    script.write("a", [{"k": "x", "v": "1"}])
    connector = WatchedConnector(script)
    looks: asyncio.Queue[int] = asyncio.Queue()
    loop, look = asyncio.get_running_loop(), Reader.acknowledge_settled

    def acknowledge(reader: Reader) -> int:
        done = look(reader)
        loop.call_soon_threadsafe(looks.put_nowait, done)
        return done

    monkeypatch.setattr(Reader, "acknowledge_settled", acknowledge)
    async with supervised(tmp_path, connector) as (supervisor, heard, mirror):
        async with asyncio.timeout(DEADLINE):
            assert await looks.get() == 0  # after the first pass
        sink = (await mirror.delivery.lanes())[0].id
        claim = await mirror.delivery.claim(sink, max_items=10, max_bytes=1000)
        assert claim is not None
        await mirror.delivery.settle(claim)
        assert script.acknowledged == []
        supervisor.settled(SINK)
        await heard.next(PartitionSettled)
        assert script.acknowledged == [("a", 1)]


@pytest.mark.parametrize("where", ["entering the watch", "listing", "waiting"])
async def test_an_unforeseen_failure_ends_one_part_which_is_logged_and_starts_again(tmp_path: Path, where: str) -> None:
    script = Script()
    script.write("a", [{"k": "x", "v": "1"}])
    connector = WatchedConnector(script)
    connector.faults[where] = RuntimeError("Symlink loop")
    parts = FailedParts()
    async with supervised(tmp_path, connector, parts=parts) as (_, heard, mirror):
        failed = await heard.next(PartFailed)
        assert isinstance(failed, PartFailed)
        assert (failed.part, failed.sentence) == ("intake p", "RuntimeError: Symlink loop")
        assert "self.fail(" in failed.traceback
        assert parts.failed["intake p"].sentence == "RuntimeError: Symlink loop"
        script.write("b", [{"k": "y", "v": "2"}])
        while mirror.status.pending() != 2:
            await heard.next(PartitionRead)
        assert connector.watching.is_set()


async def test_a_scheduled_run_that_fails_is_made_up_for(tmp_path: Path) -> None:
    script = Script()
    script.write("a", [{"k": "x", "v": "1"}])
    connector = WatchedConnector(script)
    connector.faults["listing"] = ValueError("no such table")
    async with supervised(tmp_path, connector, scheduled=True) as (supervisor, heard, mirror):
        supervisor.wake("p")
        await heard.next(PartFailed)
        await heard.next(PartitionRead)
        assert mirror.status.pending() == 1


async def test_a_failure_at_the_end_is_logged_and_does_not_stop_the_end(tmp_path: Path) -> None:
    connector = WatchedConnector(Script())
    connector.faults["leaving the watch"] = RuntimeError("no watch")
    connector.faults["closing"] = RuntimeError("no handle")
    async with supervised(tmp_path, connector) as (_, heard, _mirror):
        assert await asyncio.to_thread(connector.watching.wait, DEADLINE)
    failed = [await heard.next(SourceFailed), await heard.next(SourceFailed)]
    sentences = [event.sentence for event in failed if isinstance(event, SourceFailed)]
    assert "failed while ending the watch: RuntimeError: no watch." in sentences[0]
    assert "failed while closing: RuntimeError: no handle." in sentences[1]


async def test_a_source_that_fails_while_it_acknowledges_is_asked_again(tmp_path: Path) -> None:
    script = Script()
    script.write("a", [{"k": "x", "v": "1"}])
    connector = WatchedConnector(script)
    connector.faults["settling"] = RuntimeError("no archive")
    async with supervised(tmp_path, connector) as (supervisor, heard, mirror):
        await heard.next(PartitionRead)
        sink = (await mirror.delivery.lanes())[0].id
        claim = await mirror.delivery.claim(sink, max_items=10, max_bytes=1000)
        assert claim is not None
        await mirror.delivery.settle(claim)
        supervisor.settled(SINK)
        await heard.next(SettlingFailed)
        supervisor.settled(SINK)
        await heard.next(PartitionSettled)


async def test_reading_once_reports_a_source_that_fails_as_broken_and_reads_the_others(tmp_path: Path) -> None:
    good, bad = Script(), Script()
    good.write("a", [{"k": "x", "v": "1"}])
    failing = WatchedConnector(bad)
    failing.faults["listing"] = RuntimeError("Symlink loop")
    mirror = SqliteMirror.open(tmp_path / "state.db")
    events: list[Event] = []
    readers = [
        reader_of(name, connector, mirror, events.append)
        for name, connector in (("bad", failing), ("good", WatchedConnector(good)))
    ]
    supervisor = SourceSupervisor(
        readers, emit=events.append, random=lambda: 0.0, keep_running=supervise(events.append)
    )
    first, second = await supervisor.read_once()
    await supervisor.aclose()
    assert first.broken.startswith("The source failed while reading: RuntimeError: Symlink loop.")
    assert len(second.read) == 1
    assert [event.pipeline for event in events if isinstance(event, SourceFailed)] == ["bad"]
    mirror.close()


def reader_of(
    name: str, connector: WatchedConnector, mirror: SqliteMirror, emit: Callable[[Event], None], sink: str = "s"
) -> Reader:
    return Reader(
        pipeline=name, connector=connector, mapping=Mapping([EntrySpec(key=f"{name}.{{k}}", value="{v}")]),
        sink=SinkAddress(workspace="w", by="label", name=sink), mirror=mirror.intake, emit=emit,
    )  # fmt: skip


async def test_what_is_settled_in_a_sink_concerns_the_pipelines_of_that_sink_only(tmp_path: Path) -> None:
    mirror = SqliteMirror.open(tmp_path / "state.db")
    connectors = {name: WatchedConnector(Script()) for name in ("a", "b", "c")}
    looks: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    readers = [
        reader_of(name, connector, mirror, ignored, sink="one" if name != "c" else "two")
        for name, connector in connectors.items()
    ]
    for reader in readers:
        look = reader.acknowledge_settled

        def acknowledge(name: str = reader.pipeline, look: Callable[[], int] = look) -> int:
            loop.call_soon_threadsafe(looks.put_nowait, name)
            return look()

        reader.acknowledge_settled = acknowledge  # type: ignore[method-assign]
    supervisor = SourceSupervisor(readers, emit=ignored, random=lambda: 0.0, keep_running=supervise(ignored))
    running = asyncio.create_task(supervisor.run())
    async with asyncio.timeout(DEADLINE):
        assert {await looks.get() for _ in range(3)} == {"a", "b", "c"}
        supervisor.settled(SinkAddress(workspace="w", by="label", name="one"))
        assert {await looks.get() for _ in range(2)} == {"a", "b"}
        supervisor.settled(SinkAddress(workspace="w", by="label", name="of an earlier configuration"))
        assert {await looks.get() for _ in range(3)} == {"a", "b", "c"}
    running.cancel()
    await asyncio.wait([running])
    mirror.close()


async def test_sources_that_hang_are_named_and_do_not_keep_the_others_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_pool, "SLOW_SECONDS", 0.05)
    free = threading.Event()

    class Hanging(WatchedConnector):
        def partitions(self) -> list[Partition]:
            free.wait(6 * DEADLINE)
            return []

    mirror = SqliteMirror.open(tmp_path / "state.db")
    heard = Heard()
    good = Script()
    good.write("a", [{"k": "x", "v": "1"}])
    hanging = [f"h{number}" for number in range(2 * thread_pool.THREADS)]
    readers = [
        *(reader_of(name, Hanging(Script()), mirror, heard.emit) for name in hanging),
        reader_of("good", WatchedConnector(good), mirror, heard.emit),
    ]
    supervisor = SourceSupervisor(readers, emit=heard.emit, random=lambda: 0.0, keep_running=supervise(heard.emit))
    running = asyncio.create_task(supervisor.run())
    slow: list[str] = []
    while len(slow) < len(hanging):
        event = await heard.next(SourceSlow)
        assert isinstance(event, SourceSlow)
        assert "has not returned for" in event.sentence
        slow.append(event.pipeline)
    assert sorted(slow) == sorted(hanging)
    while mirror.status.pending() != 1:
        await heard.next(PartitionRead)
    free.set()
    running.cancel()
    await asyncio.wait([running])
    mirror.close()


async def test_rescans_of_idle_sources_are_spread_and_share_the_seconds_at_which_they_are_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    due: asyncio.Queue[float] = asyncio.Queue()

    async def wait_past(_: ChangeSignal, generation: int, *, seconds: float | None = None) -> bool:
        assert seconds is not None
        due.put_nowait(asyncio.get_running_loop().time() + seconds)
        await asyncio.Event().wait()
        return generation < 0

    monkeypatch.setattr(ChangeSignal, "wait_past", wait_past)
    mirror = SqliteMirror.open(tmp_path / "state.db")
    readers = [reader_of(f"p{number}", Idle(Script()), mirror, ignored) for number in range(200)]
    jitter = random.Random(1).random
    supervisor = SourceSupervisor(readers, emit=ignored, random=jitter, keep_running=supervise(ignored))
    running = asyncio.create_task(supervisor.run())
    async with asyncio.timeout(6 * DEADLINE):
        times = Counter([round(await due.get()) for _ in readers])
    assert 10 <= len(times) <= 40  # spread over half of the 30 seconds, and over the seconds that the first passes take
    running.cancel()
    await asyncio.wait([running])
    mirror.close()


class Idle(WatchedConnector):
    rescan_seconds = 30.0
