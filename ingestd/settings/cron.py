"""Cron expressions of five fields: minute, hour, day of the month, month, day of the week. The only importer of cronsim.

The rules follow crontab(5) of Debian; the rules for changes of the clock apply to more expressions than there:

* Weekdays 0 and 7 are Sunday. If the day of the month and the weekday are both restricted, either is sufficient.
* A local time that does not exist, because the clock is put forward over it, runs at the first instant after it.
  Several such times run once.
* A local time that exists twice, because the clock is put back, runs the first time only.
* An expression that selects every hour follows real time: it neither misses nor repeats an hour.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from ingestd.settings.node import shortened

_FIELDS = (
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day of the month", "1 to 31"),
    ("month", "1 to 12 or jan to dec"),
    ("day of the week", "0 to 7 (0 and 7 are Sunday) or sun to sat"),
)
_WEEKDAY = 4
_LARGEST_STEP = (59, 23, 30, 11, 6)
_ITEM = re.compile(r"(\*|[0-9]{1,3}|[a-z]{3})(-([0-9]{1,3}|[a-z]{3}))?(/(?P<step>[0-9]{1,3}))?")
_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)


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
    _parse(text, _ANY_TIME)
    return text


def next_cron_run(text: str, timezone: str, *, after: float) -> float:
    """Return the first time after ``after`` that ``text`` selects in ``timezone``, both in seconds since the epoch.

    Raises:
        CronError: see `check_cron`.
    """
    times = _parse(text, datetime.fromtimestamp(after, ZoneInfo(timezone)))
    # During the second pass of a repeated hour, cronsim also returns times of the first pass.
    return next(found for time in times if (found := time.timestamp()) > after)


def _parse(text: str, after: datetime) -> CronSim:
    words = list(re.finditer(r"\S+", text))
    if len(words) != len(_FIELDS):
        raise CronError(
            f"Expected five fields (minute, hour, day of the month, month, day of the week), found {len(words)}.", 0
        )
    fields = [_field(index, word[0].lower(), word.start()) for index, word in enumerate(words)]
    if CronSim(f"0 {fields[1]} * * *", _ANY_TIME).hours == {*range(24)}:
        fields[1] = "*"
    else:
        # cronsim handles changes of the clock as this module promises only if neither field begins with '*'.
        fields[0], fields[1] = fields[0].replace("*", "0-59"), fields[1].replace("*", "0-23")
    try:
        return CronSim(" ".join(fields), after)
    except CronSimError:
        raise CronError("No selected month has such a day, so this would never run.", words[2].start()) from None


def _field(index: int, text: str, position: int) -> str:
    """Return the field with each range of weekdays over the end of the week (``sat-mon``) as two ranges."""
    name, values = _FIELDS[index]
    items = []
    for item in text.split(","):
        found = _ITEM.fullmatch(item)
        two_ranges = item.replace("-", "-7,0-")
        if found is not None and _is_readable(index, item):
            items.append(item)
        elif found is not None and index == _WEEKDAY and not found["step"] and _is_readable(index, two_ranges):
            items.append(two_ranges)
        else:
            raise CronError(
                f"The {name} '{shortened(item)}' cannot be used; expected a value from {values}, a range such as 1-5 with "
                "the smaller value first, or *, and for a range or * a step such as */10.",
                position,
            )
        if found["step"] and int(found["step"]) > _LARGEST_STEP[index]:
            raise CronError(
                f"The {name} '{item}' has a step of {found['step']}; expected 1 to {_LARGEST_STEP[index]}.", position
            )
    return ",".join(items)


def _is_readable(index: int, item: str) -> bool:
    try:
        CronSim(" ".join(item if position == index else "*" for position in range(len(_FIELDS))), _ANY_TIME)
    except CronSimError:
        return False
    return True
