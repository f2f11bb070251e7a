"""The rate of requests that a path accepts."""

from __future__ import annotations


class RequestRate:
    """A bucket of tokens: ``per_second`` requests, and twice as many at once. ``now`` is monotonic seconds."""

    def __init__(self, per_second: float, *, now: float) -> None:
        self._per_second = per_second
        self._most = max(1.0, 2 * per_second)
        self._tokens = self._most
        self._at = now

    def wait(self, now: float) -> float:
        """Return the seconds until there is a token, 0 if there is one."""
        self._tokens = min(self._most, self._tokens + max(0.0, now - self._at) * self._per_second)
        self._at = now
        return max(0.0, (1 - self._tokens) / self._per_second)

    def take(self, now: float) -> float:
        """Take a token and return 0, or return the seconds until there is one."""
        wait = self.wait(now)
        if not wait:
            self._tokens -= 1
        return wait
