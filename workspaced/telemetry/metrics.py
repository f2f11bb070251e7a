"""Counters and histograms of events in the service. No label is an id, key, path or address."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_REQUEST_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_COMMIT_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)
_GROUP_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_ATTEMPT_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15)


class Metrics:
    """One application's counters, in ``registry``. Every method may be called from any thread."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        counter = partial(Counter, registry=registry)
        gauge = partial(Gauge, registry=registry)
        histogram = partial(Histogram, registry=registry)
        self._requests = counter(
            "workspaced_http_requests",
            "Requests that ended; status 0: the caller disconnected before the response.",
            ("operation", "method", "status"),
        )
        self._seconds = histogram(
            "workspaced_http_request_duration_seconds",
            "From the head of the request to the end of the response.",
            ("operation",),
            buckets=_REQUEST_SECONDS,
        )
        self._in_flight = gauge("workspaced_http_requests_in_flight", "Requests in progress.")
        self._connections = gauge("workspaced_http_connections", "Open connections.")
        self._connections_closed = counter(
            "workspaced_http_connections_closed",
            "Connections that were refused, or closed because a client missed a deadline or a limit.",
            ("reason",),
        )
        self._refusals = counter("workspaced_http_refusals", "Requests refused, by the problem's code.", ("code",))
        self._authentication_failures = counter("workspaced_authentication_failures", "Invalid API keys.", ("reason",))
        self._commit_seconds = histogram(
            "workspaced_commit_duration_seconds",
            "From the first statement of a shared transaction to its durable commit.",
            buckets=_COMMIT_SECONDS,
        )
        self._group_size = histogram(
            "workspaced_commit_group_size", "Writes that shared a transaction.", buckets=_GROUP_SIZES
        )
        self._entries = counter("workspaced_entries_written", "Entries of data sinks that were written.", ("outcome",))
        self._attempts = counter("workspaced_webhook_attempts", "Attempts to deliver an event.", ("outcome",))
        self._attempt_seconds = histogram(
            "workspaced_webhook_attempt_duration_seconds",
            "How long receivers took to respond.",
            buckets=_ATTEMPT_SECONDS,
        )
        self._maintenance_jobs = counter(
            "workspaced_maintenance_runs", "Runs of a maintenance job.", ("job", "outcome")
        )
        self._dropped = counter("workspaced_maintenance_dropped", "Records that a maintenance job removed.", ("job",))
        self._maintenance_succeeded_at = gauge(
            "workspaced_maintenance_last_success_timestamp_seconds",
            "When a maintenance job last succeeded, in seconds since 1970.",
            ("job",),
        )
        # Cached, because looking up a labelled counter costs more than counting.
        self._by_response: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._by_outcome: dict[str, Counter] = {}

    def begun(self) -> None:
        """Count a request that started."""
        self._in_flight.inc()

    def response_sent(self, operation: str, method: str, status: int, seconds: float) -> None:
        """Count a request that ended; ``operation`` is empty if no operation matched."""
        self._in_flight.dec()
        if method not in _METHODS:
            method = "other"
        found = self._by_response.get((operation, method, status))
        if found is None:
            name = operation or "none"
            found = self._requests.labels(name, method, str(status)), self._seconds.labels(name)
            self._by_response[operation, method, status] = found
        found[0].inc()
        found[1].observe(seconds)

    def connections_changed(self, change: int) -> None:
        """Add ``change``, which may be negative, to the number of open connections."""
        self._connections.inc(change)

    def connection_closed(self, reason: str) -> None:
        """Count a connection that was rejected, or closed because of its client."""
        self._connections_closed.labels(reason).inc()

    def refused(self, code: str) -> None:
        """Count a rejected request by the code of its problem."""
        self._refusals.labels(code).inc()

    def authentication_failed(self, reason: str) -> None:
        """Count an invalid key."""
        self._authentication_failures.labels(reason).inc()

    def committed(self, callers: int, seconds: float) -> None:
        """Count a durable transaction that ``callers`` writes shared."""
        self._group_size.observe(callers)
        self._commit_seconds.observe(seconds)

    def wrote(self, counts: Mapping[str, int]) -> None:
        """Count written entries by their outcomes."""
        for outcome, count in counts.items():
            if not count:
                continue
            found = self._by_outcome.get(outcome)
            if found is None:
                found = self._by_outcome[outcome] = self._entries.labels(outcome)
            found.inc(count)

    def attempted(self, outcome: str, seconds: float) -> None:
        """Count an attempt to deliver."""
        self._attempts.labels(outcome).inc()
        self._attempt_seconds.observe(seconds)

    def maintenance_job_ended(self, job: str, outcome: str, dropped: int = 0) -> None:
        """Count a run of a maintenance job by its outcome: ``done``, ``postponed`` or ``failed``."""
        self._maintenance_jobs.labels(job, outcome).inc()
        if outcome == "done":
            self._dropped.labels(job).inc(dropped)
            self._maintenance_succeeded_at.labels(job).set(time.time())
