"""The change of a running daemon to another configuration. Unchanged pipelines and, if possible, the lanes continue."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Iterable, MutableMapping, Sequence
from typing import Protocol

from ingestd.client.service import ServiceClient
from ingestd.core.errors import ConfigurationError, MirrorFull, Mistake
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.configuration_changes import ConfigurationChanges
from ingestd.daemon.kept_files import move_kept, remove_unused
from ingestd.daemon.ownership import OwnershipKeeper
from ingestd.daemon.rejected_retention import RejectedRetention
from ingestd.daemon.reload import ReloadImpossible
from ingestd.daemon.source_digest import source_digests
from ingestd.daemon.timings import drift_timings, last_checks, last_runs, reading_timings
from ingestd.delivery import DeliveryLimits, Dispatcher
from ingestd.delivery.drift import DriftChecker
from ingestd.intake import Reader, SourcesRetried, SourceSupervisor
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.process.supervision import one_line
from ingestd.schedule import Schedule
from ingestd.sdk import Connector
from ingestd.settings.model import PipelineSettings, Settings
from ingestd.telemetry import Emit
from ingestd.telemetry.catalogue.daemon import PipelineRenamed

END_SECONDS = 10.0
"""The longest wait for the calls of ended sources. A source that hangs longer gets its new settings when its call returns."""


class PartFactory(Protocol):
    """Creates the parts that a configuration describes; the assembly implements it."""

    def reader(self, configuration: Configuration, pipeline: PipelineSettings) -> Reader:
        """Return a reader with a new connector; an exception of the connector is raised."""

    def reader_or_report(self, configuration: Configuration, pipeline: PipelineSettings) -> Reader:
        """Return a reader; if its connector can't be created, one that reports this at each pass."""

    def client(self, settings: Settings) -> ServiceClient:
        """Return a client of the service; a `ConfigurationError` says why it can't be created."""

    def limits(self, settings: Settings) -> DeliveryLimits:
        """Return the limits of delivery."""


class Reconfigurer:
    """Changes the parts of one daemon. Implements `ingestd.daemon.reload.Reconfigurable`.

    ``connectors``: the connectors in use by pipeline; other parts read them here. Methods belong to the event loop's thread.
    """

    def __init__(
        self,
        configuration: Configuration,
        *,
        create: PartFactory,
        connectors: MutableMapping[str, Connector],
        mirror: SqliteMirror,
        supervisor: SourceSupervisor,
        dispatcher: Dispatcher,
        checker: DriftChecker,
        ownership: OwnershipKeeper,
        retention: RejectedRetention,
        schedule: Schedule,
        drift_schedule: Schedule,
        emit: Emit,
    ) -> None:
        self.configuration = configuration
        self._create = create
        self._connectors = connectors
        self._mirror = mirror
        self._supervisor = supervisor
        self._dispatcher = dispatcher
        self._checker = checker
        self._ownership = ownership
        self._retention = retention
        self._schedule = schedule
        self._drift_schedule = drift_schedule
        self._emit = emit

    async def apply(self, found: Configuration, changes: ConfigurationChanges) -> tuple[tuple[str, str], ...]:
        """See `ingestd.daemon.reload.Reconfigurable.apply`."""
        readers = await asyncio.to_thread(self._open, found, changes.started)
        try:
            client = self._create.client(found.settings) if changes.service else None
        except ConfigurationError:
            await asyncio.to_thread(_close, readers)
            raise
        for name in changes.ended:
            self._connectors.pop(name, None)
        await self._supervisor.remove(changes.ended, wait_seconds=END_SECONDS)
        try:
            renamed, runs, checks = await asyncio.to_thread(self._activate, found, changes)
        except Exception as error:
            await self._undo(changes, readers, client)
            if isinstance(error, MirrorFull):
                raise ReloadImpossible(
                    f"The state file can't be written now, so the configuration was not changed: {error}. "
                    "Reload again when there is space."
                ) from error
            raise
        if client is not None:
            await self._dispatcher.use_service(client, self._create.limits(found.settings))
            await self._checker.use_client(client, missing_sink=found.settings.service.missing_sink)
        # From here to the end nothing waits, so that no other part sees half of the change.
        settings = found.settings
        self.configuration = found
        self._start(settings, readers)
        self._retention.use(settings.rejected)
        sharing = self._ownership.use(settings.pipelines)
        timings = reading_timings(settings)
        self._schedule.replace(timings, last_run_at=runs, restarted=changes.started)
        self._drift_schedule.replace(drift_timings(settings), last_run_at=checks, restarted=changes.started)
        # As after a restart, the pipelines beside a changed one are read completely.
        for name in sharing.intersection(changes.unchanged):
            self._supervisor.remap(name, now=name not in timings)
        for before, name in renamed:
            self._emit(PipelineRenamed(pipeline=name, before=before))
        return renamed

    def retry(self) -> SourcesRetried:
        """See `ingestd.daemon.reload.Reconfigurable.retry`."""
        self._dispatcher.retry_now()
        for connector in self._connectors.values():
            connector.resume()
        return self._supervisor.retry_now()

    def _open(self, found: Configuration, names: Collection[str]) -> list[Reader]:
        """Create the readers of pipelines. Blocks.

        Raises:
            ConfigurationError: a connector can't be created; none of them stays open.
        """
        readers: list[Reader] = []
        mistakes: list[Mistake] = []
        for pipeline in _chosen(found.settings, names):
            try:
                readers.append(self._create.reader(found, pipeline))
            except Exception as error:  # noqa: BLE001 - a plug-in's failure must not stop the daemon
                sentence = f"The connector could not be opened: {one_line(error)}. Please report it."
                key = f"pipelines.{pipeline.name}.source"
                mistakes.append(Mistake(file=str(found.path), line=0, column=0, key=key, sentence=sentence))
        if mistakes:
            _close(readers)
            raise ConfigurationError(tuple(mistakes))
        return readers

    def _activate(
        self, found: Configuration, changes: ConfigurationChanges
    ) -> tuple[tuple[tuple[str, str], ...], dict[str, float], dict[str, float]]:
        """Store which pipelines are active; return the renamed ones, and when pipelines ran and sinks were checked. Blocks."""
        settings, status = found.settings, self._mirror.status
        sources = source_digests(settings.pipelines)
        renamed = tuple(self._mirror.intake.reconfigure(list(sources), sources=sources, ended=changes.ended))
        move_kept(settings.state, renamed)
        remove_unused(settings.state, sources)
        return renamed, dict(last_runs(status)), dict(last_checks(status, drift_timings(settings)))

    async def _undo(
        self, changes: ConfigurationChanges, readers: Sequence[Reader], client: ServiceClient | None
    ) -> None:
        """Start the ended pipelines again with their former settings, and close what was created."""
        await asyncio.to_thread(_close, readers)
        if client is not None:
            await client.aclose()
        former = self.configuration
        ended = _chosen(former.settings, changes.ended)
        self._start(former.settings, [self._create.reader_or_report(former, pipeline) for pipeline in ended])

    def _start(self, settings: Settings, readers: Sequence[Reader]) -> None:
        self._connectors.update((reader.pipeline, reader.connector) for reader in readers)
        self._supervisor.add(readers, scheduled=reading_timings(settings).keys())


def _chosen(settings: Settings, names: Collection[str]) -> list[PipelineSettings]:
    return [pipeline for pipeline in settings.pipelines if pipeline.name in names]


def _close(readers: Iterable[Reader]) -> None:
    """Close connectors that were never used. Blocks."""
    for reader in readers:
        with contextlib.suppress(Exception):  # a plug-in's failure to close what it has not opened changes nothing
            reader.connector.close()
