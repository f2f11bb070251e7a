"""Rules for retries, and for disabling a webhook that always fails (contract H11). Performs no I/O."""

from __future__ import annotations

from typing import Final

from workspaced.settings.workers import DeliverySettings

_DAY_MS: Final = 86_400_000
RETRY_AFTER_CAP_SECONDS: Final = 86_400.0
GIVE_UP_AFTER_MS: Final = 5 * _DAY_MS
GIVE_UP_FAILURES: Final = 20


def due_again(
    settings: DeliverySettings, tries: int, *, now: int, jitter: float, retry_after_seconds: float | None
) -> int | None:
    """Return when to try again after ``tries`` attempts, in milliseconds since 1970; None: never.

    ``jitter`` is from 0 to 1. ``retry_after_seconds`` is the receiver's Retry-After; it can only postpone the attempt.
    """
    if tries >= len(settings.retry_seconds):
        return None
    pause = settings.retry_seconds[tries] * 1_000 * (1 + settings.jitter * (2 * jitter - 1))
    return now + int(max(pause, (retry_after_seconds or 0) * 1_000))


def must_disable(*, failing_since: int, failures: int, now: int) -> bool:
    """Whether a webhook must be disabled, because it has failed for a time and a number of attempts without a success."""
    return now - failing_since >= GIVE_UP_AFTER_MS and failures >= GIVE_UP_FAILURES
