"""When a pipeline runs although nothing woke it: every so often, or by cron in a time zone. The only importer of apscheduler.

What people expect of cron is kept where apscheduler differs: weekday 0 and 7 are Sunday and 1 is Monday; where both the
day of the month and the weekday are restricted, either is enough; a fixed hour runs once in the night in which the clock
is put back, and an hour later in the night in which it is put forward over it (as crontab(5) of Debian has it).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

from ingestd.settings.schedule import Cron, Every

Timing: TypeAlias = Every | Cron


def next_run(timing: Timing, *, after: float) -> float | None:
    """The first time after ``after`` at which ``timing`` is due, both in seconds since the epoch; None for never."""
    if isinstance(timing, Every):
        return after + timing.seconds
    begin = datetime.fromtimestamp(after, UTC) + timedelta(microseconds=1)
    fire = _Crontab(timing).get_next_fire_time(None, begin)
    return fire.timestamp() if fire else None


def missed(timing: Timing, *, last_run_at: float | None, now: float) -> bool:
    """Whether a run is due already: one was missed while nobody ran, or a periodic pipeline has never run at all."""
    if last_run_at is None:
        return isinstance(timing, Every)
    due = next_run(timing, after=last_run_at)
    return due is not None and due <= now


class Schedule:
    """Wakes pipelines by the clock. A job does nothing but call ``wake``; the work runs wherever that leads.

    ``last_run_at``: when each pipeline's last run began (seconds since the epoch), where there was one; what was missed
    since then is made up for once, at the start of `run`. ``wake`` is called on the event loop and must not block.
    """

    def __init__(
        self,
        timings: Mapping[str, Timing],
        *,
        wake: Callable[[str], None],
        last_run_at: Mapping[str, float],
        now: Callable[[], float],
    ) -> None:
        self._timings = dict(timings)
        self._wake = wake
        self._last_run_at = dict(last_run_at)
        self._now = now

    async def run(self) -> None:
        """Wake pipelines until cancelled. With nothing to schedule it waits for the cancellation all the same."""
        scheduler = AsyncIOScheduler(
            timezone=UTC,
            # A late run still runs, several late ones are one, and a pipeline is never woken twice at a time.
            job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1},
        )
        for pipeline, timing in self._timings.items():
            scheduler.add_job(self._fire, trigger=self._trigger(pipeline, timing), args=[pipeline], id=pipeline)
        scheduler.start()
        try:
            await asyncio.Event().wait()
        finally:
            scheduler.shutdown(wait=False)
            await asyncio.sleep(0)  # apscheduler shuts down in a callback of the loop; let it run before the loop ends

    def _trigger(self, pipeline: str, timing: Timing) -> Any:
        now = self._now()
        last = self._last_run_at.get(pipeline)
        due = missed(timing, last_run_at=last, now=now)
        if due:
            self._wake(pipeline)
        if isinstance(timing, Cron):
            return _Crontab(timing)
        first = now + timing.seconds if due or last is None else last + timing.seconds
        return IntervalTrigger(seconds=timing.seconds, start_date=datetime.fromtimestamp(first, UTC), timezone=UTC)

    async def _fire(self, pipeline: str) -> None:
        # A coroutine, so that apscheduler runs it on the loop and not in a pool of threads.
        self._wake(pipeline)


class _Crontab(BaseTrigger):  # type: ignore[misc]  # apscheduler ships no types
    """A crontab line on the clock of a time zone, with the rules told at the top of this module."""

    def __init__(self, timing: Cron) -> None:
        minute, hour, day, month, weekday = timing.expression.lower().split()
        weekdays = _weekdays(weekday)
        either = not day.startswith("*") and not weekday.startswith("*")
        self._zone = ZoneInfo(timing.timezone)
        self._by_the_hour = hour.startswith("*")
        self._alternatives = [
            CronTrigger(minute=minute, hour=hour, day=days, month=month, day_of_week=names, timezone=self._zone)
            for days, names in ([(day, "*"), ("*", weekdays)] if either else [(day, weekdays)])
        ]

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None:
        begin = now if previous_fire_time is None else previous_fire_time.astimezone(UTC) + timedelta(microseconds=1)
        while True:
            due: list[datetime | None] = [
                trigger.get_next_fire_time(None, begin.astimezone(self._zone)) for trigger in self._alternatives
            ]
            # Through UTC, so that an hour that the clock skips becomes the one it shows instead.
            real = [fire.astimezone(UTC) for fire in due if fire is not None]
            if not real:
                return None
            fire = min(real).astimezone(self._zone)
            if self._by_the_hour or not fire.fold:
                return fire
            begin = fire.astimezone(UTC) + timedelta(microseconds=1)


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
