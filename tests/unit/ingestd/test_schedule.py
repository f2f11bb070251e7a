from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from ingestd.schedule import Schedule, Timing, missed, next_run
from ingestd.settings.schedule import Cron, Every

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str, zone: ZoneInfo = BERLIN) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()


def runs(expression: str, after: str, count: int, zone: str = "Europe/Berlin") -> list[str]:
    moment = at(after, ZoneInfo(zone))
    out = []
    for _ in range(count):
        moment = next_run(Cron(expression=expression, timezone=zone), after=moment)
        out.append(datetime.fromtimestamp(moment, ZoneInfo(zone)).strftime("%a %m-%d %H:%M%z"))
    return out


def test_a_daily_run_keeps_its_local_time_through_both_clock_changes() -> None:
    assert runs("0 4 * * *", "2026-03-28T12:00", 2) == ["Sun 03-29 04:00+0200", "Mon 03-30 04:00+0200"]
    assert runs("0 4 * * *", "2026-10-24T12:00", 2) == ["Sun 10-25 04:00+0100", "Mon 10-26 04:00+0100"]


def test_a_time_that_the_clock_skips_runs_once_at_the_next_existing_time() -> None:
    assert runs("30 2 * * *", "2026-03-28T12:00", 2) == ["Sun 03-29 03:00+0200", "Mon 03-30 02:30+0200"]
    assert runs("*/20 2 * * *", "2026-03-28T12:00", 2) == ["Sun 03-29 03:00+0200", "Mon 03-30 02:00+0200"]
    assert runs("30 2,3 * * *", "2026-03-28T12:00", 2) == ["Sun 03-29 03:00+0200", "Sun 03-29 03:30+0200"]


@pytest.mark.parametrize(
    ("zone", "expression", "after", "expected"),
    [
        ("Asia/Beirut", "0 0 * * *", "2026-03-28T12:00", ["Sun 03-29 01:00+0300", "Mon 03-30 00:00+0300"]),
        ("America/Havana", "0 0 * * *", "2026-03-07T12:00", ["Sun 03-08 01:00-0400", "Mon 03-09 00:00-0400"]),
        ("Africa/Cairo", "0 0 * * 5", "2026-04-20T12:00", ["Fri 04-24 01:00+0300", "Fri 05-01 00:00+0300"]),
        ("Pacific/Apia", "0 6 30 * *", "2011-12-28T12:00", ["Sat 12-31 00:00+1400", "Mon 01-30 06:00+1400"]),
        ("Australia/Lord_Howe", "15 2 * * *", "2026-10-03T12:00", ["Sun 10-04 02:30+1100", "Mon 10-05 02:15+1100"]),
    ],
)
def test_a_day_without_a_midnight_is_not_skipped(zone: str, expression: str, after: str, expected: list[str]) -> None:
    assert runs(expression, after, 2, zone) == expected


def test_a_time_that_the_clock_shows_twice_runs_once() -> None:
    assert runs("30 2 * * *", "2026-10-24T12:00", 2) == ["Sun 10-25 02:30+0200", "Mon 10-26 02:30+0100"]
    assert runs("*/30 2 * * *", "2026-10-25T02:15", 2) == ["Sun 10-25 02:30+0200", "Mon 10-26 02:00+0100"]
    second_time = datetime.fromisoformat("2026-10-25T02:10+01:00").timestamp()
    assert next_run(Cron(expression="30 2 * * *", timezone="Europe/Berlin"), after=second_time) == at(
        "2026-10-26T02:30"
    )


def test_a_half_hourly_run_runs_every_half_hour_of_elapsed_time() -> None:
    expected = ["Sun 10-25 02:30+0200", "Sun 10-25 02:00+0100", "Sun 10-25 02:30+0100", "Sun 10-25 03:00+0100"]
    assert runs("*/30 * * * *", "2026-10-25T02:15", 4) == expected
    assert runs("*/30 0-23 * * *", "2026-10-25T02:15", 4) == expected
    assert runs("30 * * * *", "2026-03-29T01:00", 2) == ["Sun 03-29 01:30+0100", "Sun 03-29 03:30+0200"]
    assert runs("0 * * * *", "2026-03-29T01:30", 2) == ["Sun 03-29 03:00+0200", "Sun 03-29 04:00+0200"]
    assert runs("0 * * * 0", "2026-10-25T01:30", 3) == [
        "Sun 10-25 02:00+0200",
        "Sun 10-25 02:00+0100",
        "Sun 10-25 03:00+0100",
    ]


@pytest.mark.parametrize(
    ("weekday", "expected"),
    [
        ("1", ["Mon", "Mon", "Mon"]),
        ("0", ["Sun", "Sun", "Sun"]),
        ("7", ["Sun", "Sun", "Sun"]),
        ("1-5", ["Fri", "Mon", "Tue"]),
        ("mon,Wed", ["Mon", "Wed", "Mon"]),
        ("fri-mon", ["Fri", "Sat", "Sun"]),
        ("*/3", ["Sat", "Sun", "Wed"]),
        ("5-7", ["Fri", "Sat", "Sun"]),
        ("SAT-mon", ["Sat", "Sun", "Mon"]),
        ("4/3", ["Sun", "Thu", "Sun"]),
    ],
)
def test_weekdays_are_numbered_as_in_cron(weekday: str, expected: list[str]) -> None:
    assert [run[:3] for run in runs(f"0 2 * * {weekday}", "2026-11-19T12:00", 3)] == expected  # a Thursday


def test_a_day_of_the_month_or_a_weekday_is_sufficient() -> None:
    assert [run[:9] for run in runs("0 0 15 * 1", "2026-11-10T00:00", 3)] == ["Sun 11-15", "Mon 11-16", "Mon 11-23"]


@pytest.mark.parametrize(
    "zone", ["Asia/Beirut", "America/Havana", "Africa/Cairo", "Europe/Berlin", "Africa/Casablanca"]
)
@pytest.mark.parametrize("expression", ["0 0 * * *", "30 2 * * *", "59 23 * * *", "30 1 * * *"])
def test_a_daily_run_happens_once_on_every_day_of_a_year_with_clock_changes(zone: str, expression: str) -> None:
    moment, end = at("2026-01-01T12:00", ZoneInfo(zone)), at("2027-01-01T12:00", ZoneInfo(zone))
    days = []
    while (due := next_run(Cron(expression=expression, timezone=zone), after=moment)) < end:
        assert due > moment
        moment = due
        days.append(datetime.fromtimestamp(due, ZoneInfo(zone)).date())
    assert len(days) == len(set(days)) == 365


NIGHTLY = Cron(expression="0 2 * * *", timezone="Europe/Berlin")


@pytest.mark.parametrize(
    ("timing", "last", "now", "expected"),
    [
        (NIGHTLY, "2026-11-20T02:00:03", "2026-11-20T23:00:00", False),
        (NIGHTLY, "2026-11-20T02:00:03", "2026-11-21T02:00:00", True),
        (NIGHTLY, "2026-11-18T02:00:03", "2026-11-21T09:00:00", True),
        (NIGHTLY, None, "2026-11-21T09:00:00", False),
        (Every(seconds=900), "2026-11-21T09:00:00", "2026-11-21T09:14:59", False),
        (Every(seconds=900), "2026-11-21T09:00:00", "2026-11-21T09:15:00", True),
        (Every(seconds=900), None, "2026-11-21T09:15:00", True),
    ],
)
def test_a_run_that_was_due_while_no_daemon_ran_was_missed(
    timing: Timing, last: str | None, now: str, expected: bool
) -> None:
    assert missed(timing, last_run_at=at(last) if last else None, now=at(now)) is expected


OFTEN = Every(seconds=0.02)  # type: ignore[arg-type]  # a configuration has whole seconds, a test has less time


class Woken:
    """Collects the pipelines that were woken, and lets a test wait for the n-th time."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._changed = asyncio.Event()

    def __call__(self, name: str) -> None:
        self.names.append(name)
        self._changed.set()

    async def wait_for(self, name: str, times: int) -> None:
        async with asyncio.timeout(10):
            while self.names.count(name) < times:
                self._changed.clear()
                await self._changed.wait()


@contextlib.asynccontextmanager
async def running(schedule: Schedule) -> AsyncIterator[None]:
    task = asyncio.create_task(schedule.run())
    yield
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def moment() -> float:
    return datetime.now(UTC).timestamp()


class Clocks:
    """A wall clock and a monotonic clock that advance only while the schedule sleeps; ``at`` changes the wall clock meanwhile."""

    def __init__(self, begin: float) -> None:
        self.wall = begin
        self.uptime = 1000.0
        self.changes: list[tuple[float, float]] = []
        self._end = 0.0
        self._over = asyncio.Event()

    def set_wall(self, *, after_seconds: float, by: float) -> None:
        self.changes.append((self.uptime + after_seconds, by))

    async def sleep(self, seconds: float) -> None:
        end = self.uptime + seconds
        due = [change for change in self.changes if change[0] <= end]
        self.changes = [change for change in self.changes if change[0] > end]
        self.wall += seconds + sum(by for _, by in due)
        self.uptime = end
        if self.uptime >= self._end:
            self._over.set()
        await asyncio.sleep(0)

    async def run(self, timing: Timing, *, seconds: float, last: float | None = None) -> list[float]:
        """Return the wall clock's times of all runs within ``seconds`` of elapsed time."""
        times: list[float] = []
        schedule = Schedule(
            {"a": timing},
            wake=lambda _: times.append(self.wall),
            last_run_at={} if last is None else {"a": last},
            now=lambda: self.wall,
            elapsed=lambda: self.uptime,
            sleep=self.sleep,
        )
        self._end = self.uptime + seconds
        async with running(schedule):
            await self._over.wait()
        return times


HOURLY = Cron(expression="0 * * * *", timezone="Europe/Berlin")


async def test_setting_the_clock_back_does_not_delay_an_interval() -> None:
    clocks = Clocks(at("2026-06-01T10:00:30"))
    clocks.set_wall(after_seconds=90, by=-3600)
    times = await clocks.run(Every(seconds=60), seconds=301, last=at("2026-06-01T10:00:00"))
    assert len(times) == 5


async def test_a_last_run_in_the_future_does_not_delay_an_interval() -> None:
    clocks = Clocks(at("2026-06-01T09:00:00"))
    times = await clocks.run(Every(seconds=60), seconds=61, last=at("2026-06-01T10:00:00"))
    assert times == [at("2026-06-01T09:01:00")]


async def test_a_clock_that_is_set_to_just_before_a_run_starts_it_on_time() -> None:
    clocks = Clocks(at("2026-06-01T10:20:00"))
    clocks.set_wall(after_seconds=10, by=39 * 60 + 45)  # to 10:59:55
    times = await clocks.run(HOURLY, seconds=60)
    assert len(times) == 1
    assert 0 <= times[0] - at("2026-06-01T11:00:00") <= 5


async def test_a_clock_that_is_set_forward_over_several_runs_repeats_one_of_them() -> None:
    clocks = Clocks(at("2026-06-01T10:20:00"))
    clocks.set_wall(after_seconds=10, by=5 * 3600)
    times = await clocks.run(HOURLY, seconds=60)
    assert len(times) == 1
    assert times[0] - at("2026-06-01T15:20:10") <= 5


async def test_a_clock_that_is_set_back_runs_cron_at_the_displayed_times() -> None:
    clocks = Clocks(at("2026-06-01T10:58:00"))
    clocks.set_wall(after_seconds=180, by=-3600)  # 11:01 becomes 10:01
    times = await clocks.run(HOURLY, seconds=180 + 3600)
    assert [time_of(found) for found in times] == ["11:00", "11:00"]


def time_of(moment: float) -> str:
    return datetime.fromtimestamp(moment, BERLIN).strftime("%H:%M")


async def test_a_periodic_pipeline_is_woken_repeatedly() -> None:
    woken = Woken()
    schedule = Schedule({"a": OFTEN}, wake=woken, last_run_at={}, now=moment)
    async with running(schedule):
        await woken.wait_for("a", 4)


async def test_a_missed_run_happens_once_at_the_start_and_others_wait() -> None:
    woken = Woken()
    timings: dict[str, Timing] = {
        "missed-cron": NIGHTLY,
        "missed-every": Every(seconds=3600),
        "new-cron": NIGHTLY,
        "recent": Every(seconds=3600),
        "due": Every(seconds=3600),
    }
    last = {
        "missed-cron": moment() - 7 * 86400,
        "missed-every": moment() - 86400,
        "recent": moment(),
        "due": moment() - 3599.9,
    }
    async with running(Schedule(timings, wake=woken, last_run_at=last, now=moment)):
        await woken.wait_for("due", 1)
        assert sorted(woken.names) == ["due", "missed-cron", "missed-every"]


async def test_cancelling_ends_the_schedule_and_no_pipeline_is_woken_afterwards() -> None:
    woken = Woken()
    async with running(Schedule({"a": OFTEN}, wake=woken, last_run_at={}, now=moment)):
        await woken.wait_for("a", 2)
    count = len(woken.names)
    marker = Woken()
    async with running(Schedule({"b": OFTEN}, wake=marker, last_run_at={}, now=moment)):
        await marker.wait_for("b", 4)
    assert len(woken.names) == count


async def test_replaced_timings_keep_the_next_runs_of_unchanged_pipelines() -> None:
    clocks = Clocks(at("2026-06-01T10:00:00"))
    woken: list[tuple[str, float]] = []
    begin = clocks.wall
    schedule = Schedule(
        {"kept": Every(seconds=100), "changed": Every(seconds=100), "removed": Every(seconds=30)},
        wake=lambda name: woken.append((name, clocks.wall - begin)),
        last_run_at={"kept": begin, "changed": begin, "removed": begin},
        now=lambda: clocks.wall,
        elapsed=lambda: clocks.uptime,
        sleep=clocks.sleep,
    )
    clocks._end = clocks.uptime + 60
    async with running(schedule):
        await clocks._over.wait()
        clocks._over.clear()
        clocks._end = clocks.uptime + 60
        at_change = clocks.wall - begin
        schedule.replace(
            {"kept": Every(seconds=100), "changed": Every(seconds=20), "added": Every(seconds=500)},
            last_run_at={"kept": clocks.wall, "changed": clocks.wall},
            restarted=["changed", "added"],
        )
        await clocks._over.wait()
    assert ("removed", 30.0) in woken
    assert max(time for name, time in woken if name == "removed") <= at_change
    assert ("added", at_change) in woken  # it never ran
    assert [time for name, time in woken if name == "kept"] == [100.0]
    assert [time for name, time in woken if name == "changed"][:2] == [at_change + 20, at_change + 40]


async def test_the_next_run_is_known_by_the_wall_clock_for_an_interval_and_for_cron() -> None:
    begin = at("2026-11-21T12:00")
    never = asyncio.Event()
    asleep = asyncio.Event()

    async def sleep(_seconds: float) -> None:
        asleep.set()
        await never.wait()

    timings: dict[str, Timing] = {"interval": Every(seconds=900), "nightly": NIGHTLY}
    schedule = Schedule(
        timings,
        wake=lambda _: None,
        last_run_at={"interval": begin - 300, "nightly": begin - 60},
        now=lambda: begin,
        elapsed=lambda: 1_000.0,
        sleep=sleep,
    )
    assert schedule.next_runs() == {}, "nothing is due before it runs"
    async with running(schedule):
        await asleep.wait()
        assert schedule.next_runs() == {"interval": begin + 600, "nightly": at("2026-11-22T02:00")}
