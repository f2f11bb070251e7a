"""Why a lane can't go on just now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ingestd.core.outcome import Outcome, Remedy

Way: TypeAlias = Literal["retry", "pause", "reopen"]
"""retry: back off and send again · pause: somebody has to act, ask again now and then · reopen: look for the sink again."""

_WAYS: dict[Remedy, Way] = {"pause": "pause", "missing": "reopen"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """What is in the way, as a sentence, and what the lane does about it. What was claimed stays pending."""

    way: Way
    sentence: str
    retry_after_seconds: float | None = None


def obstacle_of(outcome: Outcome, *, way: Way | None = None) -> Obstacle:
    """The obstacle that an outcome is to a lane; ``way`` where the caller knows better than the outcome alone."""
    return Obstacle(
        way=way or _WAYS.get(outcome.remedy, "retry"),
        sentence=outcome.sentence,
        retry_after_seconds=outcome.retry_after_seconds,
    )
