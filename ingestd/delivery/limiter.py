"""Limits the load on one service, for all lanes together: concurrent requests, request rate, and waits during an outage.

The rules are pure code in `ingestd.core.concurrency`, `ingestd.core.rate` and `ingestd.core.breaker`. This module applies them
with a clock, and queues the callers that have to wait. All methods belong to the event loop's thread.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Literal

import msgspec

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


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """Why a lane must not send requests now, with the sentence of the last attempt.

    ``status``: the service is unavailable (backing off), or it denies access (paused). ``until``: when the service is tried
    again, in seconds since the epoch. ``seconds``: the time from now until the next attempt; None while another lane tries.
    """

    status: Literal["backing off", "paused"]
    until: float
    seconds: float | None
    sentence: str


class _Denial(msgspec.Struct, kw_only=True):
    """The service denies access until a person acts. ``prober``: the lane that now tries again for all lanes."""

    until: float
    sentence: str
    prober: object = None


class Permit:
    """Permission for one request in flight. A second release has no effect."""

    __slots__ = ("_on_release",)

    def __init__(self, on_release: Callable[[], None]) -> None:
        self._on_release: Callable[[], None] | None = on_release

    def release(self) -> None:
        """Release the permit, because the request has ended."""
        if self._on_release is not None:
            on_release, self._on_release = self._on_release, None
            on_release()

    def release_after(self, task: asyncio.Task[None]) -> None:
        """Release the permit when the task ends, even if the task is cancelled before its first step."""
        task.add_done_callback(lambda _: self.release())


class Limiter:
    """The limits of one service. ``clock`` is monotonic; ``now`` is the wall clock, for reports."""

    def __init__(
        self, *, service: str, limits: DeliveryLimits, emit: Emit, clock: Callable[[], float], now: Now, random: Random
    ) -> None:
        self._service = service
        self._emit = emit
        self._clock = clock
        self._now = now
        self._random = random
        self._backoff: Backoff = limits.retry
        self._denied_seconds = limits.denied_seconds
        self._denials: dict[str, _Denial] = {}
        """The denials by workspace; a denial of the whole service has the empty name."""
        self._prober: object = None
        self._concurrency = Concurrency(at_most=limits.in_flight_at_most, allowed=float(limits.in_flight_at_first))
        self._rate = Rate()
        self._breaker = Breaker()
        self._away_since = 0.0
        self._sentence = ""
        self._in_flight = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self.changes = ChangeSignal()

    @property
    def limit(self) -> int:
        """The number of requests that may be in flight now."""
        return self._concurrency.limit

    @property
    def rate(self) -> Rate:
        """The request rate that the service accepts, as far as it is known."""
        return self._rate

    # -------------------------------------------------------------------------------------------------- permits

    def try_acquire(self) -> Permit | None:
        """Return a permit if one is available now and no caller waits for it."""
        if self._queue or self._wait_seconds() != 0:
            return None
        return self._grant()

    async def acquire(self) -> Permit:
        """Wait for a permit; callers get permits in the order of their calls."""
        permit = self.try_acquire()
        if permit is not None:
            return permit
        granted = asyncio.get_running_loop().create_future()
        self._queue.append(granted)
        self._grant_queued()
        try:
            await granted
        except asyncio.CancelledError:
            if granted in self._queue:
                self._queue.remove(granted)
            else:
                self._release()
            raise
        return Permit(self._release)

    def record_request(self) -> None:
        """Count a further request for a permit that was already used."""
        self._rate = self._rate.after_request(self._clock())

    def _grant(self) -> Permit:
        self._in_flight += 1
        self._rate = self._rate.after_request(self._clock())
        return Permit(self._release)

    def _release(self) -> None:
        self._in_flight -= 1
        self._grant_queued()

    def _wait_seconds(self) -> float | None:
        """Return the seconds until the next request is permitted; None: not before another request ends."""
        if self._in_flight >= self._concurrency.limit:
            return None
        return self._rate.wait_seconds(self._clock())

    def _grant_queued(self) -> None:
        while self._queue and (wait := self._wait_seconds()) is not None:
            if wait > 0:
                if self._timer is None or self._timer.cancelled():
                    self._timer = asyncio.get_running_loop().call_later(wait, self._on_timer)
                return
            granted = self._queue.popleft()
            if not granted.cancelled():
                self._grant()
                granted.set_result(None)

    def _on_timer(self) -> None:
        self._timer = None
        self._grant_queued()

    # ------------------------------------------------------------------------------------------------ responses

    def record_response(self, response: ServiceResponse[Any], *, size: int | None = None) -> None:
        """Adapt the limits to a response. ``size``: the number of entries written; None: do not measure the latency."""
        now = self._clock()
        others = max(0, self._in_flight - 1)
        retry_after = response.outcome.retry_after_seconds
        if service_is_away(response.outcome, response.status):
            self._concurrency = self._concurrency.after_refusal()
            self._record_failure(now, response.outcome.sentence, retry_after)
            return
        self._record_reachable()
        if response.outcome.denied != "service":
            self.clear_denial("")
        if response.status == 429:
            self._concurrency = self._concurrency.after_refusal()
            before = self._rate.per_second
            self._rate = self._rate.after_refusal(
                response.rate, retry_after_seconds=retry_after, in_flight=others, now=now
            )
            if self._rate.per_second is not None and self._rate.per_second != before:
                self._emit(RateLearned(service=self._service, requests_per_second=round(self._rate.per_second, 2)))
        elif response.outcome.word == "unreachable":
            self._concurrency = self._concurrency.after_refusal()
        else:
            self._rate = self._rate.after_response(response.rate, in_flight=others, now=now)
            if response.ok and size is not None:
                self._concurrency = self._concurrency.after_response(
                    response.milliseconds / 1000, in_flight=self._in_flight, size=size
                )

    def _record_reachable(self) -> None:
        if self._breaker.until is not None:
            self._emit(ServiceBack(service=self._service, seconds=round(self._clock() - self._away_since, 3)))
        if self._breaker.failures:
            self._breaker = self._breaker.after_response()
            self.changes.notify()

    def _record_failure(self, now: float, sentence: str, retry_after_seconds: float | None) -> None:
        before = self._breaker
        self._breaker = before.after_failure(
            now, self._backoff, self._random(), retry_after_seconds=retry_after_seconds
        )
        if self._breaker.until is None or self._breaker.until == before.until:
            return
        self._sentence = sentence
        if not before.is_open:
            self._away_since = now
        self._emit(ServiceAway(service=self._service, sentence=sentence, seconds=round(self._breaker.until - now, 3)))
        self.changes.notify()

    # -------------------------------------------------------------------------------------- outages and denials

    def request_turn(self, lane: object = None, workspace: str = "") -> Wait | None:
        """Return None if the lane may send requests, possibly as the only probe; otherwise return why it must wait.

        A lane that may send calls `end_turn` afterwards.
        """
        now, lane = self._clock(), lane or self
        decision = self._breaker.decide(now)
        if decision == "wait":
            seconds = max(0.0, (self._breaker.until or now) - now)
            return self._wait("backing off", seconds, self._sentence, is_probing=self._breaker.probing)
        denials = [self._denials[scope] for scope in {"": 0, workspace: 0} if scope in self._denials]
        for denial in denials:
            if denial.prober is not None or now < denial.until:
                seconds = max(0.0, denial.until - now)
                return self._wait("paused", seconds, denial.sentence, is_probing=denial.prober is not None)
        for denial in denials:
            denial.prober = lane
        if decision == "probe":
            self._breaker, self._prober = self._breaker.with_probe(), lane
        return None

    def _wait(
        self, status: Literal["backing off", "paused"], seconds: float, sentence: str, *, is_probing: bool
    ) -> Wait:
        return Wait(
            status=status,
            until=self._now() + seconds,
            seconds=None if is_probing else seconds,
            sentence=sentence,
        )

    def end_turn(self, lane: object = None) -> None:
        """End a lane's turn. If the lane was the probe but sent no request, the next lane may be the probe."""
        lane = lane or self
        ended = [denial for denial in self._denials.values() if denial.prober is lane]
        for denial in ended:
            denial.prober = None
        if self._breaker.probing and self._prober is lane:
            self._breaker = self._breaker.without_probe()
            self.changes.notify()
        elif ended:
            self.changes.notify()

    def record_denial(self, denied: Denied, workspace: str, sentence: str) -> None:
        """Block all lanes that a denial concerns. Within `DeliveryLimits.denied_seconds`, one lane tries again for them."""
        now, scope = self._clock(), "" if denied == "service" else workspace
        known = self._denials.get(scope)
        if known is not None and (known.prober is not None or now < known.until):
            return  # the request was sent before the denial was known
        # At least half of the wait is fixed.
        seconds = self._denied_seconds * (1 + self._random()) / 2
        self._denials[scope] = _Denial(until=now + seconds, sentence=sentence)
        self.changes.notify()

    def clear_denial(self, scope: str) -> None:
        """Unblock a workspace, because it accepted a request; an empty ``scope`` unblocks the service."""
        if self._denials.pop(scope, None) is not None:
            self.changes.notify()

    def retry_now(self) -> None:
        """End the wait for the next probe."""
        self._breaker = self._breaker.with_probe_due(self._clock())
        for denial in self._denials.values():
            denial.until = self._clock()
        self.changes.notify()

    async def wait_for_turn(self, known: int, wait: Wait) -> None:
        """Wait until `request_turn` may return another result than ``wait``.

        ``known``: the generation of ``changes`` before `request_turn` was called; a later change ends the wait at once.
        """
        await self.changes.wait_past(known, seconds=wait.seconds)
