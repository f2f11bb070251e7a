"""How often a caller may come (contract G20): a bucket of tokens each, refilled all the time. Per process."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

_REMEMBERED = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What a caller has left, as the headers of the IETF's draft say it, and for how many seconds to stay away."""

    allowed: bool
    headers: tuple[tuple[str, str], ...]
    retry_seconds: int


_UNLIMITED = Allowance(allowed=True, headers=(), retry_seconds=0)


class RateLimit:
    """``per_minute`` tokens come back to each caller in a minute, at most ``burst`` are there at once; 0: no limit."""

    def __init__(self, name: str, *, per_minute: int, burst: int, clock: Callable[[], float]) -> None:
        """``clock`` tells seconds that never go back."""
        self._name = name
        self._policy = ("RateLimit-Policy", f'"{name}";q={per_minute};w=60')
        self._per_second = per_minute / 60
        self._burst = burst
        self._clock = clock
        self._buckets: dict[
            str, tuple[float, float]
        ] = {}  # tokens, and when they were counted; the last used at the end

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
        """Whether there is a token, using none."""
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
        """``t`` is when one more may come, or, where some may, when all are back."""
        missing = (1 - tokens) if tokens < 1 else self._burst - tokens
        seconds = math.ceil(missing / self._per_second)
        rate = ("RateLimit", f'"{self._name}";r={int(tokens)};t={seconds}')
        return Allowance(allowed=allowed, headers=(self._policy, rate), retry_seconds=max(seconds, 1))

    def _forget(self, now: float) -> None:
        """Full buckets are as good as none; where that is not enough, those that were not used for the longest time go."""
        kept = [(caller, found) for caller, found in self._buckets.items() if self._tokens(caller, now) < self._burst]
        self._buckets = dict(kept[-_REMEMBERED // 2 :])
