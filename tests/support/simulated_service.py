"""A service and its sender as a simulation of events: the rules of concurrency and rate against a clock that costs nothing."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from ingestd.core.concurrency import Concurrency
from ingestd.core.rate import Announced, Rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A service's answer to one request: ``retry_after_seconds`` where it refused."""

    refused: bool = False
    retry_after_seconds: float | None = None
    announced: Announced | None = None


@dataclass(slots=True, kw_only=True)
class Simulation:
    """``latency`` of the number in flight; ``judge`` of the time of arrival. Answers after ``settled_at`` are counted."""

    latency: Callable[[int], float]
    judge: Callable[[float], Told] = lambda _: Told()
    jitter: float = 0.1
    seed: int = 1
    concurrency: Concurrency = field(default_factory=lambda: Concurrency(at_most=100))
    rate: Rate = field(default_factory=Rate)
    accepted: int = 0
    refused: int = 0
    limits: list[int] = field(default_factory=list)

    def run(self, *, seconds: float, settled_at: float = 0.0, fixed: int | None = None) -> float:
        """Accepted requests a second after ``settled_at``; ``fixed``: so many in flight, without rules."""
        chance = random.Random(self.seed)
        now, order = 0.0, 0
        out: list[tuple[float, int, float]] = []
        while now < seconds:
            limit = fixed if fixed is not None else self.concurrency.limit
            wait = 0.0 if fixed is not None else self.rate.wait_seconds(now)
            if len(out) < limit and wait <= 0:
                self.rate = self.rate.after_request(now)
                order += 1
                took = self.latency(len(out) + 1) * chance.uniform(1 - self.jitter, 1 + self.jitter)
                heapq.heappush(out, (now + took, order, now))
                continue
            ends = out[0][0] if out else float("inf")
            now = min(ends, now + wait) if len(out) < limit else ends
            if now == ends:
                _, _, sent = heapq.heappop(out)
                self._answer(sent, now, len(out) + 1, counted=now >= settled_at)
        return self.accepted / (seconds - settled_at)

    def _answer(self, sent: float, now: float, in_flight: int, *, counted: bool) -> None:
        told = self.judge(sent)
        if counted:
            self.refused += told.refused
            self.accepted += not told.refused
        if told.refused:
            self.concurrency = self.concurrency.after_refusal()
            self.rate = self.rate.after_refusal(
                told.announced, retry_after_seconds=told.retry_after_seconds, in_flight=in_flight - 1, now=now
            )
            return
        self.concurrency = self.concurrency.after_response(now - sent, in_flight=in_flight)
        self.rate = self.rate.after_response(told.announced, in_flight=in_flight - 1, now=now)
        self.limits.append(self.concurrency.limit)
