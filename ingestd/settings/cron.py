"""Cron expressions of five fields: minute, hour, day of the month, month, day of the week.

cronsim finds the times. The rules are those of crontab(5) of Debian, with two additions:

* A range of weekdays may extend over Saturday (sat-mon).
* The rules for changes of the clock depend on the selected hours only. An expression that selects every hour follows real
  time: it neither misses nor repeats an hour. For any other expression, a local time that does not exist runs at the first
  instant after it, and a local time that exists twice runs the first time only.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from ingestd.core.phrases import shortened

_FIELDS = (
    ("minute", "0 to 59", 59),
    ("hour", "0 to 23", 23),
    ("day of the month", "1 to 31", 30),
    ("month", "1 to 12 or jan to dec", 11),
    ("day of the week", "0 to 7 (0 and 7 are Sunday) or sun to sat", 6),
)
"""The name, the values and the largest step of each field. cronsim accepts larger steps."""
_WEEKDAY = 4
_ITEM = re.compile(
    r"(?:\*|(?:\d{1,3}|[a-z]{3})(?P<last>-(?:\d{1,3}|[a-z]{3}))?)(?:/(?P<step>\d{1,3}))?", re.ASCII | re.IGNORECASE
)
"""cronsim also reads L and #, which crontab(5) does not have."""


class CronError(ValueError):
    """An expression that cannot be used; ``position`` is the 0-based offset of the field."""

    def __init__(self, sentence: str, position: int) -> None:
        self.position = position
        super().__init__(sentence)


def check_cron(text: str) -> str:
    """Return ``text``.

    Raises:
        CronError: a sentence that names the field.
    """
    _expression(text)
    return text


def next_cron_run(text: str, timezone: str, *, after: float) -> float:
    """Return the first time after ``after`` that ``text`` selects in ``timezone``, both in seconds since the epoch.

    Raises:
        CronError: see `check_cron`.
    """
    runs = CronSim(_expression(text), datetime.fromtimestamp(after, ZoneInfo(timezone)))
    # While the clock shows an hour for the second time, cronsim begins with times of the first one.
    return next(time for time in (run.timestamp() for run in runs) if time > after)


def _expression(text: str) -> str:
    """Return the expression for cronsim."""
    words = list(re.finditer(r"\S+", text))
    if len(words) != len(_FIELDS):
        raise CronError(
            f"Expected five fields (minute, hour, day of the month, month, day of the week), found {len(words)}.", 0
        )
    minute, hour, *days = (
        ",".join(_item(place, item, word.start()) for item in word[0].split(",")) for place, word in enumerate(words)
    )
    try:
        hours = CronSim(" ".join([minute, hour, *days]), datetime.now(UTC)).hours
    except CronSimError:
        raise CronError("No selected month has such a day, so this would never run.", words[2].start()) from None
    # cronsim follows real time if the minute or the hour begins with *.
    hour = "*" if len(hours) == 24 else hour.replace("*", "0-23")
    return " ".join([minute.replace("*", "0-59"), hour, *days])


def _item(place: int, item: str, position: int) -> str:
    """Return an item of a field for cronsim."""
    name, values, largest_step = _FIELDS[place]
    found = _ITEM.fullmatch(item)
    if found and int(found["step"] or 1) > largest_step:
        raise CronError(f"The {name} '{item}' has a step of {found['step']}; expected 1 to {largest_step}.", position)
    if found and _values(place, item):
        # cronsim reads 3-3/2 as 3/2.
        whole = item.partition("/")[0]
        return whole if found["last"] and len(_values(place, whole)) == 1 else item
    over_saturday = item.replace("-", "-7,0-")
    if found and place == _WEEKDAY and found["last"] and not found["step"] and _values(place, over_saturday):
        return over_saturday
    raise CronError(
        f"The {name} '{shortened(item)}' cannot be used; expected a value from {values}, a range such as "
        "1-5 with the smaller value first, or *, and for a range or * a step such as */10.",
        position,
    )


def _values(place: int, field: str) -> Collection[object]:
    """Return the values that one field selects; none if cronsim cannot read it."""
    try:
        found = CronSim(" ".join(field if place == other else "*" for other in range(len(_FIELDS))), datetime.now(UTC))
    except CronSimError:
        return ()
    return (found.minutes, found.hours, found.days, found.months, found.weekdays)[place]
