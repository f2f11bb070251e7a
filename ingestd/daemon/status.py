"""The status of the daemon, as values."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping

import msgspec

from ingestd.core.pipeline_state import PipelineState
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.pipeline_states import SourceNotices, derive_states, read_facts
from ingestd.intake.notice import OperatorNotice, SourceHealth
from ingestd.mirror.port import HeldRun
from ingestd.mirror.rejections import Forgotten, Rejection
from ingestd.mirror.reports import FailedPart, PipelinePause, PipelineStatus, SinkStatus
from ingestd.mirror.sqlite import Observer
from ingestd.standby.status import StandbyStatus
from ingestd.telemetry import Event
from ingestd.telemetry.catalogue.delivery import EntriesDelivered
from ingestd.telemetry.catalogue.intake import PartitionRead


class WorkCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Records by pipeline and delivered entries by sink. The names of the members are part of `ingestd status --json`."""

    records: Mapping[str, int]
    delivered: Mapping[str, int]


class WorkCounter:
    """Counts the work that events report. Any thread may report an event."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._records: Counter[str] = Counter()
        self._delivered: Counter[str] = Counter()

    def note_event(self, event: Event) -> None:
        """Count what the event reports."""
        with self._guard:
            match event:
                case PartitionRead():
                    self._records[event.pipeline] += event.records
                case EntriesDelivered():
                    self._delivered[event.sink] += event.entries

    def counts(self) -> WorkCounts:
        """Return the counts since the start."""
        with self._guard:
            return WorkCounts(records=dict(self._records), delivered=dict(self._delivered))


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """The status. ``pid``: the process that holds the state file; None if no daemon runs.

    ``exists``: False before the first run; all counts are then 0. ``forgotten``: rejections deleted because of the configured
    limits. ``failed_parts``: parts of the running daemon that failed and will restart. ``notices``: notices about sources for
    the operator, such as files that can't be moved. ``health``: the states of sources with a connection. ``notices`` and
    ``health`` are empty if no daemon runs. ``held``: runs that wait for an approval. ``paused``: the paused pipelines.
    ``since_start``: the work of the running daemon. ``states``: the state of each configured pipeline, in the order of the
    configuration. ``standby``: which daemon is active; None without `--standby`.
    """

    configuration: str
    state: str
    exists: bool
    pid: int | None
    pending: int
    rejected: int
    pipelines: tuple[PipelineStatus, ...]
    sinks: tuple[SinkStatus, ...]
    rejections: tuple[Rejection, ...]
    forgotten: Forgotten | None = None
    failed_parts: tuple[FailedPart, ...] = ()
    notices: tuple[OperatorNotice, ...] = ()
    health: tuple[SourceHealth, ...] = ()
    held: tuple[HeldRun, ...] = ()
    paused: tuple[PipelinePause, ...] = ()
    since_start: WorkCounts | None = None
    states: tuple[PipelineState, ...] = ()
    standby: StandbyStatus | None = None


_REJECTIONS_SHOWN = 20
"""The maximum number of rejections in the status, which has the newest rejections."""


def compile_status(
    mirror: Observer,
    configuration: Configuration,
    *,
    pid: int | None,
    sources: SourceNotices,
    since_start: WorkCounts | None = None,
    standby: StandbyStatus | None = None,
    with_sinks: bool = True,
) -> Status:
    """Return the status of an open state file that the process ``pid`` holds. Blocks.

    ``sources``: the facts that this process knows about the sources. ``with_sinks``: also return the counts of each sink, which
    requires a read of all entries.
    """
    pipelines = tuple(mirror.pipelines())
    facts = read_facts(mirror, rejected={one.name: one.rejected for one in pipelines}, runs=pid is not None)
    configured = configuration.settings.pipelines
    return Status(
        configuration=str(configuration.path),
        state=str(configuration.settings.state),
        exists=True,
        pid=pid,
        pending=mirror.pending(),
        rejected=mirror.rejected(),
        pipelines=pipelines,
        sinks=tuple(mirror.sinks()) if with_sinks else (),
        rejections=tuple(mirror.rejections(limit=_REJECTIONS_SHOWN)),
        forgotten=mirror.forgotten(),
        held=tuple(facts.held),
        paused=tuple(facts.pauses),
        failed_parts=tuple(facts.failed_parts),
        notices=sources.notices,
        health=sources.health,
        since_start=since_start,
        states=derive_states(facts, configured, sources),
        standby=standby,
    )
