"""Cell details that calamine does not report: errors, formulas without a value, shortened dates. Performs no I/O."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TypeAlias

import msgspec

ByCell: TypeAlias = dict[int, dict[int, str]]
"""Texts by row and column, both from 0."""

NO_VALUE = "a formula without a saved value"
UNKNOWN_ERROR = "an error"

ERRORS = {
    0x00: "#NULL!",
    0x07: "#DIV/0!",
    0x0F: "#VALUE!",
    0x17: "#REF!",
    0x1D: "#NAME?",
    0x24: "#NUM!",
    0x2A: "#N/A",
    0x2B: "#GETTING_DATA",
}
"""The errors of the binary formats, by code."""

_BUILT_IN = {
    **dict.fromkeys((*range(14, 18), *range(27, 32), 36, *range(50, 59)), "yyyy-mm-dd"),
    **dict.fromkeys((*range(18, 22), 32, 33, 34, 35, 45, 47), "hh:mm"),
    22: "yyyy-mm-dd hh:mm",
    46: "[h]:mm:ss",
}
_LITERAL = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?![hms]+\])[^\[\]]*\]', re.IGNORECASE)

_EPOCH_1900 = datetime(1899, 12, 30)  # noqa: DTZ001 - a cell has no time zone
_EPOCH_1904 = datetime(1904, 1, 1)  # noqa: DTZ001 - a cell has no time zone
_FIRST_TRUE_DAY = 61  # 1 March 1900: before it, Excel counts 29 February 1900, which did not exist
_BEYOND_LAST_DAY = 2_958_466
_DAY_MILLISECONDS = 86_400_000


class WorkbookDamaged(Exception):
    """The parts of the workbook are damaged. The message is the end of a sentence."""


class CellDetails(msgspec.Struct, frozen=True):
    """Details of cells, by row and column from 0.

    ``problems``: why a cell has no value, such as an error. ``texts``: texts that calamine shortens. ``merged``: by the first
    row, the first and the last column of each merged cell.
    """

    problems: ByCell = msgspec.field(default_factory=lambda: defaultdict(dict))
    texts: ByCell = msgspec.field(default_factory=lambda: defaultdict(dict))
    merged: dict[int, list[tuple[int, int]]] = msgspec.field(default_factory=lambda: defaultdict(list))


class DateFormat(msgspec.Struct, frozen=True):
    """The parts of a date that a number format shows."""

    has_date: bool
    has_time: bool


def date_text(serial: float, shown: DateFormat, *, since_1904: bool) -> str | None:
    """Return the text of a date that calamine shortens; None for other dates.

    calamine shortens midnight if the cell's format shows a time, dates before the first day of the calendar, and negative
    times, which lose their sign. In workbooks that count from 1900, a number from 0 to 1 is a time in any format, because
    there is no day 0.
    """
    if not shown.has_date:
        return _negative_time(serial) if shown.has_time and serial < 0 else None
    epoch = _EPOCH_1904 if since_1904 else _EPOCH_1900
    if serial < 0 or (since_1904 and serial < 1):
        try:
            instant = epoch + timedelta(milliseconds=round(serial * _DAY_MILLISECONDS))
        except OverflowError:
            return None
        midnight = (
            not shown.has_time and (instant.hour, instant.minute, instant.second, instant.microsecond) == (0,) * 4
        )
        return instant.date().isoformat() if midnight else instant.isoformat()
    first = 0 if since_1904 else _FIRST_TRUE_DAY
    if shown.has_time and serial == int(serial) and first <= serial < _BEYOND_LAST_DAY:
        return (epoch + timedelta(days=serial)).isoformat()
    return None


def _negative_time(serial: float) -> str | None:
    try:
        return duration_text(timedelta(milliseconds=round(serial * _DAY_MILLISECONDS)))
    except OverflowError:
        return None


def duration_text(duration: timedelta) -> str:
    """Return a duration as hours, minutes and seconds, such as 30:00:00."""
    sign = "-" if duration < timedelta(0) else ""
    seconds, micros = divmod(abs(duration) // timedelta(microseconds=1), 10**6)
    fraction = f".{micros:06d}".rstrip("0") if micros else ""
    return f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction}"


def built_in_format(number: int) -> str:
    """Return a format code that shows the same parts of a date as the built-in format of that number."""
    return _BUILT_IN.get(number, "General")


@lru_cache(maxsize=1024)
def date_format(code: str) -> DateFormat:
    """Return which parts of a date a format code shows; an elapsed time such as [h]:mm is no date."""
    shown = _LITERAL.sub("", code).partition(";")[0].lower()
    if "[" in shown or "general" in shown:
        return DateFormat(has_date=False, has_time=False)
    has_time = "h" in shown or "s" in shown
    return DateFormat(has_date="y" in shown or "d" in shown or ("m" in shown and not has_time), has_time=has_time)
