"""When a pipeline runs although no event woke it: at an interval, or by cron in a time zone. The only importer of apscheduler.

The rules of cron, where programs differ (they follow crontab(5) of Debian where it is precise):

* Weekday 0 and 7 are Sunday and 1 is Monday. Where both the day of the month and the weekday are restricted, either is enough.
* A local time that does not exist, because the clock is put forward over it, runs at the first instant that exists after it.
  Several such times run once.
* A local time that exists twice, because the clock is put back, runs the first time only.
* An expression that selects every hour follows real time: it neither misses nor repeats one.

The schedule follows the wall clock and notices when it is set. Intervals are measured on the monotonic clock.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TypeAlias
from zoneinfo import ZoneInfo

from apscheduler.triggers.cron import CronTrigger

from ingestd.settings.schedule import Cron, Every

Timing: TypeAlias = Every | Cron

CLOCK_CHECK_SECONDS = 5.0
"""The longest sleep: after a change of the clock, or a suspended machine, a due run is late by no more than this."""

_SET_BACK_SECONDS = 1.0
"""A clock that loses more than this between two checks was set back; less is the work of a time service."""


def next_run(timing: Timing, *, after: float) -> float | None:
    """The first time after ``after`` at which ``timing`` is due, both in seconds since the epoch; None for never."""
    if isinstance(timing, Every):
        return after + timing.seconds
    fire = _Crontab(timing).next_fire(datetime.fromtimestamp(after, UTC))
    return fire.timestamp() if fire else None


def missed(timing: Timing, *, last_run_at: float | None, now: float) -> bool:
    """Whether a run is due already: one was missed while no daemon ran, or a periodic pipeline has never run at all."""
    if last_run_at is None:
        return isinstance(timing, Every)
    due = next_run(timing, after=last_run_at)
    return due is not None and due <= now


class Schedule:
    """Wakes pipelines by the clock. It does nothing but call ``wake``; the work runs wherever that leads.

    ``last_run_at``: when each pipeline's last run began (seconds since the epoch), where there was one; what was missed
    since then is made up for once, at the start of `run`. ``wake`` is called on the event loop and must not block.
    ``now``: the wall clock; ``elapsed``: a clock in seconds that is never set and also runs while the machine is suspended.
    """

    def __init__(
        self,
        timings: Mapping[str, Timing],
        *,
        wake: Callable[[str], None],
        last_run_at: Mapping[str, float],
        now: Callable[[], float],
        elapsed: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._wake = wake
        self._now = now
        self._elapsed = elapsed
        self._sleep = sleep
        self._last_run_at = dict(last_run_at)
        self._intervals = {name: timing.seconds for name, timing in timings.items() if isinstance(timing, Every)}
        self._crontabs = {name: _Crontab(timing) for name, timing in timings.items() if isinstance(timing, Cron)}
        self._timings = dict(timings)
        # Each pipeline's next run: of an interval by `elapsed`, of cron by `now`. One that is never due is not listed.
        self._interval_due: dict[str, float] = {}
        self._cron_due: dict[str, float] = {}

    async def run(self) -> None:
        """Wake pipelines until cancelled. With nothing to schedule it waits for the cancellation all the same."""
        if not self._timings:
            await asyncio.get_running_loop().create_future()
        self._begin()
        ahead = self._now() - self._elapsed()
        while True:
            await self._sleep(min(CLOCK_CHECK_SECONDS, self._seconds_left()))
            before, ahead = ahead, self._now() - self._elapsed()
            if ahead < before - _SET_BACK_SECONDS:
                for name in self._crontabs:
                    self._plan_cron(name)
            self._fire()

    def _begin(self) -> None:
        now, elapsed = self._now(), self._elapsed()
        for name, timing in self._timings.items():
            last = self._last_run_at.get(name)
            due = missed(timing, last_run_at=last, now=now)
            if due:
                self._wake(name)
            if isinstance(timing, Cron):
                self._plan_cron(name)
            else:
                # A last run in the future is one that was made before the clock was set back.
                left = timing.seconds if due or last is None else min(last + timing.seconds - now, timing.seconds)
                self._interval_due[name] = elapsed + left

    def _plan_cron(self, name: str) -> None:
        fire = self._crontabs[name].next_fire(datetime.fromtimestamp(self._now(), UTC))
        if fire is None:
            self._cron_due.pop(name, None)
        else:
            self._cron_due[name] = fire.timestamp()

    def _seconds_left(self) -> float:
        """Until the next run, at least 0; infinite where none is due ever."""
        by_interval = min(self._interval_due.values(), default=float("inf")) - self._elapsed()
        by_cron = min(self._cron_due.values(), default=float("inf")) - self._now()
        return max(0.0, min(by_interval, by_cron))

    def _fire(self) -> None:
        """Wake what is due. Several runs that were due meanwhile are one."""
        now, elapsed = self._now(), self._elapsed()
        for name, due in list(self._interval_due.items()):
            if due <= elapsed:
                seconds = self._intervals[name]
                self._interval_due[name] = due + seconds if due + seconds > elapsed else elapsed + seconds
                self._wake(name)
        for name, due in list(self._cron_due.items()):
            if due <= now:
                self._plan_cron(name)
                self._wake(name)


class _Crontab:
    """A crontab line on the clock of a time zone, with the rules of this module's docstring.

    apscheduler finds the times on a clock without changes (it skips times that do not exist); this class maps them to
    instants of the zone.
    """

    def __init__(self, timing: Cron) -> None:
        minute, hour, day, month, weekday = timing.expression.lower().split()
        weekdays = _weekdays(weekday)
        either = not day.startswith("*") and not weekday.startswith("*")
        self._zone = ZoneInfo(timing.timezone)
        self._alternatives = [
            CronTrigger(minute=minute, hour=hour, day=days, month=month, day_of_week=names, timezone=UTC)
            for days, names in ([(day, "*"), ("*", weekdays)] if either else [(day, weekdays)])
        ]
        self._selects_every_hour = hour == "*" or {*range(24)} <= _selected_hours(hour)

    def next_fire(self, after: datetime) -> datetime | None:
        """The first instant after ``after``, which has a time zone; None for never."""
        return self._next_by_real_time(after) if self._selects_every_hour else self._next_by_local_time(after)

    def _next_by_local_time(self, after: datetime) -> datetime | None:
        local: datetime | None = after.astimezone(self._zone).replace(tzinfo=None)
        while local is not None and (local := self._next_shown(local)) is not None:
            fire = self._first_instant(local)
            if fire > after:  # else it is the second time that the clock shows it
                return fire
        return None

    def _next_by_real_time(self, after: datetime) -> datetime | None:
        begin, inclusive = after, False
        while True:
            offset = _offset(begin, self._zone)
            local = self._next_shown(begin.astimezone(self._zone).replace(tzinfo=None), inclusive=inclusive)
            if local is None:
                return None
            fire = (local - offset).replace(tzinfo=UTC)
            if _offset(fire, self._zone) == offset:
                return fire
            # The clock changes before that: the search goes on from the change, with the time that it shows then.
            begin, inclusive = _change(begin, fire, self._zone), True

    def _next_shown(self, local: datetime, *, inclusive: bool = False) -> datetime | None:
        """The first time after (or at) ``local`` that a clock without changes would show, both without a time zone."""
        begin = local.replace(tzinfo=UTC) + timedelta(microseconds=0 if inclusive else 1)
        found = [trigger.get_next_fire_time(None, begin) for trigger in self._alternatives]
        return min((fire.replace(tzinfo=None) for fire in found if fire is not None), default=None)

    def _first_instant(self, local: datetime) -> datetime:
        """When the clock first shows ``local``; where it never does, when it was put forward over it."""
        early = local.replace(tzinfo=self._zone).astimezone(UTC)
        if early.astimezone(self._zone).replace(tzinfo=None) == local:
            return early
        # For a time that does not exist, fold 1 means the offset after the change, which gives an instant before it.
        return _change(local.replace(tzinfo=self._zone, fold=1).astimezone(UTC), early, self._zone)


def _offset(instant: datetime, zone: ZoneInfo) -> timedelta:
    return instant.astimezone(zone).utcoffset() or timedelta()


def _change(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """The first whole second after ``before`` at which the zone's offset differs, up to ``after``, where it does."""
    offset = _offset(before, zone)
    low, high = int(before.timestamp()), int(after.timestamp())
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(datetime.fromtimestamp(middle, UTC), zone) == offset:
            low = middle
        else:
            high = middle
    return datetime.fromtimestamp(high, UTC)


def _selected_hours(field: str) -> set[int]:
    """The hours that a crontab's hour field selects."""
    hours: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, dash, last = ("0", "-", "23") if span == "*" else span.partition("-")
        hours.update(range(int(first), int(last if dash else 23 if step else first) + 1, int(step or 1)))
    return hours


_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


def _weekdays(field: str) -> str:
    """A crontab's weekday field as apscheduler's list of names: it counts from Monday where cron counts from Sunday."""
    if field == "*":
        return field
    days: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, dash, last = ("0", "-", "6") if span == "*" else span.partition("-")
        begin = _weekday(first)
        end = _weekday(last) if dash else 7 if step else begin
        end += 7 if end < begin else 0  # sat-mon goes over the week's end
        days.update(day % 7 for day in range(begin, end + 1, int(step or 1)))
    return ",".join(_NAMES[day] for day in sorted(days))


def _weekday(text: str) -> int:
    return int(text) if text.isdigit() else _NAMES.index(text)
