"""The delay before the next attempt: exponential backoff with a cap and full jitter, and the Retry-After header.

Full jitter (Brooker, "Exponential Backoff And Jitter"): the delay is uniform between zero and a ceiling that doubles with
each failure. So senders that failed at the same time do not retry at the same time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime

_SECONDS = re.compile(r"[0-9]{1,12}(\.[0-9]{1,6})?")
_MAX_DOUBLINGS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """A backoff policy. ``base_seconds``: the ceiling after the first failure. ``cap_seconds``: the highest ceiling."""

    base_seconds: float
    cap_seconds: float

    def ceiling(self, failures: int) -> float:
        """Return the longest delay after this number of consecutive failures (from 1)."""
        return min(self.cap_seconds, self.base_seconds * 2.0 ** min(max(failures, 1) - 1, _MAX_DOUBLINGS))

    def delay(self, failures: int, jitter: float) -> float:
        """Return the delay in seconds; ``jitter`` is a random number from 0 to 1."""
        return self.ceiling(failures) * jitter


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
