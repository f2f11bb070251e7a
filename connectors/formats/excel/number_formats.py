"""Number formats of spreadsheets: which parts of a date they show. Performs no I/O."""

from __future__ import annotations

import re
from functools import lru_cache

from connectors.formats.excel.details import DateFormat

_BUILT_IN = {
    **dict.fromkeys((*range(14, 18), *range(27, 32), 36, *range(50, 59)), "yyyy-mm-dd"),
    **dict.fromkeys((*range(18, 22), 32, 33, 34, 35, 45, 47), "hh:mm"),
    22: "yyyy-mm-dd hh:mm",
    46: "[h]:mm:ss",
}
_LITERAL = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?![hms]+\])[^\[\]]*\]', re.IGNORECASE)


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
