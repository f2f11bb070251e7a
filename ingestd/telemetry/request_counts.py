"""Counts and durations of requests, for metrics."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

REQUEST_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""The upper bounds of the buckets for durations."""


class Durations:
    """A histogram of durations. ``counts`` has a bucket for each of ``bounds``, and a bucket for all longer durations."""

    __slots__ = ("bounds", "counts", "seconds")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        """Count a duration."""
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.seconds += seconds

    def cumulative(self) -> list[tuple[str, int]]:
        """Return each bound as text with the number of durations up to it; the last bound is ``+Inf``."""
        total = 0
        found = []
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            total += count
            found.append((bound, total))
        return found


class RequestCounts:
    """Counts responses of one client by the names of operations and outcomes. One thread writes, any thread may read.

    ``key_expires_at``: when the API key expires, by the last response of the service, in seconds since the epoch. None: the key
    does not expire within 30 days, or the service announces no expiry.
    """

    def __init__(self) -> None:
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.durations = Durations(REQUEST_SECONDS)
        self.key_expires_at: float | None = None

    def add(self, operation: str, outcome: str, seconds: float) -> None:
        """Count a response, or an error instead of a response."""
        self.outcomes[operation, outcome] += 1
        self.durations.add(seconds)
