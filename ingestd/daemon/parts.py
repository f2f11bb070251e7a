"""Construction of the parts that a configuration describes: clients of the service, connectors and readers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ingestd.client.service import ServiceClient
from ingestd.client.transport import Timeouts, TransportOptions, UnusableCertificate
from ingestd.client.writer import RisingWriter
from ingestd.core.errors import ConfigurationError, Mistake
from ingestd.core.groups import Aggregation
from ingestd.core.mapping import Mapping
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.files_read import FilesRead
from ingestd.daemon.kept_files import cache_folder, kept_folder
from ingestd.delivery import DeliveryLimits
from ingestd.intake import LookupFiles, PassReport, Reader
from ingestd.mirror.sqlite.runs.intake_store import IntakeStore
from ingestd.process.redaction import mask_secrets
from ingestd.process.supervision import one_line
from ingestd.registry import connector_class
from ingestd.schedule import boot_time
from ingestd.sdk import Batch, Connector, Cursor, Partition, SourceBroken, SourceContext
from ingestd.settings.model import PipelineSettings, Settings
from ingestd.settings.secrets import PlaceholderError
from ingestd.telemetry import Emit, Event
from ingestd.telemetry.catalogue.daemon import KeyUnreadable
from ingestd.telemetry.catalogue.intake import SourceNotice
from ingestd.telemetry.request_counts import RequestCounts


def _ignore(_: Event) -> None:
    """Drop an event."""


def connect_service(
    settings: Settings,
    *,
    emit: Emit = _ignore,
    counts: RequestCounts | None = None,
    writer: RisingWriter | None = None,
) -> ServiceClient:
    """Return a client of the service. The client connects with its first request, and reads the API key again after a 401.

    ``counts`` counts the client's requests. ``writer``: the writer of the state file; None: the client sends no writes.

    Raises:
        ConfigurationError: a certificate or its key can't be used.
    """
    service = settings.service

    def read_api_key() -> str | None:
        try:
            found = service.read_api_key().get_secret_value()
        except (PlaceholderError, ValueError) as error:
            emit(KeyUnreadable(sentence=str(error)))
            return None
        mask_secrets([found])
        return found

    try:
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
                client_key_password=service.client_key_password.get_secret_value()
                if service.client_key_password
                else None,
            ),
            retry_after_cap_seconds=service.retry_after_at_most_seconds,
            compress=service.compress == "auto",
            read_api_key=read_api_key,
            counts=counts,
            writer=writer,
        )
    except UnusableCertificate as unusable:
        file = str(service.ca_file or service.client_certificate)
        mistake = Mistake(file=file, line=0, column=0, key="service", sentence=str(unusable))
        raise ConfigurationError((mistake,)) from None


def delivery_limits(settings: Settings) -> DeliveryLimits:
    """Return the delivery limits that the settings configure."""
    service = settings.service
    return DeliveryLimits(
        in_flight_at_most=service.requests_at_most,
        gather_seconds=service.gather_seconds,
        update_with=service.update_with,
        missing_sink=service.missing_sink,
        page=(settings.listen.url or "") if settings.listen is not None else "",
    )


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
    """Create the pipeline's connector. The connector opens its resources at the first call.

    ``keeps``: the connector may write files in folders next to the state file, because this process holds the state file's
    lock. ``until``, ``wake``: see `SourceContext`. ``files_read``: the files that all pipelines read; None: the files of
    the pipelines of ``configuration``.
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
    """Return the pipeline's connector.

    If it can't be opened, return a connector that reports the reason at each pass; see `open_connector`.
    """
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
    """Return the reader of a pipeline with its settings. ``folder``: the folder for temporary files."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFactory:
    """Creates parts of a running daemon. ``until``, ``wake``: see `SourceContext`."""

    mirror: IntakeStore
    emit: Emit
    on_pass: Callable[[PassReport], None]
    request_counts: RequestCounts
    writer: RisingWriter
    until: float | None
    wake: Callable[[str], None]
    files_read: FilesRead

    def reader(self, configuration: Configuration, pipeline: PipelineSettings) -> Reader:
        """Return a reader with a new connector. If the connector can't be created, raise its exception."""
        return self._reader(configuration, pipeline, open_connector)

    def reader_or_report(self, configuration: Configuration, pipeline: PipelineSettings) -> Reader:
        """Return a reader with a new connector. If the connector can't be created, the reader reports this at each pass."""
        return self._reader(configuration, pipeline, open_or_report)

    def client(self, settings: Settings) -> ServiceClient:
        """Return a client of the service; a `ConfigurationError` says why it can't be created."""
        return connect_service(settings, emit=self.emit, counts=self.request_counts, writer=self.writer)

    def _reader(
        self, configuration: Configuration, pipeline: PipelineSettings, open_source: Callable[..., Connector]
    ) -> Reader:
        connector = open_source(
            configuration,
            pipeline,
            emit=self.emit,
            keeps=True,
            until=self.until,
            wake=self.wake,
            files_read=self.files_read,
        )
        return make_reader(
            configuration,
            pipeline,
            connector=connector,
            mapping=Mapping(pipeline.entries),
            mirror=self.mirror,
            emit=self.emit,
            folder=configuration.settings.state.parent,
            on_pass=self.on_pass,
        )
