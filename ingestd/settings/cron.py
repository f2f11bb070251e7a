"""Cron expressions of five fields: minute, hour, day of the month, month, weekday. Only this module imports apscheduler.

The rules follow crontab(5) of Debian. Here, more expressions follow the rules for changes of the clock:

* Weekdays 0 and 7 are Sunday. If the day of the month and the weekday are both restricted, a match of either is sufficient.
* If the clock is put forward over a selected time, the run is at the first instant after the change. Several skipped times
  cause one run.
* If the clock is put back and shows a selected time twice, the run is at the first of the two instants.
* An expression that selects every hour follows real time: it neither misses nor repeats an hour.

apscheduler finds the times of a clock without changes; this module maps them to instants of a time zone.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from ingestd.core.phrases import shortened

_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun")


class _Field(NamedTuple):
    name: str
    lowest: int
    highest: int
    values: str
    largest_step: int
    names: tuple[str, ...] = ()
    """The names of the values, in ascending order from ``lowest``."""


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FIELDS = (
    _Field("minute", 0, 59, "0 to 59", 59),
    _Field("hour", 0, 23, "0 to 23", 23),
    _Field("day of the month", 1, 31, "1 to 31", 30),
    _Field("month", 1, 12, "1 to 12 or jan to dec", 11, _MONTHS),
    _Field("day of the week", 0, 7, "0 to 7 (0 and 7 are Sunday) or sun to sat", 6, _WEEKDAYS),
)
_LONGEST = {month: 29 if month == 2 else 30 if month in {4, 6, 9, 11} else 31 for month in range(1, 13)}
_ITEM = re.compile(
    r"(?:\*|(?P<first>[0-9]{1,3}|[a-z]{3})(?:-(?P<last>[0-9]{1,3}|[a-z]{3}))?)(?:/(?P<step>[0-9]{1,3}))?"
)


class CronError(ValueError):
    """An expression that cannot be used; ``position`` is the 0-based offset of the field."""

    def __init__(self, sentence: str, position: int) -> None:
        self.position = position
        super().__init__(sentence)


def check_cron(text: str) -> str:
    """Return ``text``, which must be a cron expression.

    Raises:
        CronError: the expression can't be used; the sentence names the field.
    """
    _Crontab(text, ZoneInfo("UTC"))
    return text


def next_cron_run(text: str, timezone: str, *, after: float) -> float:
    """Return the first time after ``after`` that ``text`` selects in ``timezone``, both in seconds since the epoch.

    Raises:
        CronError: see `check_cron`.
    """
    return _Crontab(text, ZoneInfo(timezone)).next_run(datetime.fromtimestamp(after, UTC)).timestamp()


class _Crontab:
    """An expression on the clock of a time zone."""

    def __init__(self, text: str, zone: ZoneInfo) -> None:
        words = list(re.finditer(r"\S+", text))
        if len(words) != len(_FIELDS):
            raise CronError(
                f"Expected five fields (minute, hour, day of the month, month, day of the week), found {len(words)}.", 0
            )
        selected = [_values(field, word[0].lower(), word.start()) for field, word in zip(_FIELDS, words, strict=True)]
        from apscheduler.triggers.cron import CronTrigger  # noqa: PLC0415 - most pipelines have no cron expression

        minute, hour, day, month = (",".join(map(str, sorted(values))) for values in selected[:4])
        weekday = ",".join(sorted({_WEEKDAYS[number] for number in selected[4]}))  # apscheduler counts from Monday
        either = not words[2][0].startswith("*") and not words[4][0].startswith("*")
        self._zone = zone
        self._triggers = [
            CronTrigger(minute=minute, hour=hour, day=days, month=month, day_of_week=weekdays, timezone=UTC)
            for days, weekdays in ([(day, "*"), ("*", weekday)] if either else [(day, weekday)])
        ]
        self._selects_every_hour = len(selected[1]) == 24
        if not either and min(selected[2]) > max(_LONGEST[number] for number in selected[3]):
            raise CronError("No selected month has such a day, so this would never run.", words[2].start())

    def next_run(self, after: datetime) -> datetime:
        """Return the first selected instant after ``after``, which has a time zone."""
        return self._next_by_real_time(after) if self._selects_every_hour else self._next_by_local_time(after)

    def _next_by_local_time(self, after: datetime) -> datetime:
        local = after.astimezone(self._zone).replace(tzinfo=None)
        while True:
            local = self._next_local(local)
            run = self._first_instant(local)
            if run > after:  # else the clock shows this time for the second time
                return run

    def _next_by_real_time(self, after: datetime) -> datetime:
        begin, inclusive = after, False
        while True:
            offset = _offset(begin, self._zone)
            local = self._next_local(begin.astimezone(self._zone).replace(tzinfo=None), inclusive=inclusive)
            run = (local - offset).replace(tzinfo=UTC)
            if _offset(run, self._zone) == offset:
                return run
            # The clock changes before ``run``: the search continues at the change, with the new local time.
            begin, inclusive = _change(begin, run, self._zone), True

    def _next_local(self, local: datetime, *, inclusive: bool = False) -> datetime:
        """Return the first selected time after (or at) ``local`` of a clock without changes, both without a time zone."""
        begin = local.replace(tzinfo=UTC) + timedelta(microseconds=0 if inclusive else 1)
        found: list[datetime | None] = [trigger.get_next_fire_time(None, begin) for trigger in self._triggers]
        return min(run for run in found if run is not None).replace(tzinfo=None)

    def _first_instant(self, local: datetime) -> datetime:
        """Return when the clock first shows ``local``, or when it was put forward over ``local``."""
        early = local.replace(tzinfo=self._zone).astimezone(UTC)
        if early.astimezone(self._zone).replace(tzinfo=None) == local:
            return early
        # For a time that does not exist, fold 1 means the offset after the change, which gives an instant before the change.
        return _change(local.replace(tzinfo=self._zone, fold=1).astimezone(UTC), early, self._zone)


def _offset(instant: datetime, zone: ZoneInfo) -> timedelta:
    return instant.astimezone(zone).utcoffset() or timedelta()


def _change(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """Return the first whole second after ``before`` with another UTC offset. ``after``: a time with another offset."""
    offset = _offset(before, zone)
    low, high = int(before.timestamp()), int(after.timestamp())
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(datetime.fromtimestamp(middle, UTC), zone) == offset:
            low = middle
        else:
            high = middle
    return datetime.fromtimestamp(high, UTC)


def _values(field: _Field, text: str, position: int) -> set[int]:
    """Return the values that a field selects."""
    selected: set[int] = set()
    for item in text.split(","):
        found = _ITEM.fullmatch(item)
        values = _range(field, found) if found else range(0)
        if not values:
            raise CronError(
                f"The {field.name} '{shortened(item)}' cannot be used; expected a value from {field.values}, a range such as "
                "1-5 with the smaller value first, or *, and for a range or * a step such as */10.",
                position,
            )
        if values.step > field.largest_step:
            raise CronError(
                f"The {field.name} '{item}' has a step of {values.step}; expected 1 to {field.largest_step}.", position
            )
        selected.update(value % 7 if field.names is _WEEKDAYS else value for value in values)
    return selected


def _range(field: _Field, item: re.Match[str]) -> range:
    """Return the values of an item; an empty range if it cannot be used. Weekdays may extend over Saturday (sat-mon)."""
    first = _number(field, item["first"]) if item["first"] else field.lowest
    last = (
        _number(field, item["last"]) if item["last"] else field.highest if item["step"] or not item["first"] else first
    )
    step = int(item["step"] or 1)
    if first is None or last is None or step == 0:
        return range(0)
    if last < first and field.names is _WEEKDAYS and not item["step"]:
        last += 7
    return range(first, last + 1, step)


def _number(field: _Field, word: str) -> int | None:
    """Return the value of a number or a name; None if the field has no such value."""
    if word in field.names:
        return field.lowest + field.names.index(word)
    return int(word) if word.isdigit() and field.lowest <= int(word) <= field.highest else None
