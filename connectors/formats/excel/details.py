"""What calamine does not report of a sheet's cells: errors, formulas without a value, and dates that it shortens."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeAlias

ByCell: TypeAlias = dict[int, dict[int, str]]
"""By row and column, both from 0."""

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
"""The errors of the binary formats, by their codes."""

_EPOCH_1900 = datetime(1899, 12, 30)  # noqa: DTZ001 - a cell knows no zone
_EPOCH_1904 = datetime(1904, 1, 1)  # noqa: DTZ001 - a cell knows no zone
_FIRST_TRUE_DAY = 61  # 1 March 1900: before it, Excel counts a day that never was
_BEYOND_LAST_DAY = 2_958_466
_DAY_MILLISECONDS = 86_400_000


class WorkbookDamaged(Exception):
    """The workbook's parts are not what they should be; the message ends a sentence."""


@dataclass(frozen=True, slots=True)
class CellDetails:
    """``problems``: why a cell has no value, and what it shows. ``texts``: the text of cells that calamine shortens."""

    problems: ByCell = field(default_factory=lambda: defaultdict(dict))
    texts: ByCell = field(default_factory=lambda: defaultdict(dict))


@dataclass(frozen=True, slots=True)
class DateFormat:
    """What a number format shows of a date."""

    has_date: bool
    has_time: bool


def date_text(serial: float, shown: DateFormat, *, since_1904: bool) -> str | None:
    """The text of a date if calamine shortens it: midnight in a format with a time, and days before its first one.

    A number from 0 to 1 is a time in workbooks that count from 1900, also in a format that shows a date: day 0 is none.
    """
    if not shown.has_date:
        return None
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
