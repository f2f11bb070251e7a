"""A circuit breaker: while the service is unreachable, no request is sent until a wait is over, then a single probe.

::

    closed ──FAILURES_TO_OPEN consecutive failures──▶ open ──the wait is over──▶ one probe is in flight
      ▲                                                ▲                            │
      └──────────── any response of the service ───────┼────────────────────────────┤
                                                       └──────── it fails ──────────┘

A failure is a request without a usable response, or a 503. Every other response, also a refusal, shows that the service runs.
While the breaker is open, entries stay pending.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from ingestd.core.backoff import Backoff

FAILURES_TO_OPEN = 5

Decision: TypeAlias = Literal["send", "probe", "wait"]
"""send: the circuit is closed · probe: send one request for all lanes · wait: a probe is in flight or not due yet."""


class Breaker(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one service; times are monotonic seconds. ``until``: when a probe is due; None while closed."""

    failures: int = 0
    until: float | None = None
    probing: bool = False

    @property
    def is_open(self) -> bool:
        """True if the service is unreachable or overloaded, so that only a probe may be sent."""
        return self.until is not None

    def decide(self, now: float) -> Decision:
        """Return what a caller that wants to send a request may do."""
        if self.until is None:
            return "send"
        return "wait" if self.probing or now < self.until else "probe"

    def with_probe(self) -> Breaker:
        """Return the state while a probe is in flight."""
        return replace(self, probing=True)

    def without_probe(self) -> Breaker:
        """Return the state after a probe that sent no request; a further probe is allowed."""
        return replace(self, probing=False)

    def with_probe_due(self, now: float) -> Breaker:
        """Return the state with the next probe due now."""
        return replace(self, until=now) if self.until is not None else self

    def after_response(self) -> Breaker:
        """Return the state after a response, which shows that the service runs."""
        return self if self == Breaker() else Breaker()

    def after_failure(
        self, now: float, backoff: Backoff, jitter: float, *, retry_after_seconds: float | None = None
    ) -> Breaker:
        """Return the state after a failure.

        While the breaker is open, only a failed probe makes the wait longer. Failures of other requests are ignored.
        """
        if self.is_open and not self.probing:
            return self
        failures = self.failures + 1
        if failures < FAILURES_TO_OPEN:
            return replace(self, failures=failures)
        wait = max(backoff.delay(failures - FAILURES_TO_OPEN + 1, jitter), retry_after_seconds or 0.0)
        return Breaker(failures=failures, until=now + wait)
