"""Construction of the daemon: its parts, and how they notify each other."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from ingestd.client.writer import RisingWriter, permit_at_once
from ingestd.core.address import SinkAddress
from ingestd.daemon.command_handler import CommandHandler, DriftQueue
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.configuration_changes import source_digests
from ingestd.daemon.control.requests import Explain, Explained
from ingestd.daemon.cursor_moves import CursorMover
from ingestd.daemon.daemon_notices import DaemonNotices
from ingestd.daemon.explanation import explain
from ingestd.daemon.files_read import FilesRead
from ingestd.daemon.kept_files import move_kept, remove_unused
from ingestd.daemon.ownership import OwnershipKeeper
from ingestd.daemon.part_supervisor import PartSupervisor
from ingestd.daemon.parts import PartFactory, delivery_limits
from ingestd.daemon.pipeline_control import PipelineControl
from ingestd.daemon.pipeline_states import SourceNotices, pause_sentence
from ingestd.daemon.reconfigurer import Reconfigurer
from ingestd.daemon.rejected_retention import RejectedRetention
from ingestd.daemon.reload import Reloader
from ingestd.daemon.source_passes import SourcePasses
from ingestd.daemon.status import WorkCounter, compile_status
from ingestd.daemon.status_text import format_status
from ingestd.daemon.timings import drift_timings, last_checks, last_runs, reading_timings
from ingestd.delivery import Dispatcher
from ingestd.delivery.drift import DriftChecker
from ingestd.intake import PassReport, Reader, SourceSupervisor
from ingestd.intake.connector_reports import count_waiting
from ingestd.intake.notice import OperatorNotice
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.mirror.sqlite.runs.intake_store import IntakeStore
from ingestd.schedule import Schedule
from ingestd.settings.model import Settings
from ingestd.telemetry import Emit, Event
from ingestd.telemetry.catalogue.daemon import PipelineDue, PipelineRenamed, StateUnwritable, StateWritable
from ingestd.telemetry.catalogue.drift import EarlierStateMissing, StateDoubted
from ingestd.telemetry.request_counts import RequestCounts
from ingestd.wire.writer import Writer

if TYPE_CHECKING:
    from ingestd.standby.standby import Standby
    from ingestd.standby.status import StandbyStatus


@asynccontextmanager
async def assemble(
    configuration: Configuration, *, emit: Emit, until: float | None = None, standby: Standby | None = None
) -> AsyncIterator[Assembly]:
    """Create and connect the parts of a daemon. On exit, close them in reverse order: connectors, client, state file.

    ``until``: see `SourceContext`. ``standby``: the standby that has made this daemon active.

    Raises:
        MirrorBusy: another process holds the state file.
        MirrorFull: the state file can't be opened now; a later call may succeed.
        MirrorNewer, MirrorCorrupt, MirrorError: the state file can't be used.
    """
    settings = configuration.settings
    async with AsyncExitStack() as stack:
        granted = standby.writer if standby is not None else None
        mirror = await asyncio.to_thread(SqliteMirror.open, settings.state, granted=granted)
        stack.push_async_callback(asyncio.to_thread, mirror.close)
        mirror.on_unwritable = lambda sentence: emit(StateUnwritable(sentence=sentence))
        mirror.on_writable = lambda: emit(StateWritable())
        await asyncio.to_thread(remove_unused, settings.state, [pipeline.name for pipeline in settings.pipelines])
        # Only configured pipelines own keys; removed pipelines release their keys.
        await asyncio.to_thread(_activate, settings, mirror.intake, emit)
        if standby is not None:
            mirror.intake.hold_notifications(standby.may_acknowledge)
            standby.close_sinks(pipeline.sink for pipeline in settings.pipelines)
        assembly = Assembly(configuration, mirror, emit=emit, until=until, standby=standby)
        stack.push_async_callback(assembly.checker.aclose)
        stack.push_async_callback(assembly.supervisor.aclose)
        notice = mirror.sequence.notice
        if standby is not None and standby.restored_at is not None:
            notice = await asyncio.to_thread(mirror.note_restored, standby.restored_at)
        if notice:
            await _report_doubts(mirror, emit, notice)
        yield assembly


class Assembly:
    """The connected parts of a daemon. A part reads and sends nothing before its ``run`` is awaited."""

    def __init__(
        self,
        configuration: Configuration,
        mirror: SqliteMirror,
        *,
        emit: Emit,
        until: float | None,
        standby: Standby | None = None,
    ) -> None:
        self._standby = standby
        self._loop = asyncio.get_running_loop()
        self._emit = emit
        self.mirror = mirror
        self.passes = SourcePasses()
        self.request_counts = RequestCounts()
        self._work = WorkCounter()
        self._pausing = asyncio.Lock()
        settings = configuration.settings
        create = PartFactory(
            mirror=mirror.intake,
            emit=self._emit_and_note,
            on_pass=self._note_pass,
            request_counts=self.request_counts,
            writer=RisingWriter(
                mirror.sequence.writer,
                on_behind=self._note_behind,
                permit=standby.permit if standby is not None else permit_at_once,
            ),
            until=until,
            wake=lambda name: self.supervisor.wake(name),  # noqa: PLW0108 - the supervisor is created below
            files_read=FilesRead(lambda: self.configuration),
        )
        self.client = create.client(settings)
        self.checker = DriftChecker(
            mirror=mirror.delivery,
            drift=mirror.drift,
            client=self.client,
            emit=emit,
            missing_sink=settings.service.missing_sink,
        )
        self.retention = RejectedRetention(settings.rejected, rejected=mirror.rejected, emit=emit)
        self.part_supervisor = PartSupervisor(mirror.failed_parts, emit=emit, now=time.time, random=random.random)
        self.ownership = OwnershipKeeper(
            pipelines=settings.pipelines,
            status=mirror.status,
            check=self.checker.check,
            now=time.time,
            random=random.random,
            on_compared=self._open_sink,
        )
        readers = [create.reader_or_report(configuration, pipeline) for pipeline in settings.pipelines]
        self._connectors = {reader.pipeline: reader.connector for reader in readers}
        self.supervisor = SourceSupervisor(
            readers,
            emit=emit,
            random=random.random,
            keep_running=self.part_supervisor,
            scheduled=reading_timings(settings).keys(),
        )
        self.supervisor.use_pauses([pause.pipeline for pause in mirror.status.pauses()])
        self.dispatcher = Dispatcher(
            mirror=mirror.delivery,
            client=self.client,
            emit=self._emit_and_note,
            now=time.time,
            random=random.random,
            on_acknowledged=self.supervisor.on_acknowledged,
            keep_running=self.part_supervisor,
            limits=delivery_limits(settings),
            checks_sinks=True,
            may_send=lambda sink: standby is None or standby.gate.is_open(sink),
        )
        self.schedule = Schedule(
            reading_timings(settings), wake=self._wake_due, last_run_at=last_runs(mirror.status), now=time.time
        )
        self.drift_schedule = Schedule(
            drift_timings(settings),
            wake=lambda name: self.drift_queue.add(name),  # noqa: PLW0108 - the queue is created below
            last_run_at=last_checks(mirror.status, drift_timings(settings)),
            now=time.time,
        )
        self._reconfigurer = Reconfigurer(
            configuration=configuration,
            create=create,
            connectors=self._connectors,
            mirror=mirror,
            supervisor=self.supervisor,
            dispatcher=self.dispatcher,
            checker=self.checker,
            ownership=self.ownership,
            retention=self.retention,
            schedule=self.schedule,
            drift_schedule=self.drift_schedule,
            pausing=self._pausing,
            emit=emit,
        )
        self.reloader = Reloader(self._reconfigurer, emit=emit)
        self.notices = DaemonNotices(
            mirror,
            self.supervisor,
            self.reloader,
            key_expires_at=lambda: self.request_counts.key_expires_at,
            now=time.time,
        )
        self.command_handler = self._make_command_handler()
        self.perform = self.command_handler.perform
        """Executes the requests of commands and pages."""
        self.drift_queue = DriftQueue(self.command_handler)
        mirror.delivery.columns_of = self._columns_of
        # The intake commits in threads, but the dispatcher must be called on the event loop.
        mirror.on_pending = lambda sink: self._on_loop(partial(self.dispatcher.wake, sink))
        mirror.on_acknowledged = lambda: self._on_loop(self._on_acknowledged)

    @property
    def configuration(self) -> Configuration:
        """The configuration in use; a reload replaces it."""
        return self._reconfigurer.configuration

    @property
    def readers(self) -> tuple[Reader, ...]:
        """The readers of all pipelines."""
        return self.supervisor.readers

    def standby_status(self) -> StandbyStatus | None:
        """Return which daemon is active; None without `--standby`. Thread-safe."""
        return self._standby.status() if self._standby is not None else None

    def sources(self) -> SourceNotices:
        """Return what is known about the sources. Thread-safe. Calls no method of a connector that could block."""
        waiting = {reader.pipeline: count_waiting(reader.pipeline, reader.connector) for reader in self.readers}
        failed = (found for found in waiting.values() if isinstance(found, OperatorNotice))
        return SourceNotices(
            notices=(*self.notices.every(), *failed),
            health=self.supervisor.health(),
            waiting={name: found for name, found in waiting.items() if not isinstance(found, OperatorNotice)},
            tried=self.passes.pipelines(),
        )

    def _make_command_handler(self) -> CommandHandler:
        cursors = CursorMover(
            keeper=self.mirror.cursors,
            reader=self.mirror.status,
            connectors=self._connectors,
            between_passes=self.supervisor.between_passes,
            read_again=self._read_again,
            read=lambda name: None if self._is_scheduled(name) else self.supervisor.wake(name),
            read_now=self.supervisor.wake,
            held_runs=self.mirror.status.held_runs,
            emit=self._emit,
        )
        return CommandHandler(
            pipelines=lambda: self.configuration.settings.pipelines,
            rejected=self.mirror.rejected,
            runs=self.mirror.intake,
            stored=self.mirror.status,
            checker=self.checker,
            request_reading=self._read_again,
            explain=self._explain,
            status=self._status,
            sources=self.sources,
            cursors=cursors,
            control=PipelineControl(
                pipelines=lambda: self.configuration.settings.pipelines,
                store=self.mirror.pauses,
                status=self.mirror.status,
                pausing=self._pausing,
                use_pauses=self.supervisor.use_pauses,
                read=self.supervisor.wake,
                deliver=self.dispatcher.wake,
                now=time.time,
                emit=self._emit,
            ),
            reloader=self.reloader,
            emit=self._emit,
        )

    def _explain(self, request: Explain) -> Explained:
        """Return why a partition waits. Blocks."""

        def unacknowledged(pipeline: str, partition: str) -> OperatorNotice | None:
            reader = self.supervisor.reader(pipeline)
            return reader.unacknowledged(partition) if reader is not None else None

        return explain(
            self._connectors,
            request,
            unacknowledged=unacknowledged,
            failure=lambda pipeline: (
                self.notices.unwritable() or self._pause_of(pipeline) or self.passes.failure(pipeline)
            ),
        )

    def _pause_of(self, pipeline: str) -> str:
        """Return a sentence on the effect of a pipeline's pause, or "" if the pipeline is not paused. Blocks."""
        return next((pause_sentence(one) for one in self.mirror.status.pauses() if one.pipeline == pipeline), "")

    def _status(self, as_json: bool) -> str:
        """Return what `ingestd status` prints. Blocks."""
        found = compile_status(
            self.mirror.status,
            self.configuration,
            pid=os.getpid(),
            sources=self.sources(),
            since_start=self._work.counts(),
            standby=self.standby_status(),
        )
        return format_status(found, as_json=as_json)

    def _emit_and_note(self, event: Event) -> None:
        self._emit(event)
        self.retention.note_event(event)
        self._work.note_event(event)
        self.ownership.note_event(event)

    def _note_pass(self, report: PassReport) -> None:
        self.passes.note(report)
        if self.ownership.waits_for(report.pipeline):
            self._on_loop(lambda: self.ownership.note_pass(report))

    async def _note_behind(self, newest: Writer) -> None:
        """Mark every sink as in doubt. ``newest``: a writer that the service has seen and that is newer than the state file."""
        sentence = await asyncio.to_thread(self.mirror.note_behind, newest)
        await _report_doubts(self.mirror, self._emit_and_note, sentence)

    async def _open_sink(self, sink: SinkAddress) -> None:
        """Permit the delivery to a sink after it was compared with its sources, or if no pipeline writes it any more.

        The state file then records that an earlier active daemon may have written to the sink.
        """
        if self._standby is not None and not self._standby.gate.is_open(sink):
            await asyncio.to_thread(self.mirror.note_written_before, sink)
            self._standby.gate.open(sink)
            self.dispatcher.wake()

    def _wake_due(self, pipeline: str) -> None:
        self._emit(PipelineDue(pipeline=pipeline))
        self.supervisor.wake(pipeline)

    def _is_scheduled(self, pipeline: str) -> bool:
        return pipeline in reading_timings(self.configuration.settings)

    def _read_again(self, pipeline: str) -> None:
        """Request a complete reading of a source: now, or at the next scheduled time if the pipeline has a schedule."""
        self.supervisor.remap(pipeline, now=not self._is_scheduled(pipeline))

    def _columns_of(self, pipeline: str, key: str, member: str) -> tuple[str, ...]:
        reader = self.supervisor.reader(pipeline)
        return reader.columns_of(key, member) if reader is not None else ()

    def _on_acknowledged(self) -> None:
        """After a commit of deferred acknowledgements, wake the intake to notify sources and the delivery to use segments."""
        self.supervisor.on_acknowledged()
        self.dispatcher.wake()

    def _on_loop(self, call: Callable[[], None]) -> None:
        if not self._loop.is_closed():  # a reader thread may commit its last batch after the loop has ended
            self._loop.call_soon_threadsafe(call)


async def _report_doubts(mirror: SqliteMirror, emit: Emit, sentence: str) -> None:
    doubts = len(await asyncio.to_thread(mirror.status.doubts))
    emit(StateDoubted(sentence=sentence, sinks=doubts) if doubts else EarlierStateMissing(sentence=sentence))


def _activate(settings: Settings, intake: IntakeStore, emit: Emit) -> None:
    """Activate the configured pipelines. A renamed pipeline keeps its state and its files. Blocks."""
    sources = source_digests(settings.pipelines)
    renamed = intake.activate(list(sources), sources=sources)
    move_kept(settings.state, renamed)
    for before, name in renamed:
        emit(PipelineRenamed(pipeline=name, before=before))
