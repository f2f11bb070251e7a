"""The area of a sheet that is read, as a range such as B3:H200."""

from __future__ import annotations

import re
from typing import NamedTuple

from ingestd.workbooks.references import column_number

_RANGE = re.compile(r"(?P<left>[A-Z]{1,3})(?P<top>[1-9]\d{0,6})?:(?P<right>[A-Z]{1,3})(?P<bottom>[1-9]\d{0,6})?")


class Area(NamedTuple):
    """A range of rows and columns, numbered from 0, ends included.

    If ``bottom`` or ``right`` is None, the range ends with the last row or column of the sheet.
    """

    top: int = 0
    left: int = 0
    bottom: int | None = None
    right: int | None = None


def parse_area(text: str) -> Area:
    """Return the area of ``B3:H200``, ``B3:H`` (to the last row) or ``B:H``.

    Raises:
        ValueError: the text is no range.
    """
    found = _RANGE.fullmatch(text.upper().replace("$", ""))
    if found is None:
        raise ValueError(
            f"'{text}' is no range of cells; write one like B3:H200, or B3:H for all rows from the third on"
        )
    area = Area(
        top=int(found["top"] or 1) - 1,
        left=column_number(found["left"]),
        bottom=int(found["bottom"]) - 1 if found["bottom"] else None,
        right=column_number(found["right"]),
    )
    if area.left > (area.right or 0) or (area.bottom is not None and area.top > area.bottom):
        raise ValueError(f"'{text}' ends before it begins")
    return area
