"""A breaker for a service that is away: nobody asks until a wait is over, then one does, and its answer counts for all.

::

    closed ──TRIPS failures in a row, none between──▶ open ──the wait is over──▶ one probe is out
      ▲                                                 ▲                            │
      └───────────── any answer of the service ─────────┼────────────────────────────┤
                                                        └──────── it fails ──────────┘

A failure is a request without a usable answer, and a 503. Every other answer, a refusal too, shows that the service is there.
Nothing is given up while the breaker is open: what waits, waits.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ingestd.core.backoff import Backoff

TRIPS = 5

Turn: TypeAlias = Literal["go", "probe", "wait"]
"""go: the service is there as far as is known · probe: one may ask, be the one · wait: until the probe is back or due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """The state of one service; times are seconds of one clock. ``until``: when a probe is due, None while closed."""

    failures: int = 0
    until: float | None = None
    probing: bool = False

    @property
    def open(self) -> bool:
        """The service is away."""
        return self.until is not None

    def turn(self, now: float) -> Turn:
        """What somebody who wants to ask may do."""
        if self.until is None:
            return "go"
        return "wait" if self.probing or now < self.until else "probe"

    def probed(self) -> Breaker:
        """Somebody is asking for all."""
        return dataclasses.replace(self, probing=True)

    def undecided(self) -> Breaker:
        """The probe ended without having asked; the next in line may."""
        return dataclasses.replace(self, probing=False)

    def due(self, now: float) -> Breaker:
        """The next probe is due now, whatever the wait was."""
        return dataclasses.replace(self, until=now) if self.until is not None else self

    def answered(self) -> Breaker:
        """The service is there."""
        return self if self == Breaker() else Breaker()

    def failed(
        self, now: float, backoff: Backoff, chance: float, *, retry_after_seconds: float | None = None
    ) -> Breaker:
        """No answer. While open, only the probe's failure makes the wait longer; stragglers of before change nothing."""
        if self.open and not self.probing:
            return self
        failures = self.failures + 1
        if failures < TRIPS:
            return dataclasses.replace(self, failures=failures)
        wait = max(backoff.delay(failures - TRIPS + 1, chance), retry_after_seconds or 0.0)
        return Breaker(failures=failures, until=now + wait)
