"""Runs pipelines at an interval or by a cron expression (see `ingestd.settings.cron`).

Cron times follow the wall clock, even after it is set. Intervals are measured by a clock that can't be set.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TypeAlias

from ingestd.settings.cron import next_cron_run
from ingestd.settings.schedule import Cron, Every

Timing: TypeAlias = Every | Cron

CLOCK_CHECK_SECONDS = 5.0
"""The maximum sleep. After the clock was set or the machine was suspended, a due run is late by at most this time."""

_SET_BACK_SECONDS = 1.0
"""If the clock loses more than this time between two checks, it was set back. Time services make smaller corrections."""


def next_run(timing: Timing, *, after: float) -> float:
    """Return the first time after ``after`` at which ``timing`` is due, both in seconds since the epoch."""
    if isinstance(timing, Every):
        return after + timing.seconds
    return next_cron_run(timing.expression, timing.timezone, after=after)


def missed(timing: Timing, *, last_run_at: float | None, now: float) -> bool:
    """Return True if a run is due at the start: a run was missed, or a pipeline with an interval has never run."""
    if last_run_at is None:
        return isinstance(timing, Every)
    return next_run(timing, after=last_run_at) <= now


def boot_time() -> float:
    """Return the seconds since the machine started, including suspended time. Setting the clock does not change them."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Schedule:
    """Wakes pipelines when they are due, by calling ``wake`` on the event loop; ``wake`` must not block.

    ``last_run_at``: the start of the last run of each pipeline that has run (seconds since the epoch). If a pipeline has
    missed runs since then, `run` wakes it once when it starts.
    ``now``: the wall clock. ``elapsed``: a clock in seconds that cannot be set and runs while the machine is suspended.
    """

    def __init__(
        self,
        timings: Mapping[str, Timing],
        *,
        wake: Callable[[str], None],
        last_run_at: Mapping[str, float],
        now: Callable[[], float],
        elapsed: Callable[[], float] = boot_time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._wake = wake
        self._now = now
        self._elapsed = elapsed
        self._sleep = sleep
        self._last_run_at = dict(last_run_at)
        self._timings = dict(timings)
        self._sleeping: asyncio.Future[None] | None = None
        # The time of each pipeline's next run: by the clock `elapsed` for intervals, by the clock `now` for cron.
        self._interval_due: dict[str, float] = {}
        self._cron_due: dict[str, float] = {}

    async def run(self) -> None:
        """Wake pipelines until cancelled, even if there is nothing to schedule."""
        self._begin(self._timings)
        ahead = self._now() - self._elapsed()
        while True:
            await self._pause()
            before, ahead = ahead, self._now() - self._elapsed()
            if ahead < before - _SET_BACK_SECONDS:
                self._plan_crons()
            self._wake_due()

    def replace(
        self, timings: Mapping[str, Timing], *, last_run_at: Mapping[str, float], restarted: Collection[str]
    ) -> None:
        """Use other timings. A pipeline keeps the time of its next run, unless its timing changed or it is in ``restarted``.

        All other pipelines start as in `run`. Call this method on the event loop.
        """
        begun = {
            name: timing for name, timing in timings.items() if name in restarted or self._timings.get(name) != timing
        }
        for name in self._timings.keys() - (timings.keys() - begun.keys()):
            self._interval_due.pop(name, None)
            self._cron_due.pop(name, None)
        self._timings = dict(timings)
        self._last_run_at = dict(last_run_at)
        if self._sleeping is not None:
            self._begin(begun)
            self._sleeping.cancel()

    def next_runs(self) -> dict[str, float]:
        """Return when each pipeline is due next, in seconds since the epoch; empty before `run`. Thread-safe."""
        ahead = self._now() - self._elapsed()
        # Copying a dict is atomic, so another thread can't change it meanwhile.
        by_interval = {name: due + ahead for name, due in self._interval_due.copy().items()}
        return by_interval | self._cron_due

    async def _pause(self) -> None:
        """Sleep until the next run or the next check of the clock. `replace` ends the sleep."""
        if self._timings:
            seconds = min(CLOCK_CHECK_SECONDS, self._seconds_left())
            self._sleeping = asyncio.ensure_future(self._sleep(seconds))
        else:
            self._sleeping = asyncio.get_running_loop().create_future()
        try:
            await asyncio.wait([self._sleeping])
        finally:
            self._sleeping.cancel()
        if not self._sleeping.cancelled():
            self._sleeping.result()

    def _begin(self, timings: Mapping[str, Timing]) -> None:
        now, elapsed = self._now(), self._elapsed()
        for name, timing in timings.items():
            last = self._last_run_at.get(name)
            due = missed(timing, last_run_at=last, now=now)
            if due:
                self._wake(name)
            if isinstance(timing, Every):
                # If the last run is in the future, the clock was set back after that run.
                left = timing.seconds if due or last is None else min(last + timing.seconds - now, timing.seconds)
                self._interval_due[name] = elapsed + left
            else:
                self._cron_due[name] = next_run(timing, after=now)

    def _plan_crons(self) -> None:
        now = self._now()
        self._cron_due = {
            name: next_run(timing, after=now) for name, timing in self._timings.items() if isinstance(timing, Cron)
        }

    def _seconds_left(self) -> float:
        """Return the seconds until the next run, at least 0; infinity if there is nothing to schedule."""
        by_interval = min(self._interval_due.values(), default=float("inf")) - self._elapsed()
        by_cron = min(self._cron_due.values(), default=float("inf")) - self._now()
        return max(0.0, min(by_interval, by_cron))

    def _wake_due(self) -> None:
        """Wake the pipelines that are due. Several due runs of one pipeline count as one run."""
        now, elapsed = self._now(), self._elapsed()
        for name, timing in self._timings.items():
            if isinstance(timing, Every):
                due = self._interval_due[name]
                if due <= elapsed:
                    following = due + timing.seconds
                    self._interval_due[name] = following if following > elapsed else elapsed + timing.seconds
                    self._wake(name)
            elif self._cron_due[name] <= now:
                self._cron_due[name] = next_run(timing, after=now)
                self._wake(name)
