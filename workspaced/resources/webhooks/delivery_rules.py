"""Which waiting deliveries of a webhook may be sent now, when to retry, and when to disable a webhook (contract H11, H12).

This module performs no I/O.

First attempts for one resource are made one at a time, in the order of the deliveries. Different resources do not wait for each
other. An entry is identified by its sink and key, so the events of an entry that is deleted and created again stay in order. An
event of a sink is sent after the earlier events of the sink's entries, and before later events of these entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from workspaced.events.payload import sink_of_entry
from workspaced.settings.workers import DeliverySettings

_DAY_MS: Final = 86_400_000
RETRY_AFTER_CAP_SECONDS: Final = 86_400.0
GIVE_UP_AFTER_MS: Final = 5 * _DAY_MS
GIVE_UP_FAILURES: Final = 20


class Waiting(NamedTuple):
    """A delivery that waits. ``due_at`` (milliseconds since 1970) is in the future while an attempt is in progress."""

    number: int
    resource: str
    due_at: int


def ready(window: Iterable[Waiting], *, now: int, most: int) -> list[int]:
    """Return the numbers of up to ``most`` deliveries to send now. ``window``: the oldest waiting deliveries, by number."""
    chosen: list[int] = []
    passed: set[str] = set()  # resources with an earlier delivery that waits or is in progress
    sinks_of_passed: set[str] = set()
    for waiting in window:
        if len(chosen) == most:
            break
        resource, sink = waiting.resource, sink_of_entry(waiting.resource)
        waits_for_earlier = resource in passed or sink in passed or resource in sinks_of_passed
        if waiting.due_at <= now and not waits_for_earlier:
            chosen.append(waiting.number)
        passed.add(resource)
        if sink is not None:
            sinks_of_passed.add(sink)
    return chosen


def ready_in_order(window: Sequence[Waiting], *, now: int, batch: int) -> list[int]:
    """Return the numbers of the deliveries for the next request; none while a delivery is in progress.

    ``batch``: the maximum number of entry events in one request.
    """
    if not window or window[0].due_at > now:
        return []
    together: list[int] = []
    for waiting in window[:batch]:
        if waiting.due_at > now or sink_of_entry(waiting.resource) is None:
            break
        together.append(waiting.number)
    return together or [window[0].number]


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
    """Whether a webhook must be disabled, because it has failed too often and for too long without a success."""
    return now - failing_since >= GIVE_UP_AFTER_MS and failures >= GIVE_UP_FAILURES
