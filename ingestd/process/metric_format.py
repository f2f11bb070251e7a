"""Metrics in the format that a client asks for."""

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
    """Return all metrics in the format that the header ``accept`` asks for, and its media type.

    A header with a version that is no number gets the text format, as a header without a known format does.
    """
    registry = CollectorRegistry()
    for collector in (*collectors, _FixedCollector(families)):
        registry.register(collector)
    try:
        encode, content_type = choose_encoder(accept)
    except (TypeError, ValueError):  # the library compares parts of a version with numbers, such as those of "1.0.0"
        encode, content_type = choose_encoder("")
    return encode(registry), content_type
