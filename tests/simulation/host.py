"""One host of the simulation and its process: the real standby, and then the daemon on the state that it has restored."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import httpx
from msgspec.structs import replace

from ingestd.client.service import ServiceClient
from ingestd.client.transport import Timeouts
from ingestd.client.writer import RisingWriter
from ingestd.core.address import SinkAddress
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.exit_codes import ExitCode
from ingestd.daemon.heartbeat import Heartbeat
from ingestd.daemon.ownership import OwnershipKeeper
from ingestd.daemon.shutdown import Shutdown
from ingestd.daemon.standby_phase import StandbyPhase
from ingestd.delivery.delivery_limits import DeliveryLimits
from ingestd.intake import PassReport, Reader
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.process.notify import Notifier
from ingestd.process.supervision import KeepRunning
from ingestd.standby.host_record import HostRecord, write_record
from ingestd.standby.place import Place
from ingestd.telemetry import Event
from ingestd.telemetry.catalogue.drift import StateDoubted
from ingestd.wire.writer import Writer
from tests.simulation.daemon import EPOCH, Daemon
from tests.simulation.loop import DEFAULT_THREADS, SimulatedLoop
from tests.simulation.mirrors import NotDurable, StateFolder
from tests.simulation.service import READ_SECONDS, SimulatedService

if TYPE_CHECKING:
    from ingestd.daemon.assembly import Assembly


class Host:
    """A host with a disk and two clocks: that of its wall is ``set_off`` seconds wrong, and it runs since ``started_off``."""

    def __init__(self, name: str, *, set_off: float, started_off: float) -> None:
        self.name = name
        self.set_off = set_off
        self.started_off = started_off
        self.process: HostProcess | None = None
        self.is_frozen = False
        self.starts = 0
        self._disks = 0
        self._folder: StateFolder | None = None

    @property
    def state(self) -> Path:
        """The path of the state file; a new disk has none."""
        if self._folder is None:
            self._folder = StateFolder()
            self._disks += 1
            write_record(self._folder.path, HostRecord(holder=f"{self.name}{self._disks}"))
        return self._folder.path

    def lose_disk(self) -> None:
        """Lose all files; the next process gets an empty disk."""
        if self._folder is not None:
            self._folder.remove()
            self._folder = None


class _Transport(httpx.AsyncBaseTransport):
    """The network of one process."""

    def __init__(self, process: HostProcess, service: SimulatedService) -> None:
        self._process = process
        self._service = service

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.extensions["process"] = self._process
        return await self._service.handle_async_request(request)


MakeReaders = Callable[["HostProcess", SqliteMirror], Sequence[Reader]]


class HostProcess:
    """A daemon with `--standby`, from its start to its end. ``now``: seconds that all hosts share.

    ``read_back``: the ids of the sinks that it has read completely; ``named``: the pipelines with sources that it has read.
    ``task`` ends when the process does. ``asked_to_end`` is called with it when it begins to end.
    """

    def __init__(
        self,
        host: Host,
        configuration: Configuration,
        *,
        now: float,
        thread_seconds: float,
        scheduling: random.Random,
        jitter: random.Random,
        service: SimulatedService,
        place: Place,
        make_readers: MakeReaders,
        emit: Callable[[HostProcess, Event], None],
        asked_to_end: Callable[[HostProcess], None],
    ) -> None:
        self.host = host
        self.loop = SimulatedLoop(
            scheduling, now=now, thread_seconds=thread_seconds, pausing=("source", DEFAULT_THREADS)
        )
        self.watchers: dict[str, Callable[[], None]] = {}
        self.read_back: set[str] = set()
        self.named: set[str] = set()
        self.is_older = False
        """Whether its state file may not know what the service has."""
        self.sinks_before: set[str] = set()
        """The ids of the sinks with entries when it was granted the lease."""
        self.mirror: SqliteMirror | None = None
        self.daemon: HostDaemon | None = None
        self._state = host.state
        self.jitter = jitter
        self._make_readers = make_readers
        self._emit_to = emit
        self._asked_to_end = asked_to_end
        settings = configuration.settings.model_copy(update={"state": self._state})
        self.configuration = replace(configuration, settings=settings)
        self.transport = _Transport(self, service)
        self.shutdown = Shutdown(emit=self.emit, overrun=ExitCode.DONE, seconds=None)
        self.phase = StandbyPhase(
            self.configuration,
            "",
            emit=self.emit,
            serve=_serve_nothing,
            client=self.client(),
            place=place,
            clock=lambda: self.loop.time() + host.started_off,
            now=self.now,
        )
        self.task = self.loop.create_task(self._run(), name="process")
        self.loop.create_task(self._note_shutdown(), name="deadline")

    def now(self) -> float:
        """Return the time of the host's wall clock, in seconds since the epoch."""
        return EPOCH + self.loop.time() + self.host.set_off

    @property
    def epoch(self) -> int:
        """The epoch of its lease; 0: it has none."""
        return self.phase.standby.lease.epoch if self.phase.standby.lease is not None else 0

    @property
    def is_active(self) -> bool:
        """Whether it holds the lease, as far as it knows, and its daemon runs."""
        return self.daemon is not None and self.phase.standby.role == "active" and not self.shutdown.signal

    def client(self, writer: RisingWriter | None = None) -> ServiceClient:
        """Return a client of the service with the network and the clocks of the host."""
        return ServiceClient(
            url="http://service.test",
            api_key="simulated-key-1",
            client_id="simulation",
            transport=self.transport,
            timeouts=Timeouts(read_seconds=READ_SECONDS),
            now=self.now,
            clock=self.loop.time,
            writer=writer,
        )

    def stop(self) -> None:
        """Send SIGTERM."""
        self.loop.call_soon(self.shutdown.ask, "SIGTERM")

    def kill(self) -> None:
        """End it as a kill does: nothing runs any more, and the kernel closes its files."""
        self.loop.kill()
        self._close_files()

    def end(self) -> None:
        """Release what a process that has ended holds."""
        self.loop.finish_threads()
        self.loop.close()

    def _close_files(self) -> None:
        if self.mirror is not None:
            self.mirror.close()
        lock = self._state.with_name(f"{self._state.name}.lock")
        for opened in list(Path("/proc/self/fd").iterdir()):
            with suppress(OSError):
                if opened.readlink() == lock:
                    os.close(int(opened.name))

    def emit(self, event: Event) -> None:
        if self.host.process is self:  # what the clean-up of a killed process emits does not exist
            self._emit_to(self, event)

    def note_pass(self, report: PassReport) -> None:
        """Record the end of a pass over a source. Called from its thread."""
        if report.names_all:
            self.named.add(report.pipeline)
        if self.daemon is not None:
            self.daemon.note_pass(report)

    async def _note_shutdown(self) -> None:
        await self.shutdown.asked.wait()
        self._asked_to_end(self)

    async def _run(self) -> None:
        """Run, as `ingestd.daemon.lifecycle.run` and `ingestd.daemon.assembly.assemble` do."""
        heartbeat = Heartbeat(Notifier())
        async with AsyncExitStack() as stack:
            if not await self.phase.wait(self.shutdown, heartbeat, stack):
                return
            standby, names = self.phase.standby, [one.name for one in self.configuration.settings.pipelines]
            await asyncio.to_thread(self._open, standby.writer)
            mirror = cast("SqliteMirror", self.mirror)
            stack.push_async_callback(self._close)
            await asyncio.to_thread(mirror.intake.activate, names)
            mirror.intake.hold_notifications(standby.may_acknowledge)
            standby.close_sinks(pipeline.sink for pipeline in self.configuration.settings.pipelines)
            self.daemon = HostDaemon(self, mirror, self._make_readers(self, mirror))
            notice = mirror.sequence.notice
            if standby.restored_at is not None:
                notice = await asyncio.to_thread(mirror.note_restored, standby.restored_at)
            if notice:
                self.emit(StateDoubted(sentence=notice, sinks=0))
            await self.daemon.run()

    def _open(self, granted: Writer) -> None:
        self.mirror = SqliteMirror.open(self._state, now=self.now, factory=NotDurable, granted=granted)

    async def _close(self) -> None:
        self.daemon = None
        await asyncio.to_thread(self._close_mirror)

    def _close_mirror(self) -> None:
        mirror, self.mirror = cast("SqliteMirror", self.mirror), None
        mirror.close()


async def _serve_nothing(*_: Any) -> None:
    raise AssertionError("no simulated configuration has a listener")


class HostDaemon(Daemon):
    """The active daemon of a host; it has what `ingestd.daemon.assembly` adds for a standby."""

    def __init__(self, process: HostProcess, mirror: SqliteMirror, readers: Sequence[Reader]) -> None:
        self._process = process
        self.mirror = mirror
        self._ownership: OwnershipKeeper | None = None
        super().__init__(
            process.loop,
            readers=readers,
            mirror=mirror.delivery,
            drift=mirror.drift,
            rejected=mirror.rejected,
            state=process.configuration.settings.state,
            read_again=lambda: process.configuration,
            failed_parts=mirror.failed_parts,
            transport=process.transport,
            emit=self._emit_and_note,
            random_numbers=process.jitter,
            limits=DeliveryLimits(in_flight_at_most=8),
            writer=RisingWriter(
                mirror.sequence.writer, on_behind=self._note_behind, permit=process.phase.standby.permit
            ),
            now=process.now,
            stop=process.shutdown.asked,
            runs=mirror.intake,
            stored=mirror.status,
        )
        mirror.on_pending = lambda sink: self._on_loop(lambda: self.wake(sink))
        mirror.on_acknowledged = lambda: self._on_loop(self._on_acknowledged)

    def start_beside(self, group: asyncio.TaskGroup, supervise: KeepRunning) -> list[asyncio.Task[None]]:
        ownership = self._ownership = OwnershipKeeper(
            pipelines=self._process.configuration.settings.pipelines,
            status=self.mirror.status,
            check=self.checker.check,
            now=self._now,
            random=self._random_numbers.random,
            on_compared=self._open_sink,
        )
        self.part_supervisor = supervise
        keep = self._process.phase.attach(cast("Assembly", self), self._process.shutdown)
        comparing = supervise("ownership", lambda: ownership.run(self.supervisor.wake))
        return [group.create_task(keep(), name="standby"), group.create_task(comparing, name="ownership")]

    def may_send(self, sink: SinkAddress) -> bool:
        return self._process.phase.standby.gate.is_open(sink)

    def note_pass(self, report: PassReport) -> None:
        """Have sinks compared that waited for a pass."""
        if self._ownership is not None and self._ownership.waits_for(report.pipeline):
            ownership = self._ownership
            self._on_loop(lambda: ownership.note_pass(report))

    async def _open_sink(self, sink: SinkAddress) -> None:
        gate = self._process.phase.standby.gate
        if not gate.is_open(sink):
            await asyncio.to_thread(self.mirror.note_written_before, sink)
            gate.open(sink)
            if self.dispatcher is not None:
                self.dispatcher.wake()

    def _emit_and_note(self, event: Event) -> None:
        self._process.emit(event)
        if self._ownership is not None:
            self._ownership.note_event(event)

    async def _note_behind(self, newest: Writer) -> None:
        sentence = await asyncio.to_thread(self.mirror.note_behind, newest)
        self._emit_and_note(StateDoubted(sentence=sentence, sinks=0))

    def _on_acknowledged(self) -> None:
        self.supervisor.on_acknowledged()
        if self.dispatcher is not None:
            self.dispatcher.wake()

    def _on_loop(self, call: Callable[[], None]) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call)
