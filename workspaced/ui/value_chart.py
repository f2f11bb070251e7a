"""A line chart of numeric values over time, as the numbers of an SVG. Performs no I/O."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

WIDTH: Final = 640
HEIGHT: Final = 180
_MARGIN: Final = 8
_QUANTITY = re.compile(r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*(\S.{0,31})?", re.ASCII)
_LONGEST: Final = 96


class Quantity(NamedTuple):
    """A number and its unit, which may be empty: ``15 kg``."""

    number: float
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueChart:
    """The chart: the ``points`` of a polyline with steps in a box of `WIDTH` by `HEIGHT`, the extreme values and instants."""

    points: str
    lowest: str
    highest: str
    unit: str
    first: str
    last: str
    count: int


def quantity_of(text: str | None) -> Quantity | None:
    """Return the number and the unit of a value; None if it does not begin with a number, or is not finite."""
    match = _QUANTITY.fullmatch(text) if text is not None and len(text) <= _LONGEST else None
    if match is None:
        return None
    number, unit = float(match[1]), (match[2] or "").strip()
    if not math.isfinite(number) or unit[:1].isdigit() or unit[:1] in {".", ",", ":", "-", "/"}:
        return None  # a date, a time or a version
    return Quantity(number, unit)


def value_chart(moments: Sequence[tuple[int, str, str | None]]) -> ValueChart | None:
    """Return the chart of the values at increasing instants: (milliseconds since 1970, timestamp, value).

    None if there are less than two values, one is no number, or the units differ.
    """
    found = [quantity_of(value) for _, _, value in moments]
    quantities = [one for one in found if one is not None]
    if len(quantities) < max(2, len(found)) or len({one.unit for one in quantities}) > 1:
        return None
    numbers = [one.number for one in quantities]
    low, high = min(numbers), max(numbers)
    begin, end = moments[0][0], moments[-1][0]
    corners: list[str] = []
    height = float(_MARGIN)
    for (at, _, _), number in zip(moments, numbers, strict=True):
        x = _scaled(at - begin, end - begin, WIDTH)
        if corners:
            corners.append(f"{x},{height}")
        # Halves, because the difference of the largest numbers is infinite.
        height = HEIGHT - _scaled(number / 2 - low / 2, high / 2 - low / 2, HEIGHT)
        corners.append(f"{x},{height}")
    texts = dict(zip(numbers, (value or "" for _, _, value in moments), strict=True))
    return ValueChart(
        points=" ".join(corners),
        lowest=texts[low].strip(),
        highest=texts[high].strip(),
        unit=quantities[0].unit,
        first=moments[0][1],
        last=moments[-1][1],
        count=len(moments),
    )


def _scaled(part: float, whole: float, length: int) -> float:
    """Return where a part of a range is drawn, inside the margins; the middle of a range without extent."""
    share = part / whole if whole else 0.5
    return round(_MARGIN + share * (length - 2 * _MARGIN), 1)
