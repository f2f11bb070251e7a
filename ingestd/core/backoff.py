"""How long to wait before the next try: capped full jitter.

Full jitter (Brooker, "Exponential Backoff And Jitter"): the wait is drawn evenly from nothing up to a ceiling that
doubles with each failure, so senders that failed together don't come back together.
"""

from __future__ import annotations

from dataclasses import dataclass

_MOST_DOUBLINGS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """``base_seconds``: the ceiling after the first failure. ``cap_seconds``: the ceiling that is never passed."""

    base_seconds: float
    cap_seconds: float

    def ceiling(self, failures: int) -> float:
        """The longest wait after so many failures in a row (from 1)."""
        return min(self.cap_seconds, self.base_seconds * 2.0 ** min(max(failures, 1) - 1, _MOST_DOUBLINGS))

    def delay(self, failures: int, chance: float) -> float:
        """The wait in seconds; ``chance`` is a number from 0 to 1, drawn by the caller."""
        return self.ceiling(failures) * chance
