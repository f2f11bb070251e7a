"""Rate limits of callers (contract G20): a continuously refilled token bucket for each caller, in this process."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from workspaced.core.problems import TooManyRequests

REMEMBERED = 20_000
"""The maximum number of callers that one limit remembers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """Whether a request is allowed, the RateLimit headers of the response, and after how many seconds to retry."""

    allowed: bool
    headers: tuple[tuple[str, str], ...]
    retry_seconds: int

    def require(self) -> None:
        """Raise TooManyRequests unless the request is allowed."""
        if not self.allowed:
            raise TooManyRequests(
                "rate_limited",
                "This caller sends more requests than it may. Send fewer requests, with more entries in each request.",
                retry_seconds=self.retry_seconds,
            )


UNLIMITED = Allowance(allowed=True, headers=(), retry_seconds=0)


class Limit(Protocol):
    """A rate limit of callers, in this process or of all hosts together."""

    async def admit(self, caller: str) -> Allowance:
        """Use a token, if there is one; return the allowance. Raises UnavailableProblem: the database can't be reached."""

    def look(self, caller: str) -> Allowance:
        """Return the allowance without using a token. The result may ignore tokens that other hosts have used."""


class Policy:
    """The settings of a rate limit. A caller's bucket gets ``per_minute`` tokens (0: no limit), and holds at most ``burst``."""

    def __init__(self, name: str, per_minute: float, burst: int) -> None:
        self.name = name
        self.per_minute = per_minute
        self.per_second = per_minute / 60
        self.burst = burst
        self._header = ("RateLimit-Policy", f'"{name}";q={per_minute};w=60')

    def allowance(self, tokens: float, *, allowed: bool) -> Allowance:
        """Return the allowance. ``t`` in its header: seconds until the bucket is full or, if it is empty, has a token again."""
        missing = (1 - tokens) if tokens < 1 else self.burst - tokens
        seconds = math.ceil(missing / self.per_second)
        rate = ("RateLimit", f'"{self.name}";r={int(tokens)};t={seconds}')
        return Allowance(allowed=allowed, headers=(self._header, rate), retry_seconds=max(seconds, 1))


class RateLimit:
    """A rate limit of this process: a token bucket for each caller."""

    def __init__(self, policy: Policy, *, clock: Callable[[], float]) -> None:
        """``clock`` returns monotonic seconds."""
        self._policy = policy
        self._per_second = policy.per_second
        self._burst = float(policy.burst)
        self._clock = clock
        # The tokens of each caller, and the time at which they were counted. The bucket that was used last is at the end.
        self._buckets: dict[str, tuple[float, float]] = {}

    async def admit(self, caller: str) -> Allowance:
        """See `Limit`. This method never waits."""
        return self.take(caller)

    def take(self, caller: str) -> Allowance:
        """Use a token, if there is one; return the allowance."""
        if not self._per_second:
            return UNLIMITED
        tokens, allowed = self.use(caller)
        return self._policy.allowance(tokens, allowed=allowed)

    def use(self, caller: str) -> tuple[float, bool]:
        """Use a token, if there is one; return the remaining tokens, and whether a token was used. The limit is above 0."""
        now = self._clock()
        tokens = self._tokens(caller, now)
        allowed = tokens >= 1
        if allowed:
            tokens -= 1
        self._buckets.pop(caller, None)
        self._buckets[caller] = (tokens, now)
        if len(self._buckets) > REMEMBERED:
            self._forget(now)
        return tokens, allowed

    def look(self, caller: str) -> Allowance:
        """Return the allowance without using a token."""
        if not self._per_second:
            return UNLIMITED
        tokens = self._tokens(caller, self._clock())
        return self._policy.allowance(tokens, allowed=tokens >= 1)

    def _tokens(self, caller: str, now: float) -> float:
        found = self._buckets.get(caller)
        if found is None:
            return self._burst
        tokens, at = found
        return min(self._burst, tokens + (now - at) * self._per_second)

    def _forget(self, now: float) -> None:
        """Delete full buckets, because a new bucket is full, too. If too many remain, keep the buckets that were used last."""
        kept = [(caller, found) for caller, found in self._buckets.items() if self._tokens(caller, now) < self._burst]
        self._buckets = dict(kept[-REMEMBERED // 2 :])
