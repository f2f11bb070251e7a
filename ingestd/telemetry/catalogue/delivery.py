"""Events of the delivery. ``sink`` is the sink's configured address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from ingestd.telemetry.event import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkFound(Event):
    """A lane has found its sink in the service. ``bulk``: the announced bulk operation, empty for single requests."""

    sink: str
    sink_id: str
    bulk: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkCreated(Event):
    """A lane has created its sink, with its first entries if the service accepts them."""

    sink: str
    sink_id: str
    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkAdopted(Event):
    """The entries of a sink were read into the mirror; ``settled`` pending entries were already in the sink."""

    sink: str
    sink_id: str
    entries: int
    settled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkLost(Event):
    """The service no longer has the sink; all its entries are pending again."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"

    sink: str
    sink_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntriesDelivered(Event):
    """Entries were written and acknowledged; ``milliseconds``: duration of the last request."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "debug"

    sink: str
    entries: int
    operation: str
    milliseconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EntriesParked(Event):
    """The service rejected entries permanently; ``keys`` and ``reason`` of the first ones."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"

    sink: str
    entries: int
    keys: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchNarrowed(Event):
    """The service refused a request as too large; the lane now sends at most ``max_bytes`` in a request."""

    sink: str
    max_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryDelayed(Event):
    """A lane backs off for ``seconds`` after ``failures`` consecutive failures; nothing is lost."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"

    sink: str
    sentence: str
    seconds: float
    failures: int
    since: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryPaused(Event):
    """A lane can't continue until a person acts. It retries in ``seconds``; nothing is lost."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "error"

    sink: str
    sentence: str
    seconds: float
    since: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryResumed(Event):
    """A lane that was delayed or paused since ``since`` delivers again."""

    sink: str
    since: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAway(Event):
    """The service is unavailable: no lane sends for ``seconds``, then one test request. Nothing is lost."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"

    service: str
    sentence: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceBack(Event):
    """The service responds again, after ``seconds``."""

    service: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLearned(Event):
    """The service responded with 429; requests are limited to this rate, which rises slowly."""

    service: str
    requests_per_second: float
