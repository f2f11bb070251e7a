"""The request rate that a service accepts: announced in headers, requested by Retry-After, or learned from refusals.

If the service announces its limit (``RateLimit-Policy`` and ``RateLimit``), the state is a copy of the service's token bucket.
Otherwise the rate is learned: the number of accepted requests per second, from the end of one wait to the end of the next wait.
After a refusal a lower rate is used, which then grows slowly until the next refusal. Times are monotonic seconds.
"""

from __future__ import annotations

import re

import msgspec
from msgspec.structs import replace

_PARAMETER = re.compile(r"\b(?P<name>q|w|r|t|limit|remaining|reset)\s*=\s*(?P<value>\d{1,12})\b")

BELOW_THE_LIMIT = 0.9
"""The fraction of the accepted rate that is used after a refusal."""

MIN_KEPT = 0.8
"""The least fraction of a learned rate that is kept after a refusal. If this rate is too high, the next refusal lowers it."""

GROWTH_NEAR_THE_LIMIT = 0.01
GROWTH_BEYOND_THE_LIMIT = 0.10
"""The growth of a learned rate per second, as a fraction: up to the rate of the last refusal, and above that rate."""

BEYOND_THE_LIMIT = 1.05

MIN_ACCEPTED = 3
"""The least number of responses from which a rate is learned."""

WINDOW_SECONDS = 10.0
"""The longest time for which responses are counted, in seconds; then the count starts again."""

BURST_SECONDS = 0.05
"""The size of a burst, in seconds of a learned rate. A service that counts in short windows would refuse a larger burst."""


class Announced(msgspec.Struct, frozen=True, kw_only=True):
    """The limit in a response: ``remaining`` requests for ``reset_seconds``, and ``quota`` in each ``window_seconds``."""

    remaining: int | None = None
    reset_seconds: float | None = None
    quota: int | None = None
    window_seconds: float | None = None

    @property
    def per_second(self) -> float | None:
        """The sustained rate; None if it is not announced."""
        if self.quota and self.window_seconds:
            return self.quota / self.window_seconds
        return None


def parse_rate_limit(policy: str | None, state: str | None) -> Announced | None:
    """Parse the headers ``RateLimit-Policy`` and ``RateLimit``, in the form of the IETF draft since 2024 or in its older form.

    Return None if the headers can't be parsed. If there are several policies, the first is used.
    """
    if not policy and not state:
        return None
    stated = _parameters(state)
    policies = _parameters(policy)
    # The older form: "RateLimit: limit=100, remaining=50, reset=5", with the policy "100;w=60".
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
    """The known rate limit of one service. ``per_second``: None if no limit is known.

    ``tokens``: the number of tokens at the time ``at`` of the last request. ``not_before``: the end of a wait that the service
    requested. ``accepted``: the number of accepted requests since the time ``since``. ``ceiling``: the rate at the last
    refusal. ``announced``: the service announces its limit.
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
        """Return the seconds until the next request may be sent; 0: now."""
        wait = max(0.0, self.not_before - now)
        if self.per_second is None:
            return wait
        lacking = 1.0 - self._tokens(now)
        # After a refusal, tokens are added only after the requested wait.
        return max(wait, max(0.0, self.at - now) + lacking / self.per_second) if lacking > 1e-9 else wait

    def after_request(self, now: float) -> Rate:
        """Return the state after a request was sent."""
        counted = self
        if self.since is None or now - self.since > WINDOW_SECONDS:
            # Requests accepted long ago, with pauses between them, would give a rate that is too low.
            counted = replace(self, since=now, accepted=0)
        if self.per_second is None:
            return counted
        return replace(_grow(counted, now), tokens=self._tokens(now) - 1.0, at=now)

    def after_response(self, announced: Announced | None, *, in_flight: int, now: float) -> Rate:
        """Return the state after a response that is not a refusal. ``in_flight``: the number of other requests in flight."""
        counted = replace(self, accepted=self.accepted + 1)
        return _apply_announced(counted, announced, in_flight=in_flight, now=now) if announced is not None else counted

    def after_refusal(
        self, announced: Announced | None, *, retry_after_seconds: float | None, in_flight: int, now: float
    ) -> Rate:
        """Return the state after a 429. Refusals of requests that were in flight together count once."""
        wait = retry_after_seconds
        if wait is None:
            reset = announced.reset_seconds if announced is not None and announced.remaining == 0 else None
            wait = 1.0 if reset is None else reset
        until = max(self.not_before, now + wait)
        if announced is not None and announced.per_second is not None:
            known = replace(self, not_before=until, accepted=0, since=until)
            return _apply_announced(known, announced, in_flight=in_flight, now=now)
        if not wait or self.since is None or self.since > now or self.accepted < MIN_ACCEPTED:
            # No rate can be learned from a service that requests an immediate retry.
            return replace(self, not_before=until)
        measured = self.accepted / max(until - self.since, 1e-3)
        kept = measured
        if self.per_second is not None:
            # The measured time includes the wait, so after few requests the measured rate would be much too low.
            kept = min(max(measured, self.per_second * MIN_KEPT), self.per_second)
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


def _apply_announced(state: Rate, announced: Announced, *, in_flight: int, now: float) -> Rate:
    """Return the state of the service's token bucket after all requests in flight have arrived."""
    rate = announced.per_second
    if announced.remaining is None:
        return state
    left = float(announced.remaining - in_flight)
    if rate is None:
        if not announced.reset_seconds:
            return state
        # No policy is announced: the remaining requests are spread until the reset.
        rate = max(announced.remaining, 1) / announced.reset_seconds
    burst = max(float(announced.quota or 1), left, 1.0)
    return replace(state, per_second=rate, tokens=min(left, burst), burst=burst, at=now, ceiling=None, announced=True)


def _grow(state: Rate, now: float) -> Rate:
    """Return the state with a slightly higher learned rate."""
    if state.announced or state.per_second is None or state.ceiling is None:
        return state
    is_beyond = state.per_second > state.ceiling * BEYOND_THE_LIMIT
    part = GROWTH_BEYOND_THE_LIMIT if is_beyond else GROWTH_NEAR_THE_LIMIT
    higher = state.per_second * (1 + part * min(max(0.0, now - state.at), 1.0))
    return replace(state, per_second=higher, burst=max(1.0, higher * BURST_SECONDS))
