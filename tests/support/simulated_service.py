"""A discrete-event simulation of a service and its sender in virtual time, to test the rules of concurrency and rate."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from ingestd.core.concurrency import Concurrency
from ingestd.core.rate import Announced, Rate


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedResponse:
    """The response to a request. ``refused``: the service refused it, perhaps with ``retry_after_seconds``."""

    refused: bool = False
    retry_after_seconds: float | None = None
    announced: Announced | None = None


@dataclass(slots=True, kw_only=True)
class Simulation:
    """A service and its sender. ``latency``: seconds by the number of requests in flight; ``classify``: response by arrival time.

    ``accepted`` and ``refused`` count the responses after ``measured_from``.
    """

    latency: Callable[[int], float]
    classify: Callable[[float], SimulatedResponse] = lambda _: SimulatedResponse()
    jitter: float = 0.1
    seed: int = 1
    concurrency: Concurrency = field(default_factory=lambda: Concurrency(at_most=100))
    rate: Rate = field(default_factory=Rate)
    accepted: int = 0
    refused: int = 0
    limits: list[int] = field(default_factory=list)

    def run(self, *, seconds: float, measured_from: float = 0.0, fixed: int | None = None) -> float:
        """Return accepted requests a second after ``measured_from``. ``fixed``: a constant concurrency instead of the rules."""
        random_numbers = random.Random(self.seed)
        now, order = 0.0, 0
        in_flight: list[tuple[float, int, float]] = []
        while now < seconds:
            limit = fixed if fixed is not None else self.concurrency.limit
            wait = 0.0 if fixed is not None else self.rate.wait_seconds(now)
            if len(in_flight) < limit and wait <= 0:
                self.rate = self.rate.after_request(now)
                order += 1
                took = self.latency(len(in_flight) + 1) * random_numbers.uniform(1 - self.jitter, 1 + self.jitter)
                heapq.heappush(in_flight, (now + took, order, now))
                continue
            ends = in_flight[0][0] if in_flight else float("inf")
            now = min(ends, now + wait) if len(in_flight) < limit else ends
            if now == ends:
                _, _, sent = heapq.heappop(in_flight)
                self._respond(sent, now, len(in_flight) + 1, counted=now >= measured_from)
        return self.accepted / (seconds - measured_from)

    def _respond(self, sent: float, now: float, in_flight: int, *, counted: bool) -> None:
        response = self.classify(sent)
        if counted:
            self.refused += response.refused
            self.accepted += not response.refused
        if response.refused:
            self.concurrency = self.concurrency.after_refusal()
            self.rate = self.rate.after_refusal(
                response.announced, retry_after_seconds=response.retry_after_seconds, in_flight=in_flight - 1, now=now
            )
            return
        self.concurrency = self.concurrency.after_response(now - sent, in_flight=in_flight)
        self.rate = self.rate.after_response(response.announced, in_flight=in_flight - 1, now=now)
        self.limits.append(self.concurrency.limit)
