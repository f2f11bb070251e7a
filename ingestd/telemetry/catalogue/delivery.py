"""Events of the delivery. ``sink`` is the sink's configured address."""

from __future__ import annotations

from ingestd.telemetry.event import DebugEvent, ErrorEvent, Event, WarningEvent


class SinkFound(Event, frozen=True, kw_only=True):
    """A lane has found its sink in the service. ``bulk``: the announced bulk operation, empty for single requests."""

    sink: str
    sink_id: str
    bulk: str


class SinkCreated(Event, frozen=True, kw_only=True):
    """A lane has created its sink, with its first entries if the service accepts them."""

    sink: str
    sink_id: str
    entries: int


class SinkAdopted(Event, frozen=True, kw_only=True):
    """The entries of a sink were read into the mirror; ``acknowledged`` pending entries were already in the sink."""

    sink: str
    sink_id: str
    entries: int
    acknowledged: int


class SinkLost(WarningEvent, frozen=True, kw_only=True):
    """The service no longer has the sink; all its entries are pending again."""

    sink: str
    sink_id: str


class EntriesDelivered(DebugEvent, frozen=True, kw_only=True):
    """Entries were written and acknowledged; ``milliseconds``: duration of the last request."""

    sink: str
    entries: int
    operation: str
    milliseconds: float


class EntriesRejected(WarningEvent, frozen=True, kw_only=True):
    """The service rejected entries permanently. ``keys``: the keys of the first entries. ``reason``: of the first entry."""

    sink: str
    entries: int
    keys: tuple[str, ...]
    reason: str


class BatchNarrowed(Event, frozen=True, kw_only=True):
    """The service refused a request as too large; the lane now sends at most ``max_bytes`` in a request."""

    sink: str
    max_bytes: int


class OriginsRefused(WarningEvent, frozen=True, kw_only=True):
    """The service refused the origins of values; the lane sends the values without origins until its sink is resolved again."""

    sink: str
    sentence: str


class DeliveryDelayed(WarningEvent, frozen=True, kw_only=True):
    """A lane backs off for ``seconds`` after ``failures`` consecutive failures; nothing is lost."""

    sink: str
    sentence: str
    seconds: float
    failures: int
    since: str


class DeliveryPaused(ErrorEvent, frozen=True, kw_only=True):
    """A lane can't continue until a person acts. The lane retries in ``seconds``; nothing is lost."""

    sink: str
    sentence: str
    seconds: float
    since: str


class DeliveryResumed(Event, frozen=True, kw_only=True):
    """A lane that was delayed or paused since ``since`` delivers again."""

    sink: str
    since: str


class ServiceAway(WarningEvent, frozen=True, kw_only=True):
    """The service is unavailable: no lane sends for ``seconds``, then one test request. Nothing is lost."""

    service: str
    sentence: str
    seconds: float


class ServiceBack(Event, frozen=True, kw_only=True):
    """The service responds again, after ``seconds``."""

    service: str
    seconds: float


class RateLearned(Event, frozen=True, kw_only=True):
    """The service responded with 429; requests are limited to this rate, which rises slowly."""

    service: str
    requests_per_second: float
