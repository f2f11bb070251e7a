"""When a delivery is tried again, and when a receiver is given up (contract H11). Pure: time and jitter are handed in."""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

from workspaced.settings.workers import DeliverySettings

_DAY_MS: Final = 86_400_000
_LONGEST_RETRY_AFTER_MS: Final = _DAY_MS
GIVE_UP_AFTER_MS: Final = 5 * _DAY_MS
GIVE_UP_FAILURES: Final = 20


def due_again(pace: DeliverySettings, tries: int, *, now: int, jitter: float, retry_after: int | None) -> int | None:
    """When to try again after ``tries`` tries, in milliseconds since 1970; None: no more.

    ``jitter`` is from 0 to 1. ``retry_after`` is how many milliseconds the receiver asked for; it only ever postpones.
    """
    if tries >= len(pace.retry_seconds):
        return None
    pause = pace.retry_seconds[tries] * 1_000 * (1 + pace.jitter * (2 * jitter - 1))
    return now + max(int(pause), retry_after or 0)


def retry_after_ms(header: str | None, *, now: int) -> int | None:
    """What a Retry-After says, in seconds or as a date, up to a day; None where it says nothing that can be read."""
    if header is None:
        return None
    text = header.strip()
    if text.isascii() and text.isdigit():
        return min(int(text[:9]) * 1_000, _LONGEST_RETRY_AFTER_MS)
    try:
        moment = parsedate_to_datetime(text)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        seconds = aware.timestamp()
    except (ValueError, OverflowError):  # a year of thirty digits is no date
        return None
    return min(max(int(seconds * 1_000) - now, 0), _LONGEST_RETRY_AFTER_MS)


def is_given_up(*, failing_since: int, failures: int, now: int) -> bool:
    """Whether a receiver has only failed for so long and so often that it is told nothing more."""
    return now - failing_since >= GIVE_UP_AFTER_MS and failures >= GIVE_UP_FAILURES
