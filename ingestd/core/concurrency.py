"""How many requests a service may have at the same time: additive up, multiplicative down, by rules without a clock.

Little's law tells how many of the requests in flight only stand in the service's queue: with ``n`` in flight, a latency of
``now`` and one of ``base`` for an idle service, it is ``n * (1 - base / now)``. Few in the queue: one more may go. Many:
fewer. (The rule of TCP Vegas; Brakmo and Peterson, 1995.) Answers are taken together by rounds of as many as are in flight,
and five at least, so that one slow answer decides nothing and the limit changes at most once a round trip.

``base`` is the lowest mean of a round, and it is measured anew now and then with half as many in flight: a service that has
become slower, or quicker, is then known as it is now. A refusal (429, 5xx, a timeout) lowers the limit at once.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

FEW_QUEUED = 1.5
"""Up to so many standing in the queue, one more request may be in flight."""

MANY_QUEUED = 4.0
"""From so many on, there are too many in flight."""

LEAST_ANSWERS = 5
"""A round has at least so many: the lowest of single latencies would be an accident."""

DOWN_FOR_LATENCY = 0.9
DOWN_FOR_REFUSAL = 0.7

ROUNDS_BETWEEN_LOOKS = 40
"""So many rounds, then one with half as many in flight, to see how quick the service is when it is not pressed."""

QUICK_SECONDS = 0.005
"""A service that answers within this is not overloaded, whatever the ratio: such latencies are the sender's own."""


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """What was heard since the limit was last considered. ``reached``: as many were in flight as might be."""

    answers: int = 0
    seconds: float = 0.0
    reached: bool = False


class Concurrency(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one service. ``at_most`` is never passed, and one request may always go.

    ``base_seconds``: the latency of an idle service, None until it was measured. ``size``: how large the requests are (in
    entries) that it was measured with, for larger ones take longer. ``looking``: this round is one with half as many.
    """

    at_most: int
    allowed: float = 1.0
    base_seconds: float | None = None
    size: int = 1
    rounds: int = 0
    looking: bool = False
    round: Round = Round()

    @property
    def limit(self) -> int:
        """How many requests may be in flight now."""
        whole = max(1, int(self.allowed))
        return max(1, whole // 2) if self.looking else whole

    def answered(self, seconds: float, *, in_flight: int, size: int = 1) -> Concurrency:
        """After an answer that took so long, with so many in flight when it came (itself among them).

        Requests much smaller than the others tell nothing about them; with much larger ones measuring begins anew.
        """
        if size * 2 < self.size:
            return self
        if size > self.size * 2:
            anew = replace(self, size=size, base_seconds=None, round=Round())
            return _counted(anew, seconds, in_flight)
        return _counted(self, seconds, in_flight)

    def refused(self) -> Concurrency:
        """After a 429, a 5xx or a timeout. Refusals of one round are one reason, not many."""
        if self.round.answers < 0:
            return replace(self, round=Round(answers=self.round.answers + 1))
        # What is in flight was sent under the old limit: its answers, good or bad, are not counted.
        return replace(
            self, allowed=max(1.0, self.allowed * DOWN_FOR_REFUSAL), looking=False, round=Round(answers=-self.limit + 1)
        )


def _counted(state: Concurrency, seconds: float, in_flight: int) -> Concurrency:
    held = state.round
    counted = Round(
        answers=held.answers + 1,
        seconds=held.seconds + seconds if held.answers >= 0 else 0.0,
        reached=held.reached or in_flight >= state.limit,
    )
    if counted.answers >= max(state.limit, LEAST_ANSWERS):
        return _considered(state, counted.seconds / counted.answers, reached=counted.reached)
    return replace(state, round=counted)


def _considered(state: Concurrency, mean: float, *, reached: bool) -> Concurrency:
    """At the end of a round."""
    rounds = state.rounds + 1
    if state.looking:
        return replace(state, base_seconds=mean, looking=False, rounds=0, round=Round())
    base = mean if state.base_seconds is None else min(mean, state.base_seconds)
    queued = state.limit * (1 - max(base, QUICK_SECONDS) / max(mean, QUICK_SECONDS))
    allowed = state.allowed
    if queued > MANY_QUEUED:
        allowed = max(1.0, allowed * DOWN_FOR_LATENCY)
    elif queued <= FEW_QUEUED and reached:
        allowed = min(float(state.at_most), allowed + 1)
    looking = rounds >= ROUNDS_BETWEEN_LOOKS and allowed >= 2
    return replace(state, allowed=allowed, base_seconds=base, rounds=rounds, looking=looking, round=Round())
