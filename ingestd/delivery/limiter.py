"""How hard one service is pressed, by all lanes together: how many requests, how often, and whether it is there at all.

The rules are `ingestd.core.concurrency`, `ingestd.core.rate` and `ingestd.core.breaker`; here they meet the clock, and whoever
has to wait stands in line. All methods belong to the event loop's thread.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from ingestd.client.response import ServiceResponse
from ingestd.core.backoff import Backoff
from ingestd.core.breaker import Breaker
from ingestd.core.clock import Now, Random
from ingestd.core.concurrency import Concurrency
from ingestd.core.outcome import Denied, service_is_away
from ingestd.core.rate import Rate
from ingestd.delivery.delivery_limits import DeliveryLimits
from ingestd.process.change_signal import ChangeSignal
from ingestd.telemetry.catalogue.delivery import RateLearned, ServiceAway, ServiceBack
from ingestd.telemetry.event import Emit


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Why a lane must not ask now, with the sentence of the last try.

    ``until``: when the service is asked again (seconds since the epoch); ``seconds``: how long that is from now, None while
    another lane asks. ``standing``: the service is away, or it denies access.
    """

    standing: Literal["backing off", "paused"]
    until: float
    seconds: float | None
    sentence: str


@dataclass(slots=True, kw_only=True)
class _Denial:
    """The service denies access until somebody acts; ``asker`` finds out for all whether it still does."""

    until: float
    sentence: str
    asker: object = None


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

    def give_back_after(self, task: asyncio.Task[None]) -> None:
        """Give it back when the task has ended; a task that is cancelled before its first step can't do so itself."""
        task.add_done_callback(lambda _: self.give_back())


class Limiter:
    """The governor of one service. ``clock`` never goes back; ``now`` is the wall clock, for reports."""

    def __init__(
        self, *, service: str, pace: DeliveryLimits, emit: Emit, clock: Callable[[], float], now: Now, random: Random
    ) -> None:
        self._service = service
        self._emit = emit
        self._clock = clock
        self._now = now
        self._random = random
        self._backoff: Backoff = pace.retry
        self._denied_seconds = pace.denied_seconds
        self._denials: dict[str, _Denial] = {}
        """By workspace; the one of the service as a whole under an empty name."""
        self._prober: object = None
        self._concurrency = Concurrency(at_most=pace.in_flight_at_most, allowed=float(pace.in_flight_at_first))
        self._rate = Rate()
        self._breaker = Breaker()
        self._away_since = 0.0
        self._sentence = ""
        self._in_flight = 0
        self._line: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self.changes = ChangeSignal()

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

    def heard(self, reply: ServiceResponse[Any], *, size: int | None = None) -> None:
        """A request has ended. ``size``: how many entries it wrote; None for one whose latency tells nothing (a read)."""
        now = self._clock()
        others = max(0, self._in_flight - 1)
        after = reply.outcome.retry_after_seconds
        if service_is_away(reply.outcome, reply.status):
            self._concurrency = self._concurrency.refused()
            self._fail(now, reply.outcome.sentence, after)
            return
        self._answered()
        if reply.outcome.denied != "service":
            self.admit("")
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

    def turn(self, asker: object = None, workspace: str = "") -> Wait | None:
        """None: ask, and tell `probe_over` afterwards; it may be as the probe for all. Else: wait first."""
        now, asker = self._clock(), asker or self
        turn = self._breaker.turn(now)
        if turn == "wait":
            seconds = max(0.0, (self._breaker.until or now) - now)
            return self._wait("backing off", seconds, self._sentence, probing=self._breaker.probing)
        denials = [self._denials[scope] for scope in {"": 0, workspace: 0} if scope in self._denials]
        for denial in denials:
            if denial.asker is not None or now < denial.until:
                seconds = max(0.0, denial.until - now)
                return self._wait("paused", seconds, denial.sentence, probing=denial.asker is not None)
        for denial in denials:
            denial.asker = asker
        if turn == "probe":
            self._breaker, self._prober = self._breaker.probed(), asker
        return None

    def _wait(
        self, standing: Literal["backing off", "paused"], seconds: float, sentence: str, *, probing: bool
    ) -> Wait:
        return Wait(
            standing=standing,
            until=self._now() + seconds,
            seconds=None if probing else seconds,
            sentence=sentence,
        )

    def probe_over(self, asker: object = None) -> None:
        """Whoever had the turn has ended; where it asked nothing, the next in line may."""
        asker = asker or self
        over = [denial for denial in self._denials.values() if denial.asker is asker]
        for denial in over:
            denial.asker = None
        if self._breaker.probing and self._prober is asker:
            self._breaker = self._breaker.undecided()
            self._tell()
        elif over:
            self._tell()

    def deny(self, denied: Denied, workspace: str, sentence: str) -> None:
        """The service denies access: within `DeliveryLimits.denied_seconds` one lane asks again, for all that are concerned."""
        now, scope = self._clock(), "" if denied == "service" else workspace
        known = self._denials.get(scope)
        if known is not None and (known.asker is not None or now < known.until):
            return  # sent before that was known
        # Half of the wait is certain.
        seconds = self._denied_seconds * (1 + self._random()) / 2
        self._denials[scope] = _Denial(until=now + seconds, sentence=sentence)
        self._tell()

    def admit(self, scope: str) -> None:
        """The service took something for this workspace, or (empty) answered a request with our key."""
        if self._denials.pop(scope, None) is not None:
            self._tell()

    def retry_now(self) -> None:
        """End the wait for the next probe."""
        self._breaker = self._breaker.due(self._clock())
        for denial in self._denials.values():
            denial.until = self._clock()
        self._tell()

    async def turn_changed(self, known: int, wait: Wait) -> None:
        """Wait until `turn` may say something else than ``wait``.

        ``known``: the generation of ``changes`` before `turn` was asked; what changed since then ends the wait at once.
        """
        await self.changes.wait_past(known, seconds=wait.seconds)

    def _tell(self) -> None:
        self.changes.notify()
