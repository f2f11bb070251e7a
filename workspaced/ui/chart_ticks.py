"""The ticks of the axes of a chart, and their labels. Performs no I/O."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import takewhile
from typing import Final

from workspaced.core.timestamps import stamp

_VALUES: Final = 7
_TIMES: Final = 8
_SECOND: Final = 1_000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_STEPS: Final = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(_SECOND * count for count in (1, 2, 5, 10, 15, 30)),
    *(_MINUTE * count for count in (1, 2, 5, 10, 15, 30)),
    *(_HOUR * count for count in (1, 2, 3, 6, 12)),
    *(_DAY * count for count in (1, 2, 4, 7)),
)
_MONTH_STEPS: Final = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1_200, 3_600)
_LABELS: Final = {"ms": (11, 23), "s": (11, 19), "min": (11, 16), "day": (5, 10), "month": (0, 7)}
"""The part (begin, end) of a timestamp that is the label of a tick, by precision."""
_LONGEST_FRACTION: Final = 6
_LONGEST_NUMBER: Final = 10_000_000
_DIGITS: Final = 15


@dataclass(frozen=True, slots=True)
class Tick:
    """A tick. ``share``: its distance from the left or upper end of the axis, from 0 to 1.

    Only for a time axis: ``at``, the milliseconds since 1970, and ``precision``: ``ms``, ``s``, ``min``, ``day`` or ``month``.
    """

    share: float
    label: str
    at: int = 0
    precision: str = ""


def value_ticks(low: float, high: float) -> Sequence[tuple[float, str]]:
    """Return round numbers within a range, or its ends if it has no usable round numbers; each number with its label."""
    raw = high / _VALUES - low / _VALUES
    power = 10.0 ** math.floor(math.log10(raw)) if raw else 0.0
    step = next((count * power for count in (1, 2, 5, 10) if count * power >= raw), 0.0)
    if not step or not math.isfinite(high - low) or abs(high) / step > 10**_DIGITS or abs(low) / step > 10**_DIGITS:
        return [(low, f"{low:.6g}"), (high, f"{high:.6g}")]
    fraction = max(0, -math.floor(math.log10(step) + 1e-9))
    numbers = [number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1)]
    greatest = max(abs(low), abs(high))
    if fraction <= _LONGEST_FRACTION and greatest < _LONGEST_NUMBER:
        return [(number, f"{number:.{fraction}f}") for number in numbers]
    digits = min(_DIGITS, math.floor(math.log10(greatest)) - math.floor(math.log10(step) + 1e-9) + 1)
    return [(number, f"{number:.{digits}g}") for number in numbers]


def time_ticks(begin: int, end: int) -> Sequence[Tick]:
    """Return ticks at round times within a range, with labels in UTC."""
    step = next((one for one in _STEPS if (end - begin) / one <= _TIMES), 0)
    if step:
        first = -(-begin // step) * step
        instants = list(range(first, end + 1, step))
        precision = "ms" if step < _SECOND else "s" if step < _MINUTE else "min" if step < _DAY else "day"
    else:
        instants = [one for one in takewhile(lambda at: at <= end, _months(begin, end)) if one >= begin]
        precision = "month"
    return [Tick((at - begin) / (end - begin), _time_label(at, precision), at, precision) for at in instants]


def _months(begin: int, end: int) -> Iterator[int]:
    """Yield beginnings of months, at equal steps, for a long range of time. Some beginnings are outside of the range."""
    months = (end - begin) / (30 * _DAY)
    step = next((one for one in _MONTH_STEPS if months / one <= _TIMES), _MONTH_STEPS[-1])
    month = int(stamp(begin)[:4]) * 12 // step * step
    while month < 9_999 * 12:
        if month >= 12:
            yield int(datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC).timestamp()) * 1_000
        month += step


def _time_label(at: int, precision: str) -> str:
    text = stamp(at)
    first, end = _LABELS["day" if precision == "min" and at % _DAY == 0 else precision]
    return text[first:end]
