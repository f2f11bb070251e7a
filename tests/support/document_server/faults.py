"""Faults that a test can inject instead of a correct response."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """Respond with a status and apply nothing."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b'{"error":"Failure requested by the test"}'


@dataclass(frozen=True, slots=True, kw_only=True)
class DropBefore:
    """Close the connection before the request is applied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DropAfter:
    """Apply the request durably, and close the connection without a response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """Apply the request, and respond after ``seconds``, or at `DocumentServer.end_delays`."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Garbage:
    """Respond with a body that a proxy might send, and apply nothing."""

    status: int = 200
    body: bytes = b"<html><body>Please sign in</body></html>"
    content_type: str = "text/html"


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncate:
    """Apply the request, announce the whole response, send half of it and close the connection."""


Fault: TypeAlias = Refuse | DropBefore | DropAfter | Delay | Garbage | Truncate
