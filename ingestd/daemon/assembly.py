"""Construction of the daemon: the only module that names the classes of the mirror, the client and the connectors."""

from __future__ import annotations

import asyncio
import math
import os
import random
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec

from ingestd.client.service import ServiceClient
from ingestd.client.transport import Timeouts, TransportOptions, UnusableCertificate
from ingestd.client.writer import RisingWriter
from ingestd.core.errors import ConfigurationError, Mistake
from ingestd.core.groups import Aggregation
from ingestd.core.mapping import Mapping
from ingestd.daemon.command_handler import CommandHandler
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.cursor_moves import CursorMover
from ingestd.daemon.daemon_notices import DaemonNotices
from ingestd.daemon.drift_queue import DriftQueue
from ingestd.daemon.explanation import explain
from ingestd.daemon.files_read import FilesRead
from ingestd.daemon.kept_files import cache_folder, kept_folder, move_kept, remove_unused
from ingestd.daemon.ownership import OwnershipKeeper
from ingestd.daemon.part_supervisor import PartSupervisor
from ingestd.daemon.reconfigurer import Reconfigurer
from ingestd.daemon.rejected_retention import RejectedRetention
from ingestd.daemon.reload import Reloader
from ingestd.daemon.source_digest import source_digests
from ingestd.daemon.source_passes import SourcePasses
from ingestd.daemon.status import compile_status
from ingestd.daemon.status_text import format_status
from ingestd.daemon.timings import drift_timings, last_checks, last_runs, reading_timings
from ingestd.daemon.work_counter import WorkCounter
from ingestd.delivery import DeliveryLimits, Dispatcher
from ingestd.delivery.drift import DriftChecker
from ingestd.intake import LookupFiles, PassReport, Reader, SourceSupervisor
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.mirror.sqlite.runs.intake_store import IntakeStore
from ingestd.process.redaction import mask_secrets
from ingestd.process.supervision import one_line
from ingestd.registry import connector_class
from ingestd.schedule import Schedule, boot_time
from ingestd.sdk import Batch, Connector, Cursor, Partition, SourceBroken, SourceContext
from ingestd.settings.model import PipelineSettings, Settings
from ingestd.settings.secrets import PlaceholderError
from ingestd.settings.service import ServiceSettings
from ingestd.telemetry import Emit, Event
from ingestd.telemetry.catalogue.daemon import (
    KeyUnreadable,
    PipelineDue,
    PipelineRenamed,
    StateUnwritable,
    StateWritable,
)
from ingestd.telemetry.catalogue.drift import EarlierStateMissing, StateDoubted
from ingestd.telemetry.catalogue.intake import SourceNotice
from ingestd.telemetry.request_counts import RequestCounts
from ingestd.wire.writer import Writer


class Assembly(msgspec.Struct, frozen=True, kw_only=True):
    """All parts of a daemon, connected. Nothing reads or sends before the ``run`` of a part is awaited."""

    mirror: SqliteMirror
    client: ServiceClient
    request_counts: RequestCounts
    reconfigurer: Reconfigurer
    supervisor: SourceSupervisor
    dispatcher: Dispatcher
    schedule: Schedule
    command_handler: CommandHandler
    reloader: Reloader
    notices: DaemonNotices
    retention: RejectedRetention
    ownership: OwnershipKeeper
    drift_queue: DriftQueue
    drift_schedule: Schedule
    part_supervisor: PartSupervisor
    passes: SourcePasses

    @property
    def configuration(self) -> Configuration:
        """The configuration in use; a reload replaces it."""
        return self.reconfigurer.configuration

    @property
    def readers(self) -> tuple[Reader, ...]:
        """The readers of all pipelines."""
        return self.supervisor.readers


@asynccontextmanager
async def assemble(configuration: Configuration, *, emit: Emit, until: float | None = None) -> AsyncIterator[Assembly]:
    """Connect the parts. On exit close them in reverse order: connectors, client, state file.

    ``until``: see `SourceContext`.

    Raises:
        MirrorBusy: another process holds the state file.
        MirrorFull: the state file can't be opened now; a later call may succeed.
        MirrorNewer, MirrorCorrupt, MirrorError: the state file can't be used.
    """
    settings = configuration.settings
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        mirror = await asyncio.to_thread(SqliteMirror.open, settings.state)
        stack.push_async_callback(asyncio.to_thread, mirror.close)
        mirror.on_unwritable = lambda sentence: emit(StateUnwritable(sentence=sentence))
        mirror.on_writable = lambda: emit(StateWritable())
        await asyncio.to_thread(remove_unused, settings.state, [pipeline.name for pipeline in settings.pipelines])
        # Only configured pipelines own keys; removed ones release theirs.
        await asyncio.to_thread(_activate, settings, mirror.intake, emit)
        request_counts = RequestCounts()
        on_behind = partial(_note_behind, mirror, lambda event: emit_and_note(event))  # noqa: PLW0108 - it is made below
        writer = RisingWriter(mirror.sequence.writer, on_behind=on_behind)
        client = connect_service(settings, emit=emit, counts=request_counts, writer=writer)
        checker = DriftChecker(
            mirror=mirror.delivery,
            drift=mirror.drift,
            client=client,
            emit=emit,
            missing_sink=settings.service.missing_sink,
        )
        stack.push_async_callback(checker.aclose)
        retention = RejectedRetention(settings.rejected, rejected=mirror.rejected, emit=emit)
        part_supervisor = PartSupervisor(mirror.failed_parts, emit=emit, now=time.time, random=random.random)
        ownership = OwnershipKeeper(
            pipelines=settings.pipelines, status=mirror.status, check=checker.check, now=time.time, random=random.random
        )
        if mirror.sequence.notice:
            await _report_doubts(mirror, emit, mirror.sequence.notice)

        work = WorkCounter()

        def emit_and_note(event: Event) -> None:
            emit(event)
            retention.note_event(event)
            work.note_event(event)
            ownership.note_event(event)

        passes = SourcePasses()

        def note_pass(report: PassReport) -> None:
            passes.note(report)
            if ownership.waits_for(report.pipeline):
                _on_loop(loop, lambda: ownership.note_pass(report))

        create = _Factory(
            mirror.intake,
            emit=emit_and_note,
            on_pass=note_pass,
            request_counts=request_counts,
            writer=writer,
            until=until,
            wake=lambda name: supervisor.wake(name),  # noqa: PLW0108 - the supervisor is created below
            files_read=FilesRead(lambda: reconfigurer.configuration),
        )
        readers = [create.reader_or_report(configuration, pipeline) for pipeline in settings.pipelines]
        connectors = {reader.pipeline: reader.connector for reader in readers}
        supervisor = SourceSupervisor(
            readers,
            emit=emit,
            random=random.random,
            keep_running=part_supervisor,
            scheduled=reading_timings(settings).keys(),
        )
        stack.push_async_callback(supervisor.aclose)
        mirror.delivery.columns_of = lambda pipeline, key, member: (
            reader.columns_of(key, member) if (reader := supervisor.reader(pipeline)) is not None else ()
        )
        dispatcher = Dispatcher(
            mirror=mirror.delivery,
            client=client,
            emit=emit_and_note,
            now=time.time,
            random=random.random,
            on_acknowledged=supervisor.on_acknowledged,
            keep_running=part_supervisor,
            limits=delivery_limits(settings),
            checks_sinks=True,
        )
        schedule = Schedule(
            reading_timings(settings),
            wake=partial(_wake_due, supervisor, emit),
            last_run_at=last_runs(mirror.status),
            now=time.time,
        )
        drift_schedule = Schedule(
            drift_timings(settings),
            wake=lambda name: drift_queue.add(name),  # noqa: PLW0108 - the queue is created below
            last_run_at=last_checks(mirror.status, drift_timings(settings)),
            now=time.time,
        )
        reconfigurer = Reconfigurer(
            configuration,
            create=create,
            connectors=connectors,
            mirror=mirror,
            supervisor=supervisor,
            dispatcher=dispatcher,
            checker=checker,
            ownership=ownership,
            retention=retention,
            schedule=schedule,
            drift_schedule=drift_schedule,
            emit=emit,
        )

        def is_scheduled(name: str) -> bool:
            return name in reading_timings(reconfigurer.configuration.settings)

        reloader = Reloader(reconfigurer, emit=emit)
        notices = DaemonNotices(mirror, supervisor, reloader)
        command_handler = CommandHandler(
            pipelines=lambda: reconfigurer.configuration.settings.pipelines,
            rejected=mirror.rejected,
            runs=mirror.intake,
            held_runs=mirror.status.held_runs,
            checker=checker,
            request_reading=lambda name: supervisor.remap(name, now=not is_scheduled(name)),
            cursors=CursorMover(
                keeper=mirror.cursors,
                reader=mirror.status,
                connectors=connectors,
                between_passes=supervisor.between_passes,
                read_again=lambda name: supervisor.remap(name, now=not is_scheduled(name)),
                read=lambda name: None if is_scheduled(name) else supervisor.wake(name),
                read_now=supervisor.wake,
                held_runs=mirror.status.held_runs,
                emit=emit,
            ),
            reloader=reloader,
            explain=lambda request: explain(
                connectors,
                request,
                unacknowledged=lambda pipeline, partition: (
                    reader.unacknowledged(partition) if (reader := supervisor.reader(pipeline)) is not None else None
                ),
                failure=lambda pipeline: notices.unwritable() or passes.failure(pipeline),
            ),
            status=lambda as_json: format_status(
                compile_status(
                    mirror.status,
                    reconfigurer.configuration,
                    pid=os.getpid(),
                    notices=notices.every,
                    health=supervisor.health,
                    since_start=work.counts(),
                ),
                as_json=as_json,
            ),
            notices=notices.every,
            health=supervisor.health,
            emit=emit,
        )
        drift_queue = DriftQueue(command_handler)
        # The intake commits in threads; the dispatcher belongs to the event loop.
        mirror.on_pending = lambda sink: _on_loop(loop, partial(dispatcher.wake, sink))
        mirror.on_acknowledged = lambda: _on_loop(loop, lambda: _on_acknowledged(dispatcher, supervisor))
        yield Assembly(
            mirror=mirror,
            client=client,
            request_counts=request_counts,
            reconfigurer=reconfigurer,
            supervisor=supervisor,
            dispatcher=dispatcher,
            schedule=schedule,
            command_handler=command_handler,
            reloader=reloader,
            notices=notices,
            retention=retention,
            ownership=ownership,
            drift_queue=drift_queue,
            drift_schedule=drift_schedule,
            part_supervisor=part_supervisor,
            passes=passes,
        )


async def _note_behind(mirror: SqliteMirror, emit: Emit, newest: Writer) -> None:
    """Doubt every sink, because the service has received a newer request than the state file can know."""
    await _report_doubts(mirror, emit, await asyncio.to_thread(mirror.note_behind, newest))


async def _report_doubts(mirror: SqliteMirror, emit: Emit, sentence: str) -> None:
    doubts = len(await asyncio.to_thread(mirror.status.doubts))
    emit(StateDoubted(sentence=sentence, sinks=doubts) if doubts else EarlierStateMissing(sentence=sentence))


def _activate(settings: Settings, intake: IntakeStore, emit: Emit) -> None:
    """Activate the configured pipelines. One with another name keeps its state and its files. Blocks."""
    sources = source_digests(settings.pipelines)
    renamed = intake.activate(list(sources), sources=sources)
    move_kept(settings.state, renamed)
    for before, name in renamed:
        emit(PipelineRenamed(pipeline=name, before=before))


class _Factory:
    """Creates parts of a running daemon; implements `ingestd.daemon.reconfigurer.PartFactory`."""

    def __init__(
        self,
        mirror: IntakeStore,
        *,
        emit: Emit,
        on_pass: Callable[[PassReport], None],
        request_counts: RequestCounts,
        writer: RisingWriter,
        until: float | None,
        wake: Callable[[str], None],
        files_read: FilesRead,
    ) -> None:
        self._files_read = files_read
        self._until = until
        self._wake = wake
        self._mirror = mirror
        self._emit = emit
        self._on_pass = on_pass
        self._request_counts = request_counts
        self._writer = writer

    def reader(self, configuration: Configuration, pipeline: PipelineSettings) -> Reader:
        """See `PartFactory.reader`."""
        return self._reader(configuration, pipeline, open_connector)

    def reader_or_report(self, configuration: Configuration, pipeline: PipelineSettings) -> Reader:
        """See `PartFactory.reader_or_report`."""
        return self._reader(configuration, pipeline, open_or_report)

    def client(self, settings: Settings) -> ServiceClient:
        """See `PartFactory.client`."""
        return connect_service(settings, emit=self._emit, counts=self._request_counts, writer=self._writer)

    def limits(self, settings: Settings) -> DeliveryLimits:
        """See `PartFactory.limits`."""
        return delivery_limits(settings)

    def _reader(
        self, configuration: Configuration, pipeline: PipelineSettings, open_source: Callable[..., Connector]
    ) -> Reader:
        connector = open_source(
            configuration,
            pipeline,
            emit=self._emit,
            keeps=True,
            until=self._until,
            wake=self._wake,
            files_read=self._files_read,
        )
        return make_reader(
            configuration,
            pipeline,
            connector=connector,
            mapping=Mapping(pipeline.entries),
            mirror=self._mirror,
            emit=self._emit,
            folder=configuration.settings.state.parent,
            on_pass=self._on_pass,
        )


def _wake_due(supervisor: SourceSupervisor, emit: Emit, pipeline: str) -> None:
    emit(PipelineDue(pipeline=pipeline))
    supervisor.wake(pipeline)


def make_reader(
    configuration: Configuration,
    pipeline: PipelineSettings,
    *,
    connector: Connector,
    mapping: Mapping,
    mirror: IntakeStore,
    emit: Emit,
    folder: Path,
    on_pass: Callable[[PassReport], None] = lambda _: None,
) -> Reader:
    """Return the reader of a pipeline as its settings say. ``folder``: for temporary files."""
    return Reader(
        pipeline=pipeline.name,
        connector=connector,
        mapping=mapping,
        contract=pipeline.contract.contract() if pipeline.contract is not None else None,
        sink=pipeline.sink,
        mirror=mirror,
        emit=emit,
        guard=pipeline.guard,
        on_pass=on_pass,
        lookups=LookupFiles(mapping.table_sources, base=configuration.base),
        groups=Aggregation(pipeline.group) if pipeline.group is not None else None,
        folder=folder,
    )


def _on_acknowledged(dispatcher: Dispatcher, supervisor: SourceSupervisor) -> None:
    """Wake both sides after deferred acknowledgements are committed: sources are notified, and segments are free."""
    supervisor.on_acknowledged()
    dispatcher.wake()


def connect_service(
    settings: Settings,
    *,
    emit: Emit | None = None,
    counts: RequestCounts | None = None,
    writer: RisingWriter | None = None,
) -> ServiceClient:
    """Return a client of the configured service. It connects with its first request, and reads its key again after a 401.

    ``counts`` receives its requests. ``writer``: that of the state file; None: the client sends no writes.

    Raises:
        ConfigurationError: a certificate or its key can't be used.
    """
    service = settings.service
    try:
        return _client(service, emit or _ignore, counts, writer)
    except UnusableCertificate as unusable:
        file = str(service.ca_file or service.client_certificate)
        mistake = Mistake(file=file, line=0, column=0, key="service", sentence=str(unusable))
        raise ConfigurationError((mistake,)) from None


def _client(
    service: ServiceSettings, emit: Emit, counts: RequestCounts | None, writer: RisingWriter | None
) -> ServiceClient:
    def read_api_key() -> str | None:
        try:
            found = service.read_api_key().get_secret_value()
        except (PlaceholderError, ValueError) as error:
            emit(KeyUnreadable(sentence=str(error)))
            return None
        mask_secrets([found])
        return found

    return ServiceClient(
        url=service.url,
        api_key=service.api_key.get_secret_value(),
        client_id=service.client_id,
        timeouts=Timeouts(
            connect_seconds=service.connect_timeout_seconds,
            read_seconds=service.read_timeout_seconds,
            write_seconds=service.write_timeout_seconds,
        ),
        options=TransportOptions(
            proxy=service.proxy.get_secret_value() if service.proxy else None,
            ca_file=service.ca_file,
            client_certificate=service.client_certificate,
            client_key=service.client_key,
            client_key_password=service.client_key_password.get_secret_value() if service.client_key_password else None,
        ),
        retry_after_cap_seconds=service.retry_after_at_most_seconds,
        compress=service.compress == "auto",
        read_api_key=read_api_key,
        counts=counts,
        writer=writer,
    )


def delivery_limits(settings: Settings) -> DeliveryLimits:
    """Return the limits of requests to the service."""
    service = settings.service
    return DeliveryLimits(
        in_flight_at_most=service.requests_at_most,
        gather_seconds=service.gather_seconds,
        update_with=service.update_with,
        missing_sink=service.missing_sink,
    )


def _ignore(_: Event) -> None:
    """Drop an event."""


def open_connector(
    configuration: Configuration,
    pipeline: PipelineSettings,
    *,
    emit: Emit = _ignore,
    keeps: bool = False,
    until: float | None = math.inf,
    wake: Callable[[str], None] = lambda _: None,
    files_read: FilesRead | None = None,
) -> Connector:
    """Create the pipeline's connector. It opens its resources at the first call.

    ``keeps``: it may write files beside the state file, because this process holds the lock of the state file. ``until``,
    ``wake``: see `SourceContext`. ``files_read``: of all pipelines; None: of those in this configuration.
    """
    source, state = pipeline.source, configuration.settings.state
    files = files_read or FilesRead(lambda: configuration)

    def notify(sentence: str) -> None:
        emit(SourceNotice(pipeline=pipeline.name, sentence=sentence))

    context = SourceContext(
        pipeline=pipeline.name,
        base=configuration.base,
        now=time.time,
        steady=boot_time,
        log=notify,
        cache_folder=cache_folder(state, pipeline.name) if keeps else None,
        kept_folder=kept_folder(state, pipeline.name),
        unsaved=None if keeps else {},
        until=until,
        wake=wake,
        other_readers=lambda path: files.readers(path) - {pipeline.name},
    )
    return connector_class(source.connector)(source.options, context)


def open_or_report(
    configuration: Configuration,
    pipeline: PipelineSettings,
    *,
    emit: Emit,
    keeps: bool,
    until: float | None = math.inf,
    wake: Callable[[str], None] = lambda _: None,
    files_read: FilesRead | None = None,
) -> Connector:
    """Return the pipeline's connector, or one that reports at each pass why it can't be opened."""
    try:
        return open_connector(
            configuration, pipeline, emit=emit, keeps=keeps, until=until, wake=wake, files_read=files_read
        )
    except Exception as error:  # noqa: BLE001 - a plug-in's failure must not stop the other sources
        return _FailedConnector(error, SourceContext(pipeline=pipeline.name, base=configuration.base, now=time.time))


class _FailedConnector(Connector):
    def __init__(self, error: Exception, context: SourceContext) -> None:
        super().__init__(None, context)
        self._sentence = f"The connector could not be opened: {one_line(error)}. Please report it."

    def partitions(self) -> Iterable[Partition]:
        raise SourceBroken(self._sentence)

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:  # noqa: ARG002 - it never reads
        raise SourceBroken(self._sentence)


def _on_loop(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    if not loop.is_closed():  # a reader thread may commit its last batch later
        loop.call_soon_threadsafe(call)
