"""Why a lane can't go on just now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ingestd.client.response import ServiceResponse
from ingestd.core.outcome import Denied, Outcome, Remedy

Way: TypeAlias = Literal["retry", "pause", "reopen"]
"""retry: back off and send again · pause: somebody has to act, ask again now and then · reopen: look for the sink again."""

_WAYS: dict[Remedy, Way] = {"pause": "pause", "missing": "reopen"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """What is in the way, as a sentence, and what the lane does about it. What was claimed stays pending.

    ``denied``: the key has no right; the obstacle is in the way of other lanes, too.
    """

    way: Way
    sentence: str
    retry_after_seconds: float | None = None
    denied: Denied = ""


_LEAST_LIMIT_BYTES = 8 * 1024


def remedy_of(reply: ServiceResponse[Any], size: int) -> Remedy:
    """The remedy for a request of ``size`` bytes. No proxy's limit is as low as to make a small one too large."""
    remedy = reply.outcome.remedy
    mistaken = remedy == "shrink" and reply.is_refusal_of_proxy and size < _LEAST_LIMIT_BYTES
    return "retry" if mistaken else remedy


def blocker_of(outcome: Outcome, *, way: Way | None = None) -> Blocker:
    """The obstacle that an outcome is to a lane; ``way`` where the caller knows better than the outcome alone."""
    return Blocker(
        way=way or _WAYS.get(outcome.remedy, "retry"),
        sentence=outcome.sentence,
        retry_after_seconds=outcome.retry_after_seconds,
        denied=outcome.denied,
    )
