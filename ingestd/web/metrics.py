"""The metrics of the daemon, in the formats of Prometheus. They are collected at each scrape.

Events and the client of the service increment the counters. Gauges are read from the state file, the lanes and the connectors.
A label is the name of a pipeline, the address of a sink, or one of a fixed list of words; never a file, a key or an id.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import msgspec
from prometheus_client import ProcessCollector
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from ingestd.core.address import SinkAddress
from ingestd.core.pipeline_state import SEVERITY, PipelineState
from ingestd.daemon.pipeline_states import SourceNotices, StoredFacts
from ingestd.daemon.source_passes import SourcePasses
from ingestd.delivery.report import LaneReport
from ingestd.process.logs import dropped_lines
from ingestd.process.metric_format import exposition
from ingestd.standby.status import StandbyStatus
from ingestd.telemetry.export import DROPPED
from ingestd.telemetry.request_counts import Durations, RequestCounts
from ingestd.web.event_counts import EventTotals

Labels = TypeVar("Labels", bound=tuple[str, ...])


class MetricDescription(NamedTuple):
    """The type, the labels and the help text of a metric."""

    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    help: str


METRICS: Mapping[str, MetricDescription] = {
    "ingestd_build_info": MetricDescription("gauge", ("version", "python"), "The program; always 1."),
    "ingestd_pending_entries": MetricDescription("gauge", ("sink",), "Entries that wait for delivery."),
    "ingestd_oldest_pending_age_seconds": MetricDescription(
        "gauge", ("sink",), "How long the oldest pending entry has waited; 0 if none is pending."
    ),
    "ingestd_entries_delivered_total": MetricDescription("counter", ("sink",), "Entries that the service accepted."),
    "ingestd_entries_rejected_total": MetricDescription(
        "counter", ("sink",), "Entries that the service rejected permanently."
    ),
    "ingestd_pipeline_state": MetricDescription(
        "gauge",
        ("pipeline", "state"),
        f"1 for the current state of a pipeline: {', '.join(SEVERITY)}; 0 for the other states.",
    ),
    "ingestd_drift_keys": MetricDescription(
        "gauge",
        ("sink",),
        "Keys that others added, changed or removed, as found by the last check; 0 after all were repaired or adopted.",
    ),
    "ingestd_rejected": MetricDescription("gauge", ("pipeline",), "Stored rejections: records, entries and files."),
    "ingestd_requests_total": MetricDescription(
        "counter",
        ("operation", "outcome"),
        "Requests to the service by outcome: accepted, partly rejected, rejected, throttled or unreachable.",
    ),
    "ingestd_request_duration_seconds": MetricDescription(
        "histogram", (), "From the start of sending a request to the end of its response."
    ),
    "ingestd_throttled_total": MetricDescription(
        "counter", (), "Requests that the service refused because of their rate."
    ),
    "ingestd_retries_total": MetricDescription(
        "counter", ("sink",), "Waits of a lane after a failed request. Each wait ends with another request."
    ),
    "ingestd_key_expires_seconds": MetricDescription(
        "gauge",
        (),
        "The time until the API key of the service expires; absent if this is unknown, or more than 30 days.",
    ),
    "ingestd_lane_state": MetricDescription(
        "gauge",
        ("sink", "state"),
        "1 for the current state of a lane: idle, delivering, backing off or paused; 0 for the other states.",
    ),
    "ingestd_request_limit": MetricDescription("gauge", (), "Requests that may be in flight at the same time now."),
    "ingestd_runs_total": MetricDescription(
        "counter", ("pipeline", "result"), "Readings of partitions that ended: changed, unchanged, held or failed."
    ),
    "ingestd_run_duration_seconds": MetricDescription(
        "histogram", ("pipeline",), "Durations of complete readings of a partition."
    ),
    "ingestd_records_read_total": MetricDescription("counter", ("pipeline",), "Records of complete readings."),
    "ingestd_records_rejected_total": MetricDescription("counter", ("pipeline",), "Records that could not be used."),
    "ingestd_entries_read_total": MetricDescription(
        "counter", ("pipeline", "change"), "Entries of complete readings: created, updated, removed or unchanged."
    ),
    "ingestd_source_available": MetricDescription(
        "gauge", ("pipeline",), "1 if the last pass could read the source, else 0."
    ),
    "ingestd_source_mounted": MetricDescription(
        "gauge", ("pipeline",), "0 if the last pass found the mount point of the source's share empty, else 1."
    ),
    "ingestd_source_lag_seconds": MetricDescription(
        "gauge",
        ("pipeline",),
        "The time since the last complete pass over the source began; absent before the first such pass of this process.",
    ),
    "ingestd_source_connected": MetricDescription(
        "gauge", ("pipeline",), "For a source that keeps a connection: 1 if it is connected, else 0."
    ),
    "ingestd_source_behind_seconds": MetricDescription(
        "gauge",
        ("pipeline",),
        "The age of the oldest message of a connection that was not read yet; absent if the age is unknown.",
    ),
    "ingestd_source_dropped_total": MetricDescription(
        "counter", ("pipeline",), "Messages of a connection that were lost before the connector could read them."
    ),
    "ingestd_files_waiting": MetricDescription(
        "gauge",
        ("pipeline", "reason"),
        "Files that are not read in their current state: unstable, not ready, empty or unreadable.",
    ),
    "ingestd_held_runs": MetricDescription("gauge", ("pipeline",), "Runs that wait for an approval."),
    "ingestd_failed_parts": MetricDescription(
        "gauge", (), "Parts of the daemon that failed and wait for their restart."
    ),
    "ingestd_standby_active": MetricDescription(
        "gauge", (), "With --standby: 1 if this daemon is active, 0 if it is a standby."
    ),
    "ingestd_lease_epoch": MetricDescription("gauge", (), "With --standby: the epoch of the lease."),
    "ingestd_lease_left_seconds": MetricDescription(
        "gauge",
        (),
        "With --standby: the time until the lease ends, as known to this daemon; 0 if no daemon holds the lease.",
    ),
    "ingestd_shipment_age_seconds": MetricDescription(
        "gauge", (), "With --standby: the age of the newest shipment of the state file; absent without a shipment."
    ),
    "ingestd_standby_waiting_sinks": MetricDescription(
        "gauge", (), "With --standby: sinks that wait after a take-over until all of their sources have been read."
    ),
    "ingestd_state_size_bytes": MetricDescription("gauge", (), "The size of the state file with its write-ahead log."),
    "ingestd_state_writable": MetricDescription("gauge", (), "1 if the state file can be written, else 0."),
    "ingestd_log_lines_dropped_total": MetricDescription("counter", (), "Lines of the log that could not be written."),
    "ingestd_telemetry_dropped_total": MetricDescription(
        "counter", ("signal",), "Spans (traces) and log records (logs) that no collector of OpenTelemetry accepted."
    ),
}
"""All metrics by sample name (without histogram suffixes), except the ``ingestd_process_...`` metrics."""

LANE_STATES = ("idle", "delivering", "backing off", "paused")
RUN_RESULTS = ("changed", "unchanged", "held", "failed")


class DaemonLevels(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that one scrape has collected. ``now``: seconds since the epoch.

    ``pipelines``: the configured pipelines, with their sinks. ``stored`` is None if the state file could not be read; the
    gauges from ``stored`` and ``states`` are then absent.
    """

    now: float
    pipelines: Mapping[str, SinkAddress]
    counts: EventTotals
    requests: RequestCounts
    request_limit: int
    lanes: Sequence[LaneReport]
    passes: SourcePasses
    sources: SourceNotices
    state: Path
    unwritable: str
    stored: StoredFacts | None
    states: Sequence[PipelineState]
    standby: StandbyStatus | None = None


def daemon_exposition(levels: DaemonLevels, *, accept: str) -> tuple[bytes, str]:
    """Return all metrics of the daemon; see `exposition`."""
    return exposition(_families(levels), _process(), accept=accept)


def standby_exposition(found: StandbyStatus, *, accept: str) -> tuple[bytes, str]:
    """Return the metrics of a daemon that is a standby; see `exposition`."""
    return exposition((_build_info(), *_standby(found)), _process(), accept=accept)


def _process() -> ProcessCollector:
    return ProcessCollector(namespace="ingestd", registry=None)


def _build_info() -> Metric:
    return _family("ingestd_build_info", {(version("ingestd"), platform.python_version()): 1})


def _standby(found: StandbyStatus) -> Iterator[Metric]:
    yield _family("ingestd_standby_active", {(): int(found.role == "active")})
    yield _family("ingestd_lease_epoch", {(): found.epoch})
    yield _family("ingestd_lease_left_seconds", {(): found.lease_seconds})
    if found.shipment_age is not None:
        yield _family("ingestd_shipment_age_seconds", {(): found.shipment_age})
    yield _family("ingestd_standby_waiting_sinks", {(): len(found.waiting_sinks)})


def _families(levels: DaemonLevels) -> Iterator[Metric]:
    yield _build_info()
    if levels.standby is not None:
        yield from _standby(levels.standby)
    yield from _delivery(levels)
    yield from _sources(levels)
    yield _family("ingestd_state_size_bytes", {(): _size(levels.state)})
    yield _family("ingestd_state_writable", {(): int(not levels.unwritable)})
    yield _family("ingestd_log_lines_dropped_total", {(): dropped_lines()})
    dropped = {(str(signal),): count for signal, count in DROPPED.read().items()}
    yield _family("ingestd_telemetry_dropped_total", dropped)
    if levels.stored is not None:
        yield from _stored(levels, levels.stored)


def _stored(levels: DaemonLevels, stored: StoredFacts) -> Iterator[Metric]:
    waits = {
        (str(one.address),): max(0.0, levels.now - one.oldest_at) if one.oldest_at is not None else 0.0
        for one in stored.backlog
    }
    yield _family("ingestd_pending_entries", {(str(one.address),): one.pending for one in stored.backlog})
    yield _family("ingestd_oldest_pending_age_seconds", waits)
    drift = {(str(one.address),): stored.drift.get(one.address, 0) for one in stored.backlog}
    yield _family("ingestd_drift_keys", drift)
    names = dict.fromkeys([*levels.pipelines, *stored.rejected])
    yield _family("ingestd_rejected", {(name,): stored.rejected.get(name, 0) for name in names})
    held = [one.pipeline for one in stored.held]
    yield _family(
        "ingestd_held_runs", {(name,): held.count(name) for name in dict.fromkeys([*levels.pipelines, *held])}
    )
    yield _family("ingestd_failed_parts", {(): len(stored.failed_parts)})
    states = {(one.name, state): int(one.state == state) for one in levels.states for state in SEVERITY}
    yield _family("ingestd_pipeline_state", states)


def _delivery(levels: DaemonLevels) -> Iterator[Metric]:
    counts, requests = levels.counts, levels.requests
    sinks = [str(lane.sink) for lane in levels.lanes]
    for name, found in (
        ("ingestd_entries_delivered_total", counts.delivered),
        ("ingestd_entries_rejected_total", counts.refused),
        ("ingestd_retries_total", counts.retries),
    ):
        yield _family(name, {(sink,): found[sink] for sink in dict.fromkeys([*sinks, *found])})
    outcomes = dict(requests.outcomes)
    throttled = sum(count for (_, outcome), count in outcomes.items() if outcome == "throttled")
    yield _family("ingestd_requests_total", outcomes)
    yield _family("ingestd_throttled_total", {(): throttled})
    if (ends := requests.key_expires_at) is not None:
        yield _family("ingestd_key_expires_seconds", {(): ends - levels.now})
    yield _histogram("ingestd_request_duration_seconds", {(): requests.durations})
    states = {(str(lane.sink), state): int(lane.status == state) for lane in levels.lanes for state in LANE_STATES}
    yield _family("ingestd_lane_state", states)
    yield _family("ingestd_request_limit", {(): levels.request_limit})


def _sources(levels: DaemonLevels) -> Iterator[Metric]:
    counts, passes, names = levels.counts, levels.passes, levels.pipelines
    # The counters begin at 0, because Prometheus does not count the change from an absent sample to 1.
    yield _family("ingestd_runs_total", {(name, result): 0 for name in names for result in RUN_RESULTS} | counts.runs)
    yield _histogram("ingestd_run_duration_seconds", {(name,): one for name, one in counts.run_durations.items()})
    yield _family("ingestd_records_read_total", {(name,): counts.records[name] for name in names})
    yield _family("ingestd_records_rejected_total", {(name,): counts.records_rejected[name] for name in names})
    yield _family("ingestd_entries_read_total", counts.entries)
    yield _family("ingestd_source_available", {(name,): int(not passes.failure(name)) for name in names})
    yield _family("ingestd_source_mounted", {(name,): int(not passes.is_unmounted(name)) for name in names})
    complete = {name: at for name in names if (at := passes.complete_at(name)) is not None}
    yield _family("ingestd_source_lag_seconds", {(name,): max(0.0, levels.now - at) for name, at in complete.items()})
    connections = [one for one in levels.sources.health if one.stays_connected or one.connected_since is not None]
    yield _family(
        "ingestd_source_connected", {(one.pipeline,): int(one.connected_since is not None) for one in connections}
    )
    lags = {one.pipeline: one.lag_seconds for one in levels.sources.health if one.lag_seconds is not None}
    yield _family("ingestd_source_behind_seconds", {(name,): lag for name, lag in lags.items()})
    yield _family("ingestd_source_dropped_total", {(one.pipeline,): one.dropped for one in levels.sources.health})
    waiting = levels.sources.waiting.items()
    files = {(name, reason): count for name, counts in waiting for reason, count in counts.items()}
    yield _family("ingestd_files_waiting", files)


def _family(name: str, values: Mapping[Labels, float]) -> Metric:
    kind = GaugeMetricFamily if METRICS[name].kind == "gauge" else CounterMetricFamily
    family = kind(name, METRICS[name].help, labels=METRICS[name].labels)
    for labels, value in values.items():
        family.add_metric(labels, value)
    return family


def _histogram(name: str, values: Mapping[Labels, Durations]) -> Metric:
    family = HistogramMetricFamily(name, METRICS[name].help, labels=METRICS[name].labels)
    for labels, durations in values.items():
        family.add_metric(labels, durations.cumulative(), durations.seconds)
    return family


def _size(state: Path) -> int:
    size = 0
    for file in (state, state.with_name(f"{state.name}-wal")):
        try:
            size += file.stat().st_size
        except FileNotFoundError:  # the first write creates the write-ahead log
            continue
    return size
