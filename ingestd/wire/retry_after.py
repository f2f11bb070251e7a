"""The header `Retry-After` (RFC 9110, section 10.2.3)."""

from __future__ import annotations

import re
from datetime import UTC
from email.utils import parsedate_to_datetime

_SECONDS = re.compile(r"[0-9]{1,60}(\.[0-9]{1,6})?")


def retry_after_seconds(text: str | None, *, now: float, cap_seconds: float) -> float | None:
    """Return the seconds for which a `Retry-After` asks to wait, at most ``cap_seconds``.

    ``text`` is the header's value: seconds or an HTTP date. For a date in the past, the result is 0. Without a header, and for
    a malformed value, the result is None. ``now`` is in seconds since the epoch.
    """
    text = (text or "").strip()
    if _SECONDS.fullmatch(text):
        return min(float(text), cap_seconds)
    try:
        date = parsedate_to_datetime(text)
        # HTTP dates are in GMT, so a date without a zone is, too.
        seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now
    except (ValueError, OverflowError):  # a year of thirty digits overflows
        return None
    return min(max(seconds, 0.0), cap_seconds)
