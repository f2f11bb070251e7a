from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from ingestd.core.address import SinkAddress
from ingestd.core.backoff import Backoff
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.core.record import Acknowledgement, Batch, Cursor, Partition
from ingestd.intake import Reader, SourceSupervisor, reader_task, thread_pool
from ingestd.intake.rescans import Rescans
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.process.progress import note_progress, progress_of
from ingestd.sdk import SourceBroken, SourceUnavailable
from ingestd.telemetry import Event
from ingestd.telemetry.catalogue.daemon import PartFailed
from ingestd.telemetry.catalogue.intake import (
    AcknowledgementFailed,
    PartitionAcknowledged,
    PartitionRead,
    PartitionRejected,
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
    """Ignore an event."""


class WatchedConnector(ScriptedConnector):
    """A scripted source that signals a change when the test requests it."""

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
        self.fail("closing the watch")

    def fail(self, where: str) -> None:
        """Fail once at a point that the test names."""
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

    def acknowledge(self, partition: Partition, cursor: Cursor, acknowledgement: Acknowledgement) -> None:
        self.fail("acknowledging")
        super().acknowledge(partition, cursor, acknowledgement)


class EventRecorder:
    """Collects events; a test can wait for the next of a type."""

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
) -> AsyncIterator[tuple[SourceSupervisor, EventRecorder, SqliteMirror]]:
    mirror = SqliteMirror.open(path / "state.db")
    events = EventRecorder()
    reader = Reader(
        pipeline="p", connector=connector, mapping=Mapping([EntrySpec(key="{k}", value="{v}")]),
        sink=SINK, mirror=mirror.intake, emit=events.emit,
    )  # fmt: skip
    supervisor = SourceSupervisor(
        [reader], emit=events.emit, random=lambda: 0.01, keep_running=supervise(events.emit, parts),
        scheduled={"p"} if scheduled else set(),
    )  # fmt: skip
    running = asyncio.create_task(supervisor.run())
    try:
        yield supervisor, events, mirror
    finally:
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        mirror.close()


@pytest.fixture
async def turns(monkeypatch: pytest.MonkeyPatch) -> asyncio.Queue[None]:
    """An item for each notification of the connector: a source that is not read has one whenever it is woken."""
    made = asyncio.Queue[None]()
    loop, acknowledge = asyncio.get_running_loop(), Reader.acknowledge_partitions

    def reported(reader: Reader) -> int:
        loop.call_soon_threadsafe(made.put_nowait, None)
        return acknowledge(reader)

    monkeypatch.setattr(Reader, "acknowledge_partitions", reported)
    return made


async def test_a_watched_source_is_read_at_the_start_and_at_each_change(tmp_path: Path) -> None:
    script = Script()
    script.write("a", [{"k": "x", "v": "1"}])
    connector = WatchedConnector(script)
    async with supervised(tmp_path, connector) as (_, events, mirror):
        await events.next(PartitionRead)
        script.write("b", [{"k": "y", "v": "2"}])
        connector.wake()
        read = await events.next(PartitionRead)
        assert isinstance(read, PartitionRead)
        assert read.partition == "b"
        assert mirror.status.pending() == 2


async def test_a_scheduled_source_is_read_only_when_it_is_woken(tmp_path: Path) -> None:
    script = Script()
    script.write("a", [{"k": "x", "v": "1"}])
    connector = WatchedConnector(script)
    async with supervised(tmp_path, connector, scheduled=True) as (supervisor, events, mirror):
        assert not connector.watching.is_set()
        assert mirror.status.pending() == 0
        supervisor.wake("p")
        await events.next(PartitionRead)
        assert mirror.status.pending() == 1


@pytest.mark.parametrize("scheduled", [False, True])
async def test_a_paused_source_is_not_read_and_catches_up_when_it_is_resumed(tmp_path: Path, scheduled: bool) -> None:
    script = Script()
    connector = WatchedConnector(script)
    async with supervised(tmp_path, connector, scheduled=scheduled) as (supervisor, events, mirror):
        supervisor.use_pauses(["p"])
        script.write("a", [{"k": "x", "v": "1"}])
        supervisor.wake("p")
        assert await supervisor.read_once() == []
        await supervisor.between_passes("p", lambda: None)
        assert mirror.status.pending() == 0
        supervisor.use_pauses([])
        await events.next(PartitionRead)
        assert mirror.status.pending() == 1


async def test_a_scheduled_source_that_missed_no_run_is_not_read_when_it_is_resumed(
    tmp_path: Path, turns: asyncio.Queue[None]
) -> None:
    script = Script()
    script.write("a", [{"k": "x", "v": "1"}])
    async with supervised(tmp_path, WatchedConnector(script), scheduled=True) as (supervisor, _, _mirror):
        async with asyncio.timeout(DEADLINE):
            await turns.get()
            supervisor.use_pauses(["p"])
            supervisor.use_pauses([])
            await turns.get()
        assert not script.readings


async def test_a_pause_ends_a_running_pass_at_its_next_batch_and_the_rest_is_read_later(tmp_path: Path) -> None:
    script = Script(batch_rows=1)
    script.write("a", [{"k": str(number), "v": "1"} for number in range(50)])
    connector = WatchedConnector(script)
    begun, goes_on = threading.Event(), threading.Event()
    read = connector.read

    def slow(partition: Partition, cursor: Cursor | None) -> Iterator[Any]:
        for number, batch in enumerate(read(partition, cursor)):
            if number == 2 and not goes_on.is_set():
                begun.set()
                assert goes_on.wait(DEADLINE)
            yield batch

    connector.read = slow  # type: ignore[method-assign]
    async with supervised(tmp_path, connector, scheduled=True) as (supervisor, events, mirror):
        supervisor.wake("p")
        assert await asyncio.to_thread(begun.wait, DEADLINE)
        supervisor.use_pauses(["p"])
        goes_on.set()
        await supervisor.between_passes("p", lambda: None)
        (history,) = mirror.status.past_runs("p", limit=10)
        assert history.failure == "the reading was stopped before the partition's end"
        supervisor.use_pauses([])
        await events.next(PartitionRead)
        assert mirror.status.pending() == 50


async def test_a_pause_that_ends_before_the_pass_that_it_cut_has_the_rest_read_at_once(tmp_path: Path) -> None:
    script = Script()
    for name in ("a", "b"):
        script.write(name, [{"k": name, "v": "1"}])
    connector = WatchedConnector(script)
    loop = asyncio.get_running_loop()

    def use_pauses(*names: str) -> None:
        async def use() -> None:
            supervisor.use_pauses(names)

        asyncio.run_coroutine_threadsafe(use(), loop).result(DEADLINE)

    def paused_after_the_first() -> Iterator[Partition]:
        del connector.partitions
        first, second = connector.partitions()
        yield first
        use_pauses("p")
        yield second
        raise AssertionError

    def resumed() -> None:
        del connector.waiting
        use_pauses()

    connector.partitions = paused_after_the_first  # type: ignore[assignment, method-assign]
    connector.waiting = resumed  # type: ignore[method-assign]
    async with supervised(tmp_path, connector, scheduled=True) as (supervisor, events, mirror):
        supervisor.wake("p")
        assert await next_partition(events) == "a"
        assert await next_partition(events) == "b"
        assert mirror.status.pending() == 2


async def next_partition(events: EventRecorder) -> str:
    read = await events.next(PartitionRead)
    assert isinstance(read, PartitionRead)
    return read.partition


def test_a_pass_that_a_pause_cut_is_not_complete_although_the_pause_has_ended(tmp_path: Path) -> None:
    script = Script(deletes="remove")
    for name in ("a", "b"):
        script.write(name, [{"k": name, "v": "1"}])
    connector = WatchedConnector(script)
    mirror = SqliteMirror.open(tmp_path / "state.db")
    reader = reader_of("p", connector, mirror, ignored)

    def paused_after_the_first() -> Iterator[Partition]:
        del connector.partitions
        first, second = connector.partitions()
        yield first
        with paused(reader):
            yield second

    connector.partitions = paused_after_the_first  # type: ignore[assignment, method-assign]
    cut = reader.read_pass()
    assert (cut.cut, cut.complete, len(cut.read)) == (True, False, 1)
    whole = reader.read_pass()
    assert (whole.cut, whole.complete, len(whole.read)) == (False, True, 1)
    mirror.close()


def test_a_reading_that_a_pause_cut_is_no_fault_of_the_connector_although_the_pause_has_ended(tmp_path: Path) -> None:
    script = Script(batch_rows=1)
    script.write("a", [{"k": str(number), "v": "1"} for number in range(3)])
    connector = WatchedConnector(script)
    mirror = SqliteMirror.open(tmp_path / "state.db")
    reader = reader_of("p", connector, mirror, ignored)

    def read(partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:
        first, *others = ScriptedConnector.read(connector, partition, cursor)
        yield first
        with paused(reader):
            yield from others

    connector.read = read  # type: ignore[method-assign]
    reader.read_pass()
    (run,) = mirror.status.past_runs("p", limit=10)
    assert run.failure == "the reading was stopped before the partition's end"
    mirror.close()


@contextmanager
def paused(reader: Reader) -> Iterator[None]:
    """Pause the pipeline until the pass has dropped the iterator that is in this context."""
    reader.pause(True)
    try:
        yield
    finally:
        reader.pause(False)


async def test_a_pass_that_was_due_before_a_pause_is_made_when_the_pause_ends(tmp_path: Path) -> None:
    script = Script()
    connector = WatchedConnector(script)
    passed = threading.Event()

    def waiting() -> float:
        passed.set()
        return 3600.0

    connector.waiting = waiting  # type: ignore[method-assign]
    async with supervised(tmp_path, connector, scheduled=True) as (supervisor, events, mirror):
        supervisor.wake("p")
        assert await asyncio.to_thread(passed.wait, DEADLINE)
        await supervisor.between_passes("p", lambda: None)
        supervisor.use_pauses(["p"])
        script.write("a", [{"k": "x", "v": "1"}])
        supervisor.on_acknowledged()
        await supervisor.between_passes("p", lambda: None)
        supervisor.use_pauses([])
        await events.next(PartitionRead)
        assert mirror.status.pending() == 1


class ListeningConnector(WatchedConnector):
    """A connector that listens between the runs of its schedule."""

    @contextmanager
    def listen(self, wake: Callable[[], None]) -> Iterator[None]:
        self.wake = wake
        yield
        self.wake = lambda: None


async def test_a_scheduled_source_that_listens_is_read_when_it_reports_a_change(tmp_path: Path) -> None:
    script = Script()
    script.write("a", [{"k": "x", "v": "1"}])
    connector = ListeningConnector(script)
    listening = asyncio.Event()
    loop, listen = asyncio.get_running_loop(), connector.listen

    @contextmanager
    def reported(wake: Callable[[], None]) -> Iterator[None]:
        with listen(wake):
            loop.call_soon_threadsafe(listening.set)
            yield

    connector.listen = reported  # type: ignore[method-assign]
    async with supervised(tmp_path, connector, scheduled=True) as (_, events, mirror):
        async with asyncio.timeout(DEADLINE):
            await listening.wait()
        assert not connector.watching.is_set()
        assert mirror.status.pending() == 0
        connector.wake()
        await events.next(PartitionRead)
        assert mirror.status.pending() == 1


async def test_an_unreachable_source_is_retried_and_its_return_is_reported(tmp_path: Path) -> None:
    script = Script()
    script.write("a", [{"k": "x", "v": "1"}])
    connector = WatchedConnector(script)
    connector.failure = SourceUnavailable("The share is not mounted.")
    async with supervised(tmp_path, connector) as (_, events, _mirror):
        away = await events.next(SourceAway)
        assert isinstance(away, SourceAway)
        assert away.sentence == "The share is not mounted."
        connector.failure = None
        await events.next(SourceBack)


async def retry_after_the_pass(supervisor: SourceSupervisor) -> None:
    """Request a retry in each turn of the loop, until one comes after the result of the failed pass."""
    async with asyncio.timeout(DEADLINE):
        while supervisor.retry_now().now != ("p",):  # noqa: ASYNC110 - nothing signals that the result was handled
            await asyncio.sleep(0)


async def test_an_unreachable_source_is_read_at_once_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_task, "_BACKOFF", Backoff(base_seconds=360_000.0, cap_seconds=360_000.0))
    connector = WatchedConnector(Script())
    connector.failure = SourceUnavailable("The share is not mounted.")
    async with supervised(tmp_path, connector) as (supervisor, events, _mirror):
        await events.next(SourceAway)
        connector.failure = None
        supervisor.retry_now()
        await events.next(SourceBack)


async def test_a_source_that_refused_its_settings_is_read_at_once_on_request(tmp_path: Path) -> None:
    script = Script()
    script.write("a", [{"k": "x", "v": "1"}])
    connector = WatchedConnector(script)
    connector.failure = SourceBroken("The server refused the user.")
    async with supervised(tmp_path, connector) as (supervisor, events, _mirror):
        await events.next(SourceStopped)
        connector.failure = None
        await retry_after_the_pass(supervisor)
        await events.next(PartitionRead)


async def test_a_source_that_asks_for_a_wait_is_not_read_before_its_end(
    tmp_path: Path, turns: asyncio.Queue[None]
) -> None:
    connector = WatchedConnector(Script())
    connector.failure = SourceUnavailable("The service has its limit.", retry_after=3600)
    async with supervised(tmp_path, connector) as (supervisor, events, _mirror):
        away = await events.next(SourceAway)
        assert isinstance(away, SourceAway)
        assert away.retry_in_seconds == 3600
        connector.failure = AssertionError("it was read")
        async with asyncio.timeout(DEADLINE):
            await turns.get()
            for _ in range(3):
                connector.wake()
                await turns.get()
            retried = supervisor.retry_now()
        assert (retried.now, list(retried.later)) == ((), ["p"])
        assert 3500 < retried.later["p"] <= 3600
        with pytest.raises(asyncio.QueueEmpty):
            events.events.get_nowait()


@pytest.mark.parametrize("where", ["listing", "reading"])
async def test_a_source_that_can_not_be_used_is_read_at_once_on_request(tmp_path: Path, where: str) -> None:
    script = Script()
    connector = WatchedConnector(script)
    refused = SourceBroken("The server refuses the user.")
    if where == "listing":
        connector.failure = refused
    else:
        script.write("a", [{"k": "x", "v": "1"}])
        script.contents["a"].error, script.contents["a"].fails_after = refused, 0
    async with supervised(tmp_path, connector) as (supervisor, events, _mirror):
        await events.next(SourceStopped if where == "listing" else PartitionRejected)
        connector.failure = None
        script.write("a", [{"k": "x", "v": "2"}])
        await retry_after_the_pass(supervisor)
        await events.next(PartitionRead)


async def test_a_broken_source_is_reported_once_and_read_when_it_is_corrected(tmp_path: Path) -> None:
    script = Script()
    script.write("a", [{"k": "x", "v": "1"}])
    connector = WatchedConnector(script)
    connector.failure = SourceBroken("The folder may not be read.")
    async with supervised(tmp_path, connector) as (_, events, _mirror):
        await events.next(SourceStopped)
        connector.wake()
        connector.failure = None
        connector.wake()
        await events.next(PartitionRead)
        assert not [event for event in events.events._queue if isinstance(event, SourceStopped)]  # type: ignore[attr-defined]


async def test_a_partition_that_is_not_ready_is_checked_again_without_a_signal(tmp_path: Path) -> None:
    script = Script()
    connector = WatchedConnector(script)
    connector.ready_in = 0.01
    async with supervised(tmp_path, connector) as (_, events, _mirror):
        assert await asyncio.to_thread(connector.watching.wait, DEADLINE)
        script.write("a", [{"k": "x", "v": "1"}])
        await events.next(PartitionRead)


async def test_reading_once_waits_for_partitions_that_are_almost_ready(tmp_path: Path) -> None:
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


async def test_delivered_partitions_are_acknowledged_at_the_signal_of_delivery(tmp_path: Path) -> None:
    script = Script()
    script.write("a", [{"k": "x", "v": "1"}])
    connector = WatchedConnector(script)
    async with supervised(tmp_path, connector) as (supervisor, events, mirror):
        await events.next(PartitionRead)
        sink = (await mirror.delivery.lanes())[0].id
        claim = await mirror.delivery.claim(sink, max_items=10, max_bytes=1000)
        assert claim is not None
        await mirror.delivery.acknowledge(claim)
        assert script.acknowledged == []
        supervisor.on_acknowledged(SINK)
        await events.next(PartitionAcknowledged)
        assert script.acknowledged == [("a", 1)]


@pytest.mark.parametrize("where", ["entering the watch", "listing", "waiting"])
async def test_an_unexpected_failure_of_a_part_is_logged_and_the_part_restarts(tmp_path: Path, where: str) -> None:
    script = Script()
    script.write("a", [{"k": "x", "v": "1"}])
    connector = WatchedConnector(script)
    connector.faults[where] = RuntimeError("Symlink loop")
    parts = FailedParts()
    async with supervised(tmp_path, connector, parts=parts) as (_, events, mirror):
        failed = await events.next(PartFailed)
        assert isinstance(failed, PartFailed)
        assert (failed.part, failed.sentence) == ("intake p", "RuntimeError: Symlink loop")
        assert "self.fail(" in failed.traceback
        assert parts.failed["intake p"].sentence == "RuntimeError: Symlink loop"
        script.write("b", [{"k": "y", "v": "2"}])
        while mirror.status.pending() != 2:
            await events.next(PartitionRead)
        assert connector.watching.is_set()


async def test_a_failed_scheduled_run_is_repeated(tmp_path: Path) -> None:
    script = Script()
    script.write("a", [{"k": "x", "v": "1"}])
    connector = WatchedConnector(script)
    connector.faults["listing"] = ValueError("no such table")
    async with supervised(tmp_path, connector, scheduled=True) as (supervisor, events, mirror):
        supervisor.wake("p")
        await events.next(PartFailed)
        await events.next(PartitionRead)
        assert mirror.status.pending() == 1


async def test_a_failure_during_shutdown_is_logged_and_does_not_stop_the_shutdown(tmp_path: Path) -> None:
    connector = WatchedConnector(Script())
    connector.faults["closing the watch"] = RuntimeError("no watch")
    connector.faults["closing"] = RuntimeError("no handle")
    async with supervised(tmp_path, connector) as (_, events, _mirror):
        assert await asyncio.to_thread(connector.watching.wait, DEADLINE)
    failed = [await events.next(SourceFailed), await events.next(SourceFailed)]
    sentences = [event.sentence for event in failed if isinstance(event, SourceFailed)]
    assert "failed while ending the watch: RuntimeError: no watch." in sentences[0]
    assert "failed while closing: RuntimeError: no handle." in sentences[1]


async def test_a_source_that_fails_to_acknowledge_is_called_again(tmp_path: Path) -> None:
    script = Script()
    script.write("a", [{"k": "x", "v": "1"}])
    connector = WatchedConnector(script)
    connector.faults["acknowledging"] = RuntimeError("no archive")
    async with supervised(tmp_path, connector) as (supervisor, events, mirror):
        await events.next(PartitionRead)
        sink = (await mirror.delivery.lanes())[0].id
        claim = await mirror.delivery.claim(sink, max_items=10, max_bytes=1000)
        assert claim is not None
        await mirror.delivery.acknowledge(claim)
        supervisor.on_acknowledged(SINK)
        await events.next(AcknowledgementFailed)
        supervisor.on_acknowledged(SINK)
        await events.next(PartitionAcknowledged)


async def test_reading_once_reports_a_failing_source_as_broken_and_reads_the_others(tmp_path: Path) -> None:
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


async def test_an_acknowledgement_of_a_sink_wakes_only_the_pipelines_of_that_sink(tmp_path: Path) -> None:
    mirror = SqliteMirror.open(tmp_path / "state.db")
    connectors = {name: WatchedConnector(Script()) for name in ("a", "b", "c")}
    looks: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    readers = [
        reader_of(name, connector, mirror, ignored, sink="one" if name != "c" else "two")
        for name, connector in connectors.items()
    ]
    for reader in readers:
        look = reader.acknowledge_partitions

        def acknowledge(name: str = reader.pipeline, look: Callable[[], int] = look) -> int:
            loop.call_soon_threadsafe(looks.put_nowait, name)
            return look()

        reader.acknowledge_partitions = acknowledge  # type: ignore[method-assign]
    supervisor = SourceSupervisor(readers, emit=ignored, random=lambda: 0.0, keep_running=supervise(ignored))
    running = asyncio.create_task(supervisor.run())
    async with asyncio.timeout(DEADLINE):
        assert {await looks.get() for _ in range(3)} == {"a", "b", "c"}
        supervisor.on_acknowledged(SinkAddress(workspace="w", by="label", name="one"))
        assert {await looks.get() for _ in range(2)} == {"a", "b"}
        supervisor.on_acknowledged(SinkAddress(workspace="w", by="label", name="of an earlier configuration"))
        assert {await looks.get() for _ in range(3)} == {"a", "b", "c"}
    running.cancel()
    await asyncio.wait([running])
    mirror.close()


async def test_hanging_sources_are_reported_and_do_not_delay_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_pool, "SLOW_SECONDS", 0.05)
    free = threading.Event()

    class Hanging(WatchedConnector):
        def partitions(self) -> list[Partition]:
            free.wait(6 * DEADLINE)
            return []

    mirror = SqliteMirror.open(tmp_path / "state.db")
    events = EventRecorder()
    good = Script()
    good.write("a", [{"k": "x", "v": "1"}])
    hanging = [f"h{number}" for number in range(2 * thread_pool.THREADS)]
    readers = [
        *(reader_of(name, Hanging(Script()), mirror, events.emit) for name in hanging),
        reader_of("good", WatchedConnector(good), mirror, events.emit),
    ]
    supervisor = SourceSupervisor(readers, emit=events.emit, random=lambda: 0.0, keep_running=supervise(events.emit))
    running = asyncio.create_task(supervisor.run())
    slow: list[str] = []
    while len(slow) < len(hanging):
        event = await events.next(SourceSlow)
        assert isinstance(event, SourceSlow)
        assert "has made no progress for" in event.sentence
        slow.append(event.pipeline)
    assert sorted(slow) == sorted(hanging)
    while mirror.status.pending() != 1:
        await events.next(PartitionRead)
    free.set()
    running.cancel()
    await asyncio.wait([running])
    mirror.close()


async def test_a_call_that_takes_long_and_makes_steps_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_pool, "SLOW_SECONDS", 0.01)
    events = EventRecorder()
    threads = thread_pool.SourceThreads(emit=events.emit)
    looks: list[bool] = []
    monkeypatch.setattr(thread_pool, "progress_of", lambda _: len(looks))  # another step at each look
    look_at = thread_pool.SourceThreads._look_at
    seen = asyncio.Event()

    def looked(threads: thread_pool.SourceThreads, call: Any) -> None:
        looks.append(True)
        look_at(threads, call)
        if len(looks) == 5:
            seen.set()

    monkeypatch.setattr(thread_pool.SourceThreads, "_look_at", looked)
    free = threading.Event()
    future = await threads.start(lambda: "p", lambda: free.wait(DEADLINE))
    async with asyncio.timeout(DEADLINE):
        await seen.wait()
    assert threads.slow() == []
    monkeypatch.setattr(thread_pool, "progress_of", lambda _: 0)  # and then none
    await events.next(SourceSlow)
    assert threads.slow() == ["p"]
    monkeypatch.setattr(thread_pool, "progress_of", lambda _: len(looks))
    async with asyncio.timeout(DEADLINE):
        while threads.slow():
            seen.clear()
            del looks[:]
            await seen.wait()
    free.set()
    await future
    await threads.close()


def test_a_step_of_one_thread_is_no_step_of_another() -> None:
    here = threading.get_ident()
    before = progress_of(here)
    other = threading.Thread(target=note_progress)
    other.start()
    other.join()
    assert progress_of(here) == before
    note_progress()
    note_progress(here)
    assert progress_of(here) == before + 2


async def test_rescans_of_idle_sources_are_distributed_and_share_their_due_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    due: asyncio.Queue[float] = asyncio.Queue()
    monkeypatch.setattr(Rescans, "add", lambda _, __, at: due.put_nowait(at))
    mirror = SqliteMirror.open(tmp_path / "state.db")
    readers = [reader_of(f"p{number}", Idle(Script()), mirror, ignored) for number in range(200)]
    jitter = random.Random(1).random
    supervisor = SourceSupervisor(readers, emit=ignored, random=jitter, keep_running=supervise(ignored))
    running = asyncio.create_task(supervisor.run())
    async with asyncio.timeout(6 * DEADLINE):
        times = Counter([await due.get() for _ in readers])
    assert 2 <= len(times) <= 6  # Distributed over half of the 30 seconds, and over the duration of the first passes.
    assert all(time % 10 == 0 for time in times)
    running.cancel()
    await asyncio.wait([running])
    mirror.close()


class Idle(WatchedConnector):
    rescan_seconds = 30.0


async def test_a_removed_source_that_hangs_is_waited_for_by_its_successor_only(tmp_path: Path) -> None:
    script = Script()
    script.write("a", [{"k": "x", "v": "1"}])
    hanging, entered, returns = WatchedConnector(script), threading.Event(), threading.Event()
    closed = threading.Event()

    def hang() -> list[Partition]:
        entered.set()
        returns.wait(DEADLINE)
        return []

    hanging.partitions = hang  # type: ignore[method-assign]
    hanging.close = closed.set  # type: ignore[method-assign]
    async with supervised(tmp_path, hanging) as (supervisor, events, mirror):
        await asyncio.to_thread(entered.wait, DEADLINE)
        await supervisor.remove(["p"], wait_seconds=0.01)
        assert supervisor.readers == ()
        successor = WatchedConnector(script)
        reader = Reader(
            pipeline="p", connector=successor, mapping=Mapping([EntrySpec(key="{k}", value="{v}")]),
            sink=SINK, mirror=mirror.intake, emit=events.emit,
        )  # fmt: skip
        supervisor.add([reader], scheduled=())
        assert not successor.watching.is_set()
        assert not closed.is_set()
        returns.set()
        await events.next(PartitionRead)
        assert closed.is_set()
        supervisor.wake("unknown")
        supervisor.remap("unknown", now=True)
