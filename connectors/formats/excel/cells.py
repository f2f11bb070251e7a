"""A cell as text: what a person would type to get it again, whatever the cell's format shows of it."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from typing import TypeAlias

Cell: TypeAlias = int | float | str | bool | time | date | datetime | timedelta

# Beyond this a spreadsheet's number, a double, no longer tells neighbouring whole numbers apart.
_WHOLE = 2**53


def cell_text(cell: Cell) -> str:
    """The cell's text.

    A number is as short as it reads back (0.1, 3, 1e-07), an instant is ISO 8601, a duration hours, minutes and seconds, a
    truth value true or false; an empty cell is the empty text.
    """
    match cell:
        case str():
            return cell
        case bool():
            return "true" if cell else "false"
        case float():
            return str(int(cell)) if cell.is_integer() and abs(cell) <= _WHOLE else repr(cell)
        case int():
            return str(cell)
        case datetime() | date() | time():
            return cell.isoformat()
        case timedelta():
            return _hours(cell)


def _hours(duration: timedelta) -> str:
    sign = "-" if duration < timedelta(0) else ""
    seconds, micros = divmod(abs(duration) // timedelta(microseconds=1), 10**6)
    fraction = f".{micros:06d}".rstrip("0") if micros else ""
    return f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction}"
