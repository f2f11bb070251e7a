"""Metrics in the format that a client requests."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector


class _FixedCollector(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterable[Metric]:
        return self._families


def exposition(families: Iterable[Metric], *collectors: Collector, accept: str) -> tuple[bytes, str]:
    """Return all metrics in the format that the header ``accept`` requests, and the media type of this format.

    If the header names no known format, or a version that is no number, the format is text.
    """
    registry = CollectorRegistry()
    for collector in (*collectors, _FixedCollector(families)):
        registry.register(collector)
    try:
        encode, content_type = choose_encoder(accept)
    except (TypeError, ValueError):  # the library expects that the parts of a version, such as "1.0.0", are numbers
        encode, content_type = choose_encoder("")
    return encode(registry), content_type
