"""The number of concurrent requests to a service: additive increase and multiplicative decrease. Performs no I/O.

Little's law estimates how many of ``n`` requests in flight wait in the service's queue: ``n * (1 - base / now)``, with the
latency ``now`` and the latency ``base`` of an idle service. If few requests wait, the limit grows by one; if many wait, it
shrinks by a tenth. (TCP Vegas has a similar rule; Brakmo and Peterson, 1995.) Responses are evaluated in rounds. A round has as
many responses as the limit, but at least five. So one slow response has little effect, and the limit changes once per round.

``base`` is the lowest mean latency of a round. It is measured again periodically with half as many requests in flight, because
a service can become slower or faster. A refusal (429, 5xx, a timeout) lowers the limit at once.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

FEW_QUEUED = 1.5
"""With at most this number of requests in the queue, the limit grows by one."""

MANY_QUEUED = 4.0
"""With at least this number of requests in the queue, the limit shrinks."""

MIN_ROUND = 5
"""The least number of responses in a round. The lowest mean of fewer latencies would be arbitrary."""

DOWN_FOR_LATENCY = 0.9
DOWN_FOR_REFUSAL = 0.7

ROUNDS_BETWEEN_MEASUREMENTS = 40
"""The number of rounds between two measurements of the base latency."""

FAST_SECONDS = 0.005
"""A service with this latency or less is not overloaded: differences of such short latencies arise in the sender."""


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """The current round. ``responses``: if negative, the number of responses to ignore. ``reached``: the limit was reached."""

    responses: int = 0
    seconds: float = 0.0
    reached: bool = False


class Concurrency(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one service. The limit is at least 1 and at most ``at_most``.

    ``base_seconds``: the latency of an idle service; None before it is measured. ``size``: the entries in each request of this
    measurement; larger requests take longer. ``measuring``: this round has half as many requests in flight.
    """

    at_most: int
    allowed: float = 1.0
    base_seconds: float | None = None
    size: int = 1
    rounds: int = 0
    measuring: bool = False
    round: Round = Round()

    @property
    def limit(self) -> int:
        """The number of requests that may be in flight now."""
        whole = max(1, int(self.allowed))
        return max(1, whole // 2) if self.measuring else whole

    def after_response(self, seconds: float, *, in_flight: int, size: int = 1) -> Concurrency:
        """Return the state after a response with this latency. ``in_flight`` includes the request of this response.

        Requests that are much smaller than usual are not counted. If requests become much larger, the measurement starts again.
        """
        if size * 2 < self.size:
            return self
        if size > self.size * 2:
            restarted = replace(self, size=size, base_seconds=None, round=Round())
            return _count(restarted, seconds, in_flight)
        return _count(self, seconds, in_flight)

    def after_refusal(self) -> Concurrency:
        """Return the state after a 429, a 5xx or a timeout. The refusals of one round count once."""
        if self.round.responses < 0:
            return replace(self, round=Round(responses=self.round.responses + 1))
        # The other requests in flight were sent under the former limit, so their responses are not counted.
        return replace(
            self,
            allowed=max(1.0, self.allowed * DOWN_FOR_REFUSAL),
            measuring=False,
            round=Round(responses=-self.limit + 1),
        )


def _count(state: Concurrency, seconds: float, in_flight: int) -> Concurrency:
    before = state.round
    counted = Round(
        responses=before.responses + 1,
        seconds=before.seconds + seconds if before.responses >= 0 else 0.0,
        reached=before.reached or in_flight >= state.limit,
    )
    if counted.responses >= max(state.limit, MIN_ROUND):
        return _end_round(state, counted.seconds / counted.responses, reached=counted.reached)
    return replace(state, round=counted)


def _end_round(state: Concurrency, mean: float, *, reached: bool) -> Concurrency:
    rounds = state.rounds + 1
    if state.measuring:
        return replace(state, base_seconds=mean, measuring=False, rounds=0, round=Round())
    base = mean if state.base_seconds is None else min(mean, state.base_seconds)
    queued = state.limit * (1 - max(base, FAST_SECONDS) / max(mean, FAST_SECONDS))
    allowed = state.allowed
    if queued > MANY_QUEUED:
        allowed = max(1.0, allowed * DOWN_FOR_LATENCY)
    elif queued <= FEW_QUEUED and reached:
        allowed = min(float(state.at_most), allowed + 1)
    measuring = rounds >= ROUNDS_BETWEEN_MEASUREMENTS and allowed >= 2
    return replace(state, allowed=allowed, base_seconds=base, rounds=rounds, measuring=measuring, round=Round())
