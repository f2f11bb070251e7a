"""How often a service may be asked: what it announces, what Retry-After says, and what its refusals teach.

Where the service announces its limit (``RateLimit-Policy`` and ``RateLimit``), the bucket is kept as the service keeps it. Where
it only refuses, the rate is learned: what was accepted from one wait to the end of the next is what it takes; a little less
is sent then, and slowly more, until it refuses again. Times are seconds of one clock that never goes back.
"""

from __future__ import annotations

import re

import msgspec
from msgspec.structs import replace

_PARAMETER = re.compile(r"\b(?P<name>q|w|r|t|limit|remaining|reset)\s*=\s*(?P<value>\d{1,12})\b")

BELOW_THE_LIMIT = 0.9
"""After a refusal, so much of what was accepted is sent."""

LEAST_KEPT = 0.8
"""Of a learned rate, at least so much is kept when it is refused; one that is still too high is refused again."""

UP_A_SECOND_NEAR_THE_LIMIT = 0.01
UP_A_SECOND_BEYOND = 0.10
"""By which part the learned rate grows in a second: up to where it was last refused, and when that no longer holds."""

BEYOND_THE_LIMIT = 1.05

LEAST_ACCEPTED = 3
"""A rate is not learned from fewer answers than this."""

WINDOW_SECONDS = 10.0
"""Answers are counted for so long at the most before counting begins anew."""

BURST_SECONDS = 0.05
"""How much of a learned rate may go at once; it would be refused as a burst by a service that counts in short windows."""


class Announced(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer says: ``remaining`` requests in the next ``reset_seconds``; ``quota`` in every ``window_seconds``."""

    remaining: int | None = None
    reset_seconds: float | None = None
    quota: int | None = None
    window_seconds: float | None = None

    @property
    def per_second(self) -> float | None:
        """The rate that can be kept up; None where it is not told."""
        if self.quota and self.window_seconds:
            return self.quota / self.window_seconds
        return None


def parse_rate_limit(policy: str | None, state: str | None) -> Announced | None:
    """The headers ``RateLimit-Policy`` and ``RateLimit``, as in the IETF draft since 2024 (q, w, r, t) or as before.

    None where they announce nothing that can be understood. Of several policies the first counts.
    """
    if not policy and not state:
        return None
    stated = _parameters(state)
    policies = _parameters(policy)
    # The form before: RateLimit: limit=100, remaining=50, reset=5; its policy was "100;w=60".
    quota = policies.get("q", stated.get("limit"))
    found = Announced(
        remaining=stated.get("r", stated.get("remaining")),
        reset_seconds=stated.get("t", stated.get("reset")),
        quota=quota,
        window_seconds=policies.get("w"),
    )
    return found if found != Announced() else None


def _parameters(text: str | None) -> dict[str, int]:
    found: dict[str, int] = {}
    for match in _PARAMETER.finditer(text or ""):
        found.setdefault(match["name"], int(match["value"]))
    return found


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one service. ``per_second`` None: no limit is known.

    ``tokens`` as of ``at``, when a request was last sent; ``not_before``: a wait that the service asked for. ``accepted`` since
    ``since``; ``ceiling``: the rate that was last refused. ``announced``: the service tells its limit by itself.
    """

    per_second: float | None = None
    tokens: float = 0.0
    burst: float = 1.0
    at: float = 0.0
    not_before: float = 0.0
    since: float | None = None
    accepted: int = 0
    ceiling: float | None = None
    announced: bool = False

    def wait_seconds(self, now: float) -> float:
        """How long until the next request may go; 0: now."""
        wait = max(0.0, self.not_before - now)
        if self.per_second is None:
            return wait
        lacking = 1.0 - self._tokens(now)
        # After a refusal, tokens come back only from the end of its wait on.
        return max(wait, max(0.0, self.at - now) + lacking / self.per_second) if lacking > 1e-9 else wait

    def sent(self, now: float) -> Rate:
        """After a request was sent."""
        held = self
        if self.since is None or now - self.since > WINDOW_SECONDS:
            # What was accepted long ago, with pauses between, would make the service look slower than it is.
            held = replace(self, since=now, accepted=0)
        if self.per_second is None:
            return held
        return replace(_grown(held, now), tokens=self._tokens(now) - 1.0, at=now)

    def taken(self, announced: Announced | None, *, in_flight: int, now: float) -> Rate:
        """After an answer that was no refusal, with so many other requests still in flight."""
        counted = replace(self, accepted=self.accepted + 1)
        return _heard(counted, announced, in_flight=in_flight, now=now) if announced is not None else counted

    def refused(
        self, announced: Announced | None, *, retry_after_seconds: float | None, in_flight: int, now: float
    ) -> Rate:
        """After a 429. Those that were in flight together are one refusal."""
        wait = retry_after_seconds
        if wait is None:
            told = announced.reset_seconds if announced is not None and announced.remaining == 0 else None
            wait = 1.0 if told is None else told
        until = max(self.not_before, now + wait)
        if announced is not None and announced.per_second is not None:
            known = replace(self, not_before=until, accepted=0, since=until)
            return _heard(known, announced, in_flight=in_flight, now=now)
        if not wait or self.since is None or self.since > now or self.accepted < LEAST_ACCEPTED:
            # Who says "again at once" has no rate that could be learned.
            return replace(self, not_before=until)
        measured = self.accepted / max(until - self.since, 1e-3)
        kept = measured
        if self.per_second is not None:
            # The wait is part of what was measured: after a short count it would make the service look much slower.
            kept = min(max(measured, self.per_second * LEAST_KEPT), self.per_second)
        slower = max(kept * BELOW_THE_LIMIT, 0.01)
        return replace(
            self,
            per_second=slower,
            ceiling=kept,
            tokens=0.0,
            burst=max(1.0, slower * BURST_SECONDS),
            at=until,
            not_before=until,
            since=until,
            accepted=0,
            announced=False,
        )

    def _tokens(self, now: float) -> float:
        return min(self.burst, self.tokens + max(0.0, now - self.at) * (self.per_second or 0.0))


def _heard(state: Rate, announced: Announced, *, in_flight: int, now: float) -> Rate:
    """The service's own bucket as it is after all that is in flight has arrived."""
    rate = announced.per_second
    if announced.remaining is None:
        return state
    left = float(announced.remaining - in_flight)
    if rate is None:
        if not announced.reset_seconds:
            return state
        # No policy is told: what is left is spread until it begins anew.
        rate = max(announced.remaining, 1) / announced.reset_seconds
    burst = max(float(announced.quota or 1), left, 1.0)
    return replace(state, per_second=rate, tokens=min(left, burst), burst=burst, at=now, ceiling=None, announced=True)


def _grown(state: Rate, now: float) -> Rate:
    """A learned rate, a little higher."""
    if state.announced or state.per_second is None or state.ceiling is None:
        return state
    part = UP_A_SECOND_BEYOND if state.per_second > state.ceiling * BEYOND_THE_LIMIT else UP_A_SECOND_NEAR_THE_LIMIT
    higher = state.per_second * (1 + part * min(max(0.0, now - state.at), 1.0))
    return replace(state, per_second=higher, burst=max(1.0, higher * BURST_SECONDS))
