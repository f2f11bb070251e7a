"""The text of a cell: what a person types to enter its value, whatever its number format shows."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from typing import TypeAlias

Cell: TypeAlias = int | float | str | bool | time | date | datetime | timedelta

# From here on, the shortest text of a double has an exponent.
_WHOLE = 10**16


def cell_text(cell: Cell) -> str:
    """Return the cell's text.

    A number has the fewest digits that read back as the same number (0.1, 3, 1e-07). A date or time follows ISO 8601, a
    duration is hours, minutes and seconds, and a boolean true or false. An empty cell is the empty text.
    """
    match cell:
        case str():
            return cell
        case bool():
            return "true" if cell else "false"
        case float():
            return str(int(cell)) if cell.is_integer() and abs(cell) < _WHOLE else repr(cell)
        case int():
            return str(cell)
        case datetime() | date() | time():
            return cell.isoformat()
        case timedelta():
            return _format_duration(cell)


def _format_duration(duration: timedelta) -> str:
    sign = "-" if duration < timedelta(0) else ""
    seconds, micros = divmod(abs(duration) // timedelta(microseconds=1), 10**6)
    fraction = f".{micros:06d}".rstrip("0") if micros else ""
    return f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction}"
