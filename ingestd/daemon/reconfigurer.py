"""Applies another configuration to a running daemon. Unchanged pipelines and, if possible, the lanes continue."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Iterable, MutableMapping, Sequence
from dataclasses import dataclass

from ingestd.client.service import ServiceClient
from ingestd.core.errors import ConfigurationError, IngestdError, MirrorFull, Mistake
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.configuration_changes import ConfigurationChanges, source_digests
from ingestd.daemon.kept_files import move_kept, remove_unused
from ingestd.daemon.ownership import OwnershipKeeper
from ingestd.daemon.parts import PartFactory, delivery_limits
from ingestd.daemon.rejected_retention import RejectedRetention
from ingestd.daemon.timings import drift_timings, last_checks, last_runs, reading_timings
from ingestd.delivery import Dispatcher
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
"""The time limit for the calls of ended sources. A source that hangs longer gets its new settings when its call returns."""


class ReloadImpossible(IngestdError):
    """The new configuration has no mistake, but can't be applied now. Nothing has changed."""


@dataclass(slots=True, kw_only=True)
class Reconfigurer:
    """Changes the parts of one daemon. Methods belong to the event loop's thread.

    ``configuration``: the configuration in use. ``connectors``: the connectors in use, by pipeline; other parts read this
    mapping. The lock ``pausing`` is held while the stored pauses are read and used.
    """

    configuration: Configuration
    create: PartFactory
    connectors: MutableMapping[str, Connector]
    mirror: SqliteMirror
    supervisor: SourceSupervisor
    dispatcher: Dispatcher
    checker: DriftChecker
    ownership: OwnershipKeeper
    retention: RejectedRetention
    schedule: Schedule
    drift_schedule: Schedule
    pausing: asyncio.Lock
    emit: Emit

    async def apply(self, found: Configuration, changes: ConfigurationChanges) -> tuple[tuple[str, str], ...]:
        """Use another configuration. Return the renamed pipelines as pairs of former and current name.

        Raises:
            ConfigurationError: a part can't be created as configured. Nothing has changed.
            ReloadImpossible: the change is not possible now. Nothing has changed.
            MirrorError: the state file can't be used.
        """
        readers = await asyncio.to_thread(self._open, found, changes.started)
        try:
            client = self.create.client(found.settings) if changes.service else None
        except ConfigurationError:
            await asyncio.to_thread(_close, readers)
            raise
        for name in changes.ended:
            self.connectors.pop(name, None)
        await self.supervisor.remove(changes.ended, wait_seconds=END_SECONDS)
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
            await self.dispatcher.use_service(client, delivery_limits(found.settings))
            await self.checker.use_client(client, missing_sink=found.settings.service.missing_sink)
        settings = found.settings
        # The pauses are read only now, because a pipeline may have been paused while this method waited.
        async with self.pausing:
            pauses = await asyncio.to_thread(self.mirror.status.pauses)
            # The rest of this method awaits nothing, so that no other part sees an incomplete change.
            self.configuration = found
            self.supervisor.use_pauses([pause.pipeline for pause in pauses])
            self._start(settings, readers)
        self.retention.use(settings.rejected)
        sharing = self.ownership.use(settings.pipelines)
        timings = reading_timings(settings)
        self.schedule.replace(timings, last_run_at=runs, restarted=changes.started)
        self.drift_schedule.replace(drift_timings(settings), last_run_at=checks, restarted=changes.started)
        # As after a restart, pipelines that share a sink with a changed pipeline are read completely.
        for name in sharing.intersection(changes.unchanged):
            self.supervisor.remap(name, now=name not in timings)
        for before, name in renamed:
            self.emit(PipelineRenamed(pipeline=name, before=before))
        return renamed

    def retry(self) -> SourcesRetried:
        """Retry waiting lanes and failed sources at once, except sources that asked for a wait."""
        self.dispatcher.retry_now()
        for connector in self.connectors.values():
            connector.resume()
        return self.supervisor.retry_now()

    def _open(self, found: Configuration, names: Collection[str]) -> list[Reader]:
        """Create the readers of pipelines. Blocks.

        Raises:
            ConfigurationError: a connector can't be created; all created connectors are closed.
        """
        readers: list[Reader] = []
        mistakes: list[Mistake] = []
        for pipeline in _chosen(found.settings, names):
            try:
                readers.append(self.create.reader(found, pipeline))
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
        """Store which pipelines are active.

        Return the renamed pipelines, and the times of the last runs and of the last checks of sinks. Blocks.
        """
        settings, status = found.settings, self.mirror.status
        sources = source_digests(settings.pipelines)
        renamed = tuple(self.mirror.intake.reconfigure(list(sources), sources=sources, ended=changes.ended))
        move_kept(settings.state, renamed)
        remove_unused(settings.state, sources)
        return renamed, dict(last_runs(status)), dict(last_checks(status, drift_timings(settings)))

    async def _undo(
        self, changes: ConfigurationChanges, readers: Sequence[Reader], client: ServiceClient | None
    ) -> None:
        """Start the ended pipelines again with their former settings, and close the connectors that were created."""
        await asyncio.to_thread(_close, readers)
        if client is not None:
            await client.aclose()
        former = self.configuration
        ended = _chosen(former.settings, changes.ended)
        self._start(former.settings, [self.create.reader_or_report(former, pipeline) for pipeline in ended])

    def _start(self, settings: Settings, readers: Sequence[Reader]) -> None:
        self.connectors.update((reader.pipeline, reader.connector) for reader in readers)
        self.supervisor.add(readers, scheduled=reading_timings(settings).keys())


def _chosen(settings: Settings, names: Collection[str]) -> list[PipelineSettings]:
    return [pipeline for pipeline in settings.pipelines if pipeline.name in names]


def _close(readers: Iterable[Reader]) -> None:
    """Close connectors that were never used. Blocks."""
    for reader in readers:
        with contextlib.suppress(
            Exception
        ):  # the plug-in may fail to close a connector that was never opened; this failure has no effect
            reader.connector.close()
