"""When a delivery is tried again, and when a receiver is given up (contract H11). Pure: time and jitter are handed in."""

from __future__ import annotations

from typing import Final

from workspaced.settings.workers import DeliverySettings

_DAY_MS: Final = 86_400_000
RETRY_AFTER_CAP_SECONDS: Final = 86_400.0
GIVE_UP_AFTER_MS: Final = 5 * _DAY_MS
GIVE_UP_FAILURES: Final = 20


def due_again(
    pace: DeliverySettings, tries: int, *, now: int, jitter: float, retry_after_seconds: float | None
) -> int | None:
    """When to try again after ``tries`` tries, in milliseconds since 1970; None: no more.

    ``jitter`` is from 0 to 1. ``retry_after_seconds`` is what the receiver asked for; it only ever postpones.
    """
    if tries >= len(pace.retry_seconds):
        return None
    pause = pace.retry_seconds[tries] * 1_000 * (1 + pace.jitter * (2 * jitter - 1))
    return now + int(max(pause, (retry_after_seconds or 0) * 1_000))


def is_given_up(*, failing_since: int, failures: int, now: int) -> bool:
    """Whether a receiver has only failed for so long and so often that it is told nothing more."""
    return now - failing_since >= GIVE_UP_AFTER_MS and failures >= GIVE_UP_FAILURES
