"""When a delivery is tried again, and when a receiver is given up (contract, H11). Pure: time and chance are handed in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_DAY_MS: Final = 86_400_000
RETRY_AFTER_CAP_SECONDS: Final = 86_400.0
GIVE_UP_AFTER_MS: Final = 5 * _DAY_MS
GIVE_UP_FAILURES: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How patiently things are delivered. ``retry_seconds`` has the pause before each try, the first one's too.

    ``at_once``: requests under way in this process, of which one receiver gets at most ``at_once_to_one``. ``batch_events``
    and ``batch_bytes``: what a request holds for a receiver that takes events of entries together.
    """

    retry_seconds: tuple[float, ...] = (0, 5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
    jitter: float = 0.2
    lease_seconds: float = 60.0
    connect_seconds: float = 5.0
    total_seconds: float = 15.0
    answer_bytes: int = 65_536
    kept_answer_bytes: int = 1_024
    at_once: int = 64
    at_once_to_one: int = 16
    batch_events: int = 100
    batch_bytes: int = 262_144
    sweep_seconds: float = 30.0
    stop_seconds: float = 5.0
    keep_days: int = 30

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Pace:
        """``WORKSPACED_RETRY_SECONDS`` (a list with commas) and ``WORKSPACED_LEASE_SECONDS`` where they are given.

        Raises:
            ValueError: a value can't be read; the sentence names the variable.
        """
        given = environment.get("WORKSPACED_RETRY_SECONDS", "")
        pauses = _numbers("WORKSPACED_RETRY_SECONDS", given, lowest=0) if given else cls().retry_seconds
        given = environment.get("WORKSPACED_LEASE_SECONDS", "")
        lease = _numbers("WORKSPACED_LEASE_SECONDS", given, lowest=1)[0] if given else cls().lease_seconds
        return cls(retry_seconds=pauses, lease_seconds=lease, total_seconds=min(cls().total_seconds, lease / 4))


def due_again(pace: Pace, tries: int, *, now: int, chance: float, retry_after_seconds: float | None) -> int | None:
    """When to try again after ``tries`` tries, in milliseconds since 1970; None: no more.

    ``chance`` is from 0 to 1. ``retry_after_seconds`` is what the receiver asked for; it only ever postpones.
    """
    if tries >= len(pace.retry_seconds):
        return None
    pause = pace.retry_seconds[tries] * 1_000 * (1 + pace.jitter * (2 * chance - 1))
    return now + int(max(pause, (retry_after_seconds or 0) * 1_000))


def is_given_up(*, failing_since: int, failures: int, now: int) -> bool:
    """Whether a receiver has only failed for so long and so often that it is told nothing more."""
    return now - failing_since >= GIVE_UP_AFTER_MS and failures >= GIVE_UP_FAILURES


def _numbers(name: str, text: str, *, lowest: float) -> tuple[float, ...]:
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or not all(lowest <= number <= 604_800 for number in numbers):
        raise ValueError(f"{name} is '{text}', but must hold seconds, each from {lowest:g} to 604800.")
    return numbers
