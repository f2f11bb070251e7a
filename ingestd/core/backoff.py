"""The delay before the next attempt: exponential backoff with a cap and full jitter.

Full jitter (Brooker, "Exponential Backoff And Jitter"): the delay is uniform between zero and a ceiling that doubles with
each failure. So senders that failed at the same time retry at different times.
"""

from __future__ import annotations

import msgspec

_MAX_DOUBLINGS = 32


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """A backoff policy. ``base_seconds``: the ceiling after the first failure. ``cap_seconds``: the maximum of the ceiling."""

    base_seconds: float
    cap_seconds: float

    def ceiling(self, failures: int) -> float:
        """Return the longest delay after this number of consecutive failures (from 1)."""
        return min(self.cap_seconds, self.base_seconds * 2.0 ** min(max(failures, 1) - 1, _MAX_DOUBLINGS))

    def delay(self, failures: int, jitter: float) -> float:
        """Return the delay in seconds; ``jitter`` is a random number from 0 to 1."""
        return self.ceiling(failures) * jitter
