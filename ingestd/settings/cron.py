"""Cron expressions of five fields, checked field by field so that a mistake can be pointed at.

What passes is written so that the scheduler, which counts weekdays from Monday, means the same days as cron.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ingestd.settings.node import nearest, shortened

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_LONGEST = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_ITEM = re.compile(r"(?P<first>\*|[0-9]{1,4}|[a-z]+)(?:-(?P<last>[0-9]{1,4}|[a-z]+))?(?:/(?P<step>[0-9]{1,4}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    name: str
    lowest: int
    highest: int
    values: int
    words: tuple[str, ...] = ()
    """Names of the values, the first one for ``lowest``."""


_FIELDS = (
    _Field(name="minute", lowest=0, highest=59, values=60),
    _Field(name="hour", lowest=0, highest=23, values=24),
    _Field(name="day of the month", lowest=1, highest=31, values=31),
    _Field(name="month", lowest=1, highest=12, values=12, words=_MONTHS),
    _Field(name="day of the week", lowest=0, highest=7, values=7, words=_DAYS),
)


class CronError(ValueError):
    """An expression that can't be read; ``position`` is the 0-based offset of the field."""

    def __init__(self, sentence: str, position: int) -> None:
        self.position = position
        super().__init__(sentence)


def normal_cron(text: str) -> str:
    """``text`` with its weekdays listed by name (``1-5`` → ``mon,tue,…``), because programs number them differently.

    0 and 7 are Sunday, as in crontab(5). The other fields stay as they are written, in small letters. Restricting both
    the day of the month and the day of the week is refused: programs differ on whether either or both must hold.

    Raises:
        CronError: a sentence that names the field.
    """
    words = list(re.finditer(r"\S+", text))
    if len(words) != len(_FIELDS):
        raise CronError(
            f"Expected five fields (minute, hour, day of the month, month, day of the week), found {len(words)}.", 0
        )
    chosen = [_chosen(field, word[0].lower(), word.start()) for field, word in zip(_FIELDS, words, strict=True)]
    days, months, weekdays = chosen[2:]
    if len(days) < _FIELDS[2].values and len(weekdays) < _FIELDS[4].values:
        raise CronError(
            "Both the day of the month and the day of the week are restricted, which programs read differently; leave "
            "one of them '*'.",
            words[2].start(),
        )
    if min(days) > max(_LONGEST[month - 1] for month in months):
        raise CronError(f"No month that is chosen has a day {min(days)}, so this would never run.", words[2].start())
    every_day = len(weekdays) == len(_DAYS)
    last = "*" if every_day else ",".join(_DAYS[day] for day in sorted(weekdays))
    return " ".join([*(word[0].lower() for word in words[:4]), last])


def _chosen(field: _Field, text: str, position: int) -> frozenset[int]:
    chosen: set[int] = set()
    for item in text.split(","):
        found = _ITEM.fullmatch(item)
        if found is None or (found["first"] == "*" and found["last"]):
            raise CronError(
                f"The {field.name} '{shortened(item)}' can't be read; expected *, a value, a range such as 1-5, or one of "
                "them with a step such as */10.",
                position,
            )
        first, last = _bounds(field, found, position)
        step = int(found["step"] or 1)
        if found["step"] and not 1 <= step <= max(last - first, 1):
            raise CronError(
                f"The {field.name} '{shortened(item)}' has a step of {step}; expected 1 to {max(last - first, 1)}.",
                position,
            )
        chosen.update(field.lowest + (value - field.lowest) % field.values for value in range(first, last + 1, step))
    return frozenset(chosen)


def _bounds(field: _Field, item: re.Match[str], position: int) -> tuple[int, int]:
    """The first and the last value of a range; a range of weekdays may go over the week's end (sat-mon)."""
    if item["first"] == "*":
        return field.lowest, field.lowest + field.values - 1
    first = _number(field, item["first"], position)
    last = _number(field, item["last"], position) if item["last"] else field.highest if item["step"] else first
    if last < first and field.words is _DAYS:
        last += 7
    if first > last:
        raise CronError(
            f"The {field.name} '{shortened(item[0])}' runs backwards; write the smaller value first, or two ranges.",
            position,
        )
    if field.words is _MONTHS and (
        (item["last"] and item["first"].isdigit() != item["last"].isdigit())
        or (item["step"] and item["first"].isalpha())
    ):
        raise CronError(
            f"The month '{shortened(item[0])}' mixes names with numbers; write numbers only, or names without a step.",
            position,
        )
    return first, last


def _number(field: _Field, word: str, position: int) -> int:
    if word in field.words:
        return field.lowest + field.words.index(word)
    if not word.isdigit():
        raise CronError(f"The {field.name} '{shortened(word)}' is unknown.{nearest(word, field.words)}", position)
    number = int(word)
    if not field.lowest <= number <= field.highest:
        raise CronError(
            f"The {field.name} {number} is out of range; expected {field.lowest} to {field.highest}.", position
        )
    return number
