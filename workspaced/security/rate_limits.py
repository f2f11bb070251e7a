"""Rate limits of callers (contract G20): a continuously refilled token bucket for each caller. Per process."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

_REMEMBERED = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """The rest of a caller's limit: whether a request is allowed, the RateLimit headers, and after how many seconds to retry."""

    allowed: bool
    headers: tuple[tuple[str, str], ...]
    retry_seconds: int


_UNLIMITED = Allowance(allowed=True, headers=(), retry_seconds=0)


class RateLimit:
    """``per_minute`` tokens are added for each caller in a minute, up to ``burst``; 0: no limit."""

    def __init__(self, name: str, *, per_minute: int, burst: int, clock: Callable[[], float]) -> None:
        """``clock`` returns monotonic seconds."""
        self._name = name
        self._policy = ("RateLimit-Policy", f'"{name}";q={per_minute};w=60')
        self._per_second = per_minute / 60
        self._burst = burst
        self._clock = clock
        # Tokens, and the time at which they were counted; the last used bucket is at the end.
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, caller: str) -> Allowance:
        """Use a token, if there is one."""
        if not self._per_second:
            return _UNLIMITED
        now = self._clock()
        tokens = self._tokens(caller, now)
        allowed = tokens >= 1
        if allowed:
            tokens -= 1
        self._buckets.pop(caller, None)
        self._buckets[caller] = (tokens, now)
        if len(self._buckets) > _REMEMBERED:
            self._forget(now)
        return self._allowance(tokens, allowed=allowed)

    def look(self, caller: str) -> Allowance:
        """Return the allowance without using a token."""
        if not self._per_second:
            return _UNLIMITED
        tokens = self._tokens(caller, self._clock())
        return self._allowance(tokens, allowed=tokens >= 1)

    def _tokens(self, caller: str, now: float) -> float:
        found = self._buckets.get(caller)
        if found is None:
            return float(self._burst)
        tokens, at = found
        return min(float(self._burst), tokens + (now - at) * self._per_second)

    def _allowance(self, tokens: float, *, allowed: bool) -> Allowance:
        """Return the allowance; ``t`` is the time until the next token; if there are tokens, until the bucket is full."""
        missing = (1 - tokens) if tokens < 1 else self._burst - tokens
        seconds = math.ceil(missing / self._per_second)
        rate = ("RateLimit", f'"{self._name}";r={int(tokens)};t={seconds}')
        return Allowance(allowed=allowed, headers=(self._policy, rate), retry_seconds=max(seconds, 1))

    def _forget(self, now: float) -> None:
        """Delete full buckets, because a new bucket is full. If too many remain, keep the buckets used last."""
        kept = [(caller, found) for caller, found in self._buckets.items() if self._tokens(caller, now) < self._burst]
        self._buckets = dict(kept[-_REMEMBERED // 2 :])
