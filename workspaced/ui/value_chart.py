"""The coordinates of an SVG chart of numeric values over time. Performs no I/O.

A value is valid until the next change, so a line has steps. While the value is not a number, the line has a gap. Times are
milliseconds since 1970.
"""

from __future__ import annotations

import math
import re
import sys
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, NamedTuple

from workspaced.core.timestamps import stamp
from workspaced.ui.chart_ticks import Tick, time_ticks, value_ticks

BOX: Final = 1_000
"""Width and height of the SVG view box, which a browser scales to the size of the chart."""
DRAWN: Final = 2_000
"""The maximum number of points of one chart. If there are more, each line is divided into parts. The first, last, lowest and
highest point and the first gap of each part are drawn."""
_OF_PART: Final = 5
_AXES: Final = 2
_MARGIN: Final = 0.03
_SHORTEST_MS: Final = 2
_LEAST_MS: Final = 1_000
_QUANTITY = re.compile(r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*(\S.{0,31})?", re.ASCII)
_LONGEST: Final = 96


class Quantity(NamedTuple):
    """A number and its unit, which may be empty: ``15 kg``."""

    number: float
    unit: str


class ChartSample(NamedTuple):
    """The value of a key from the time ``at`` on: the text to show, and the quantity.

    ``quantity`` None: the value is not a number, so the line has a gap. ``is_stored``: ``text`` is a stored value; if False,
    ``text`` says why there is no value, such as null.
    """

    at: int
    text: str
    quantity: Quantity | None
    is_stored: bool = True


_instant = attrgetter("at")


class TimeRange(NamedTuple):
    """A range of time; ``begin`` is before ``end``."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The history of a key. ``before``: the value before the first sample, and since when it is known; None: unknown."""

    key: str
    before: ChartSample | None
    samples: Sequence[ChartSample]

    @property
    def all_samples(self) -> Sequence[ChartSample]:
        """Return ``before`` and the samples, in the order of time."""
        return [self.before, *self.samples] if self.before else self.samples

    @property
    def units(self) -> set[str]:
        """Return the units of all numbers of this history."""
        return {one.quantity.unit for one in self.all_samples if one.quantity}

    def within(self, shown: TimeRange) -> list[ChartSample]:
        """Return the samples of a range of time. A value set before the range is a sample at the beginning of the range."""
        samples = self.all_samples
        first = max(bisect_right(samples, shown.begin, key=_instant) - 1, 0)
        found = list(samples[first : bisect_right(samples, shown.end, key=_instant)])
        if found and found[0].at < shown.begin:
            found[0] = found[0]._replace(at=shown.begin)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """The axis for all values in one unit. ``low`` and ``high`` are the values at the ends of the axis."""

    unit: str
    low: float
    high: float
    ticks: Sequence[Tick]

    def height(self, number: float) -> float:
        """Return the distance of a number from the top of the box."""
        # Each term is halved first, because the difference of two very large floats overflows to infinity.
        share = (number / 2 - self.low / 2) / (self.high / 2 - self.low / 2)
        return round(BOX - share * BOX, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The line of one key. ``style``: the index of its colour and dashes. ``axis``: the index of its axis.

    ``path``: the data of an SVG path. ``readings``: a line of text for each drawn point, with the milliseconds since the
    beginning of the chart, the height or ``-``, and the text. ``count`` and ``gaps``: how many samples are numbers, and how
    many are not. ``latest``: the text of the last sample.
    """

    key: str
    style: int
    axis: int
    unit: str
    path: str
    readings: str
    count: int
    gaps: int
    lowest: str
    highest: str
    latest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueChart:
    """A chart of the range of time ``shown``. ``undrawn``: the reason why a key has no line (the end of a sentence), by key.

    ``whole``: the range of all known values. ``others``: the ranges of the links "less", "more", "earlier" and "later".
    """

    lines: Sequence[Line]
    undrawn: Mapping[str, str]
    axes: Sequence[Axis]
    times: Sequence[Tick]
    shown: TimeRange
    whole: TimeRange
    others: Mapping[str, TimeRange]

    @property
    def is_part(self) -> bool:
        """Return whether the chart shows only a part of the time with known values."""
        return self.shown != self.whole

    @property
    def first(self) -> str:
        """Return the timestamp of the beginning of the chart."""
        return stamp(self.shown.begin)

    @property
    def last(self) -> str:
        """Return the timestamp of the end of the chart."""
        return stamp(self.shown.end)

    @property
    def has_long_labels(self) -> bool:
        """Return whether the labels of a value axis need a wider margin."""
        return any(len(tick.label) > 6 for axis in self.axes for tick in axis.ticks)


def quantity_of(text: str | None) -> Quantity | None:
    """Return the number and the unit of a value; None if it does not begin with a finite number, or is a date or time."""
    match = _QUANTITY.fullmatch(text) if text is not None and len(text) <= _LONGEST else None
    if match is None:
        return None
    number, unit = float(match[1]), (match[2] or "").strip()
    if not math.isfinite(number) or unit[:1].isdigit() or unit[:1] in {".", ",", ":", "-", "/"}:
        return None  # a date, a time or a version
    return Quantity(number, unit)


def value_chart(series: Sequence[Series], wanted: TimeRange | None, *, now: int) -> ValueChart | None:
    """Return the chart of the range ``wanted`` (None: all known values); None if no key has numbers of exactly one unit."""
    units = list(dict.fromkeys(unit for one in series if len(one.units) == 1 for unit in one.units))[:_AXES]
    undrawn = {one.key: why for one in series if (why := _reason_undrawn(one, units))}
    drawn = [(style, one) for style, one in enumerate(series) if one.key not in undrawn]
    if not drawn:
        return None
    whole = whole_range([one for _, one in drawn], now=now)
    shown = _clipped(wanted, whole) if wanted else whole
    most = DRAWN // len(drawn)
    numbers: dict[str, list[float]] = {unit: [] for unit in units}
    for _, one in drawn:
        for sample in one.within(shown):
            if sample.quantity:
                numbers[sample.quantity.unit].append(sample.quantity.number)
    axes = [_axis(unit, found) for unit, found in numbers.items()]
    return ValueChart(
        lines=[_line(one, style, axes, shown, most) for style, one in drawn],
        undrawn=undrawn,
        axes=axes,
        times=time_ticks(*shown),
        shown=shown,
        whole=whole,
        others=_others(shown, whole),
    )


def whole_range(series: Sequence[Series], *, now: int) -> TimeRange:
    """Return the range of time from the first to the last change, with a margin that shows the values before and after."""
    times = [one.at for of_key in series for one in of_key.samples]
    known = [one.before.at for one in series if one.before]
    begin, end = (min(times), max(times)) if times else (min(known, default=now), now)
    margin = math.ceil(max((end - begin) * _MARGIN, _LEAST_MS if begin == end else 1))
    earliest = min([*known, begin])
    return TimeRange(max(begin - margin, min(earliest, begin - 1)), min(end + margin, max(now, end + 1)))


def _reason_undrawn(series: Series, units: Sequence[str]) -> str:
    """Return why a key has no line, as the end of a sentence; empty if the key has a line."""
    if not series.units:
        return "has no number"
    if len(series.units) > 1:
        return "has numbers in several units"
    return "" if series.units <= set(units) else f"has a unit without an axis: a chart has axes for {_AXES} units"


def _clipped(wanted: TimeRange, whole: TimeRange) -> TimeRange:
    """Return the part of ``wanted`` within ``whole``. If this part is too short to be drawn, return ``whole``."""
    begin, end = max(wanted.begin, whole.begin), min(wanted.end, whole.end)
    return TimeRange(begin, end) if end - begin >= _SHORTEST_MS else whole


def _others(shown: TimeRange, whole: TimeRange) -> dict[str, TimeRange]:
    """Return the ranges "less", "more", "earlier" and "later". A range that is equal to ``shown`` is omitted."""
    half = (shown.end - shown.begin) // 2
    begin, end = shown
    wanted = {
        "less": TimeRange(begin + half // 2, end - half // 2),
        "more": TimeRange(begin - half, end + half),
        "earlier": TimeRange(max(begin - half, whole.begin), max(begin - half, whole.begin) + end - begin),
        "later": TimeRange(min(end + half, whole.end) - (end - begin), min(end + half, whole.end)),
    }
    found = {name: _clipped(one, whole) for name, one in wanted.items()}
    if found["less"] == whole:  # the range "less" would be too short
        del found["less"]
    return {name: one for name, one in found.items() if one != shown}


def _axis(unit: str, numbers: Sequence[float]) -> Axis:
    lowest, highest = (min(numbers), max(numbers)) if numbers else (0.0, 0.0)
    margin = (highest / 2 - lowest / 2) * 0.12 or abs(lowest) * 0.05 or 1.0
    low, high = (max(min(end, sys.float_info.max), -sys.float_info.max) for end in (lowest - margin, highest + margin))
    axis = Axis(unit=unit, low=low, high=high, ticks=())
    ticks = [Tick(axis.height(number) / BOX, label) for number, label in value_ticks(low, high)]
    return Axis(unit=unit, low=low, high=high, ticks=ticks)


def _line(series: Series, style: int, axes: Sequence[Axis], shown: TimeRange, most: int) -> Line:
    samples = series.within(shown)
    unit = next(iter(series.units))
    place = next(number for number, axis in enumerate(axes) if axis.unit == unit)
    axis = axes[place]
    path: list[str] = []
    readings: list[str] = []
    is_open = False
    for at, text, quantity, _ in _thinned(samples, most):
        x = round((at - shown.begin) / (shown.end - shown.begin) * BOX, 1)
        y = axis.height(quantity.number) if quantity else None
        if is_open:
            path.append(f"H{x}" if y is None else f"H{x}V{y}")
        elif y is not None:
            path.append(f"M{x} {y}")
        is_open = y is not None
        readings.append(f"{at - shown.begin} {'-' if y is None else y} {' '.join(text[:_LONGEST].split())}")
    if is_open:
        path.append(f"H{BOX}")
    numbers = [(one.quantity.number, one.text.strip()) for one in samples if one.quantity]
    return Line(
        key=series.key,
        style=style,
        axis=place,
        unit=unit,
        path="".join(path),
        readings="\n".join(readings),
        count=len(numbers),
        gaps=len(samples) - len(numbers),
        lowest=min(numbers)[1] if numbers else "",
        highest=max(numbers)[1] if numbers else "",
        latest=samples[-1].text if samples else "",
    )


def _thinned(samples: Sequence[ChartSample], most: int) -> Sequence[ChartSample]:
    """Return up to ``most`` samples: the first, last, lowest and highest sample and the first gap of each part."""
    if len(samples) <= most:
        return samples
    count = most // _OF_PART
    kept: list[ChartSample] = []
    for number in range(count):
        first, end = len(samples) * number // count, len(samples) * (number + 1) // count
        places = {first, end - 1}
        numbers = [
            (quantity.number, place) for place in range(first, end) if (quantity := samples[place].quantity) is not None
        ]
        if numbers:
            places |= {min(numbers)[1], max(numbers)[1]}
        if len(numbers) < end - first:
            places.add(next(place for place in range(first, end) if samples[place].quantity is None))
        kept += [samples[place] for place in sorted(places)]
    return kept
