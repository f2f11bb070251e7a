"""Cell details that calamine does not report: errors, formulas without a value, shortened dates."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
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

_EPOCH_1900 = datetime(1899, 12, 30)  # noqa: DTZ001 - a cell has no time zone
_EPOCH_1904 = datetime(1904, 1, 1)  # noqa: DTZ001 - a cell has no time zone
_FIRST_TRUE_DAY = 61  # 1 March 1900: before it, Excel counts 29 February 1900, which did not exist
_BEYOND_LAST_DAY = 2_958_466
_DAY_MILLISECONDS = 86_400_000


class WorkbookDamaged(Exception):
    """The parts of the workbook are damaged. The message is the end of a sentence."""


class CellDetails(msgspec.Struct, frozen=True):
    """``problems``: the error or other reason why a cell has no value.

    ``texts``: the text of cells that calamine shortens.
    """

    problems: ByCell = msgspec.field(default_factory=lambda: defaultdict(dict))
    texts: ByCell = msgspec.field(default_factory=lambda: defaultdict(dict))


class DateFormat(msgspec.Struct, frozen=True):
    """The parts of a date that a number format shows."""

    has_date: bool
    has_time: bool


def date_text(serial: float, shown: DateFormat, *, since_1904: bool) -> str | None:
    """Return the text of a date that calamine shortens; None for other dates.

    It shortens midnight in a format with a time, and days before the first one. In workbooks that count from 1900, a number from
    0 to 1 is a time in any format, because there is no day 0.
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
