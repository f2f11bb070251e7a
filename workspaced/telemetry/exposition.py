"""The numbers as Prometheus reads them."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from workspaced import __version__
from workspaced.telemetry.levels import Levels


def exposition(collectors: Iterable[Collector], families: Iterable[Metric], *, accept: str) -> tuple[bytes, str]:
    """Everything the collectors have and the families, in the form that the header Accept asks for, and its type."""
    registry = CollectorRegistry()
    for collector in (*collectors, _Fixed(families)):
        registry.register(collector)
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


def level_families(levels: Levels, *, now_ms: int) -> list[Metric]:
    """How much there is of what waits, at ``now_ms`` milliseconds since 1970."""
    families: list[Metric] = [
        _gauge("workspaced_database_up", "Whether the database answered just now.", float(levels.reached))
    ]
    if not levels.reached:
        return families
    oldest = (now_ms - levels.oldest_ms) / 1_000 if levels.oldest_ms is not None else 0.0
    families += [
        _by("workspaced_webhooks", "Webhooks, by whether they are enabled.", "state", levels.webhooks),
        _by(
            "workspaced_webhook_queue_deliveries",
            "Deliveries that wait: for their first try (pending), for another one (failed).",
            "state",
            levels.deliveries,
        ),
        _gauge(
            "workspaced_webhook_queue_oldest_age_seconds", "How long the oldest of them has waited.", max(oldest, 0.0)
        ),
        _by("workspaced_conversion_jobs", "Conversions of files that are not done.", "state", levels.conversions),
    ]
    if levels.database_bytes is not None:
        families.append(
            _gauge("workspaced_database_size_bytes", "What the database takes on disk.", levels.database_bytes)
        )
    return families


def build_family(database: str) -> Metric:
    """Which program runs; ``database`` is its kind."""
    labels = {"version": __version__, "python": platform.python_version(), "database": database}
    family = GaugeMetricFamily("workspaced_build_info", "The program; always 1.", labels=list(labels))
    family.add_metric(list(labels.values()), 1)
    return family


def process_families(pids: Mapping[str, int]) -> list[Metric]:
    """CPU, memory and files of each worker process, by its name."""
    families: dict[str, Metric] = {}
    for worker, pid in pids.items():
        for family in ProcessCollector(namespace="workspaced", pid=lambda pid=pid: pid, registry=None).collect():  # type: ignore[misc]
            into = families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
            for sample in family.samples:
                into.add_sample(sample.name, {"worker": worker}, sample.value)
    return list(families.values())


def worker_families(*, wanted: int, live: int, restarts: int) -> list[Metric]:
    """How the processes under a parent are."""
    restarted = Metric("workspaced_worker_restarts", "Worker processes that were started again.", "counter")
    restarted.add_sample("workspaced_worker_restarts_total", {}, restarts)
    return [
        _by("workspaced_workers", "Worker processes.", "state", {"wanted": wanted, "live": live}),
        restarted,
    ]


def own_process() -> list[Metric]:
    """`process_families` of a service that is one process."""
    return process_families({"0": os.getpid()})


class _Fixed(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterable[Metric]:
        return self._families


def _gauge(name: str, told: str, value: float) -> Metric:
    return GaugeMetricFamily(name, told, value=value)


def _by(name: str, told: str, label: str, values: Mapping[str, int]) -> Metric:
    family = GaugeMetricFamily(name, told, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family
