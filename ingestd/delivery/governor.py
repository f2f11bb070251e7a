"""How hard one service is pressed, by all lanes together: how many requests, how often, and whether it is there at all.

The rules are `ingestd.core.concurrency`, `ingestd.core.rate` and `ingestd.core.breaker`; here they meet the clock, and whoever
has to wait stands in line. All methods belong to the event loop's thread.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ingestd.client.reply import Reply
from ingestd.core.backoff import Backoff
from ingestd.core.breaker import Breaker
from ingestd.core.clock import Now, Random
from ingestd.core.concurrency import Concurrency
from ingestd.core.outcome import service_is_away
from ingestd.core.rate import Rate
from ingestd.delivery.pace import Pace
from ingestd.telemetry.catalogue.delivery import RateLearned, ServiceAway, ServiceBack
from ingestd.telemetry.event import Emit


@dataclass(frozen=True, slots=True, kw_only=True)
class Away:
    """The service is away: ``until`` when it is asked again (seconds since the epoch), with the sentence of the last try."""

    until: float
    sentence: str


class Permit:
    """A place among the requests in flight; given back once, however often it is told."""

    __slots__ = ("_leave",)

    def __init__(self, leave: Callable[[], None]) -> None:
        self._leave: Callable[[], None] | None = leave

    def give_back(self) -> None:
        """The request has ended."""
        if self._leave is not None:
            leave, self._leave = self._leave, None
            leave()


class Governor:
    """The governor of one service. ``clock`` never goes back; ``now`` is the wall clock, for reports."""

    def __init__(
        self, *, service: str, pace: Pace, emit: Emit, clock: Callable[[], float], now: Now, random: Random
    ) -> None:
        self._service = service
        self._emit = emit
        self._clock = clock
        self._now = now
        self._random = random
        self._backoff: Backoff = pace.retry
        self._concurrency = Concurrency(at_most=pace.in_flight_at_most, allowed=float(pace.in_flight_at_first))
        self._rate = Rate()
        self._breaker = Breaker()
        self._away_since = 0.0
        self._sentence = ""
        self._in_flight = 0
        self._line: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._changed = asyncio.Event()

    @property
    def limit(self) -> int:
        """How many requests may be in flight now."""
        return self._concurrency.limit

    @property
    def rate(self) -> Rate:
        """How often the service may be asked, as far as is known."""
        return self._rate

    # ------------------------------------------------------------------------------------------------- in line

    def try_enter(self) -> Permit | None:
        """A place, if one is free at once and nobody stands in line for it."""
        if self._line or self._wait_seconds() != 0:
            return None
        return self._take()

    async def enter(self) -> Permit:
        """A place, as soon as there is one; first come, first served."""
        permit = self.try_enter()
        if permit is not None:
            return permit
        turn = asyncio.get_running_loop().create_future()
        self._line.append(turn)
        self._call_next()
        try:
            await turn
        except asyncio.CancelledError:
            if turn in self._line:
                self._line.remove(turn)
            else:
                self._leave()
            raise
        return Permit(self._leave)

    def again(self) -> None:
        """One more request follows under the same permit."""
        self._rate = self._rate.sent(self._clock())

    def _take(self) -> Permit:
        self._in_flight += 1
        self._rate = self._rate.sent(self._clock())
        return Permit(self._leave)

    def _leave(self) -> None:
        self._in_flight -= 1
        self._call_next()

    def _wait_seconds(self) -> float | None:
        """0: a request may go. None: when another one ends."""
        if self._in_flight >= self._concurrency.limit:
            return None
        return self._rate.wait_seconds(self._clock())

    def _call_next(self) -> None:
        while self._line and (wait := self._wait_seconds()) is not None:
            if wait > 0:
                if self._timer is None or self._timer.cancelled():
                    self._timer = asyncio.get_running_loop().call_later(wait, self._due)
                return
            turn = self._line.popleft()
            if not turn.cancelled():
                self._take()
                turn.set_result(None)

    def _due(self) -> None:
        self._timer = None
        self._call_next()

    # ------------------------------------------------------------------------------------------------ hearing

    def heard(self, reply: Reply[Any], *, size: int | None = None) -> None:
        """A request has ended. ``size``: how many entries it wrote; None for one whose latency tells nothing (a read)."""
        now = self._clock()
        others = max(0, self._in_flight - 1)
        after = reply.outcome.retry_after_seconds
        if service_is_away(reply.outcome, reply.status):
            self._concurrency = self._concurrency.refused()
            self._fail(now, reply.outcome.sentence, after)
            return
        self._answered()
        if reply.status == 429:
            self._concurrency = self._concurrency.refused()
            before = self._rate.per_second
            self._rate = self._rate.refused(reply.rate, retry_after_seconds=after, in_flight=others, now=now)
            if self._rate.per_second is not None and self._rate.per_second != before:
                self._emit(RateLearned(service=self._service, requests_per_second=round(self._rate.per_second, 2)))
        elif reply.outcome.word == "unreachable":
            self._concurrency = self._concurrency.refused()
        else:
            self._rate = self._rate.taken(reply.rate, in_flight=others, now=now)
            if reply.ok and size is not None:
                self._concurrency = self._concurrency.answered(
                    reply.milliseconds / 1000, in_flight=self._in_flight, size=size
                )

    def _answered(self) -> None:
        if self._breaker.until is not None:
            self._emit(ServiceBack(service=self._service, seconds=round(self._clock() - self._away_since, 3)))
        if self._breaker.failures:
            self._breaker = self._breaker.answered()
            self._tell()

    def _fail(self, now: float, sentence: str, retry_after_seconds: float | None) -> None:
        was = self._breaker
        self._breaker = was.failed(now, self._backoff, self._random(), retry_after_seconds=retry_after_seconds)
        if self._breaker.until is None or self._breaker.until == was.until:
            return
        self._sentence = sentence
        if not was.open:
            self._away_since = now
        self._emit(ServiceAway(service=self._service, sentence=sentence, seconds=round(self._breaker.until - now, 3)))
        self._tell()

    # ------------------------------------------------------------------------------------------------ being away

    def turn(self) -> Away | None:
        """None: ask (as the probe for all, where the service was away; tell `probe_over` afterwards). Else: wait first."""
        now = self._clock()
        match self._breaker.turn(now):
            case "go":
                return None
            case "probe":
                self._breaker = self._breaker.probed()
                return None
            case "wait":
                left = max(0.0, (self._breaker.until or now) - now)
                return Away(until=self._now() + left, sentence=self._sentence)

    def probe_over(self) -> None:
        """Whoever had the turn has ended; where it asked nothing, the next in line may."""
        if self._breaker.probing:
            self._breaker = self._breaker.undecided()
            self._tell()

    async def turn_changed(self) -> None:
        """Until the service is back, or it is time for a probe."""
        changed, breaker = self._changed, self._breaker
        left = None if breaker.until is None or breaker.probing else max(0.0, breaker.until - self._clock())
        try:
            async with asyncio.timeout(left):
                await changed.wait()
        except TimeoutError:
            return

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
