"""How long to wait before the next try: capped full jitter, and what the service asks for by Retry-After.

Full jitter (Brooker, "Exponential Backoff And Jitter"): the wait is drawn evenly from nothing up to a ceiling that
doubles with each failure, so senders that failed together don't come back together.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime

_SECONDS = re.compile(r"[0-9]{1,12}(\.[0-9]{1,6})?")
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


def retry_after_seconds(text: str | None, *, now: float, cap_seconds: float) -> float | None:
    """What a Retry-After header asks for (RFC 9110, 10.2.3), never more than the cap.

    Seconds and HTTP dates are understood; a date that has passed is no wait at all; None for anything else.
    ``now``: seconds since the epoch.
    """
    text = (text or "").strip()
    if _SECONDS.fullmatch(text):
        return min(float(text), cap_seconds)
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    # RFC 9110 dates are GMT; a date without a zone can only mean the same.
    seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now
    return min(max(seconds, 0.0), cap_seconds)
