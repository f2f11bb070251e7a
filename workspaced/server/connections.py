"""The connections of the service's listeners: their limits, and the log and the counters of closed connections."""

from __future__ import annotations

import resource
import time
from typing import Final

import structlog

from ingestd.process.http_server.limits import ConnectionLimits, Reason
from ingestd.process.http_server.registry import Connections
from workspaced.settings.model import WorkspacedSettings
from workspaced.telemetry.metrics import Metrics

RESERVED: Final = 64
"""Descriptors that clients' connections may not use: for the operators' listener, the log, the database and files."""

_MOST: Final = 1_048_576


def raise_descriptor_limit() -> int:
    """Raise the soft limit of open files to the hard limit; return the limit that now applies."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):  # not permitted: the present limit must suffice
            return soft
        return wanted
    return _MOST if soft == resource.RLIM_INFINITY else soft


def descriptor_limit() -> int:
    """Return the soft limit of open files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if soft == resource.RLIM_INFINITY else soft


def connection_capacity(wanted: int, descriptors: int) -> int:
    """Return how many of the ``wanted`` connections fit into the limit of open files; at least one.

    A connection takes one descriptor. `RESERVED` descriptors stay free, and `RESERVED` more for files that requests open.
    """
    return max(1, min(wanted, descriptors - 2 * RESERVED))


_SUMMARY_SECONDS: Final = 60.0
_ADMIN_CONNECTIONS: Final = 64


class ClosedConnections:
    """Counts closed connections, and logs at most one line a minute for each reason."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._logged_at: dict[Reason, float] = {}
        self._since: dict[Reason, int] = {}

    def note(self, reason: Reason, address: str) -> None:
        """Count a connection; ``count`` in the log is the number of connections since the last line."""
        self._metrics.connection_closed(reason)
        self._since[reason] = self._since.get(reason, 0) + 1
        now = time.monotonic()
        if now - self._logged_at.get(reason, -_SUMMARY_SECONDS) >= _SUMMARY_SECONDS:
            self._logged_at[reason] = now
            structlog.get_logger().warning(
                "connection_closed", reason=reason, address=address, count=self._since.pop(reason)
            )


def public_connections(settings: WorkspacedSettings, metrics: Metrics) -> Connections:
    """Return the connections of the listener for clients."""
    limits = settings.limits
    return Connections(
        ConnectionLimits(
            connections=connection_capacity(limits.connections, descriptor_limit()),
            connections_per_address=limits.connections_per_address,
            head_seconds=limits.head_seconds,
            idle_seconds=limits.idle_seconds,
            stall_seconds=limits.stall_seconds,
            least_bytes_per_second=limits.least_bytes_per_second,
            head_bytes=limits.head_bytes,
            header_lines=limits.header_lines,
            target_bytes=limits.target_bytes,
        ),
        is_proxy=settings.proxies.trusts,
        on_closed=ClosedConnections(metrics).note,
        on_count=metrics.connections_changed,
        first_reserved_descriptor=descriptor_limit() - RESERVED,
    )


def admin_connections() -> Connections:
    """Return the connections of the operators' listener: a small number, which may use the reserved descriptors."""
    return Connections(ConnectionLimits(connections=_ADMIN_CONNECTIONS))
