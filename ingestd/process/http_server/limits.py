"""The limits for the clients of one listener."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

KNOWN_CALLER: Final = "known_caller"
"""The application sets this name in the state of a request with a valid key."""

Reason: TypeAlias = Literal[
    "tls_failed",
    "bad_request",
    "head_too_large",
    "head_timeout",
    "body_too_slow",
    "not_reading",
    "evicted",
    "too_many_connections",
    "too_many_connections_of_address",
]
"""Why the server closed or refused a connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """The limits for clients. ``connections_per_address`` 0: no limit.

    A client must send a body and read a response with ``least_bytes_per_second``, measured over ``stall_seconds``.
    ``stalled_seconds``: a connection may be closed for a new connection if its client has made no progress for this time.
    ``idle_seconds``: the longest time between two requests of a connection. ``target_bytes``: the maximum size of path and
    query together.
    """

    connections: int
    connections_per_address: int = 0
    stalled_seconds: float = 1.0
    head_seconds: float = 15.0
    idle_seconds: float = 75.0
    stall_seconds: float = 20.0
    least_bytes_per_second: int = 512
    head_bytes: int = 32_768
    header_lines: int = 100
    target_bytes: int = 8_192
