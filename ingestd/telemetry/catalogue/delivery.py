"""What happens on the way from the mirror to the service. ``sink`` is the sink's address as configured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from ingestd.telemetry.event import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkFound(Event):
    """A lane has found its sink in the service. ``bulk``: what the service announces, empty for the single form."""

    sink: str
    sink_id: str
    bulk: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkCreated(Event):
    """A lane has created its sink, with its first entries where the service took them along."""

    sink: str
    sink_id: str
    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkAdopted(Event):
    """What a sink holds was read into the mirror; ``settled`` pending entries turned out to be there already."""

    sink: str
    sink_id: str
    entries: int
    settled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkLost(Event):
    """The service no longer has the sink: every entry of it is pending again."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"

    sink: str
    sink_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntriesDelivered(Event):
    """Entries were written and settled; ``milliseconds`` of the last request among them."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "debug"

    sink: str
    entries: int
    operation: str
    milliseconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EntriesParked(Event):
    """The service refused entries for good; ``keys`` and ``reason`` of the first few."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"

    sink: str
    entries: int
    keys: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchNarrowed(Event):
    """The service found a request too large; from now on the lane sends at most ``max_bytes`` at once."""

    sink: str
    max_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryDelayed(Event):
    """A lane backs off for ``seconds``, after ``failures`` in a row; nothing is lost."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"

    sink: str
    sentence: str
    seconds: float
    failures: int
    since: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryPaused(Event):
    """A lane can't go on before somebody acts, and asks again in ``seconds``; nothing is lost."""

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
    """No answer time and again: nobody asks for ``seconds``, then one request does for all. Nothing is lost."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"

    service: str
    sentence: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceBack(Event):
    """The service answers again, after ``seconds``."""

    service: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLearned(Event):
    """The service refused (429); from now on it is asked so often, and slowly more."""

    service: str
    requests_per_second: float
