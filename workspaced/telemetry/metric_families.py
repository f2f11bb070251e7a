"""Families of the service's metrics, for Prometheus."""

from __future__ import annotations

import platform
from collections.abc import Mapping

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from workspaced import __version__
from workspaced.telemetry.levels import Levels


def level_families(levels: Levels, *, now_ms: int) -> list[Metric]:
    """Return the metrics of the queues. ``now_ms``: the present time in milliseconds since 1970."""
    families: list[Metric] = [
        _gauge("workspaced_database_up", "Whether the database responded to this scrape.", float(levels.reached))
    ]
    if not levels.reached:
        return families
    oldest = (now_ms - levels.oldest_ms) / 1_000 if levels.oldest_ms is not None else 0.0
    families += [
        _by("workspaced_webhooks", "Webhooks, by whether they are enabled.", "state", levels.webhooks),
        _by(
            "workspaced_webhook_queue_deliveries",
            "Deliveries that wait for their first attempt (pending) or for another attempt (failed).",
            "state",
            levels.deliveries,
        ),
        _gauge(
            "workspaced_webhook_queue_oldest_age_seconds",
            "How long the oldest waiting delivery has waited.",
            max(oldest, 0.0),
        ),
        _by("workspaced_conversion_jobs", "Conversions of files that have not ended.", "state", levels.conversions),
    ]
    if levels.database_bytes is not None:
        families.append(
            _gauge("workspaced_database_size_bytes", "The size of the database on disk.", levels.database_bytes)
        )
    return families


def build_family(database: str) -> Metric:
    """Return the metric with the versions of the service and of Python, and the kind of the database."""
    labels = {"version": __version__, "python": platform.python_version(), "database": database}
    family = GaugeMetricFamily("workspaced_build_info", "The program; always 1.", labels=list(labels))
    family.add_metric(list(labels.values()), 1)
    return family


def _gauge(name: str, description: str, value: float) -> Metric:
    return GaugeMetricFamily(name, description, value=value)


def _by(name: str, description: str, label: str, values: Mapping[str, int]) -> Metric:
    family = GaugeMetricFamily(name, description, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family
