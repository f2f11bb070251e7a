from __future__ import annotations

import itertools
import re
import sys

import pytest

from workspaced.core.timestamps import stamp
from workspaced.ui.chart_ticks import time_ticks, value_ticks
from workspaced.ui.value_chart import BOX, DRAWN, ChartSample, Quantity, Series, TimeRange, quantity_of, value_chart

DAY = 86_400_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("15", Quantity(15, "")),
        ("-1.5e3 kg", Quantity(-1500, "kg")),
        (" .5m/s ", Quantity(0.5, "m/s")),
        ("21,5", None),
        ("2026-11-23", None),
        ("12:30", None),
        ("1.2.3", None),
        ("1e999", None),
        ("nan", None),
        ("", None),
        (None, None),
        ("9" * 200, None),
    ],
)
def test_a_value_is_a_number_with_a_unit(text: str | None, expected: Quantity | None) -> None:
    assert quantity_of(text) == expected


def recorded(key: str, *values: tuple[int, str], before: tuple[int, str] | None = None) -> Series:
    """Return a series of these texts from these instants on."""
    samples = [ChartSample(at, text, quantity_of(text)) for at, text in values]
    return Series(
        key=key,
        before=ChartSample(before[0], before[1], quantity_of(before[1])) if before else None,
        samples=samples,
    )


def corners(path: str) -> list[list[tuple[float, float]]]:
    """Return the corners of each unbroken part of a line."""
    parts: list[list[tuple[float, float]]] = []
    for command, first, second in re.findall(r"([MHV])(-?[\d.]+)(?: (-?[\d.]+))?", path):
        if command == "M":
            parts.append([(float(first), float(second))])
        else:
            x, y = parts[-1][-1]
            parts[-1].append((float(first), y) if command == "H" else (x, float(first)))
    return parts


def test_a_value_stays_until_the_next_one_and_a_removal_is_a_gap() -> None:
    series = recorded("a", (1_000, "3 kg"), (5_000, "no entry"), (6_000, "2 kg"), before=(0, "1 kg"))
    chart = value_chart([series], None, now=100_000)
    assert chart is not None
    (line,) = chart.lines
    first, second = corners(line.path)
    begin, end = chart.shown
    assert (begin, end) == (850, 6_150), "a margin shows what was before and after"
    low, high, middle = (chart.axes[0].height(number) for number in (1, 3, 2))
    assert BOX > low > middle > high > 0
    share = {at: round((at - begin) / (end - begin) * BOX, 1) for at in (1_000, 5_000, 6_000)}
    assert first == [(0, low), (share[1_000], low), (share[1_000], high), (share[5_000], high)]
    assert second == [(share[6_000], middle), (BOX, middle)]
    assert (line.lowest, line.highest, line.latest, line.unit) == ("1 kg", "3 kg", "2 kg", "kg")
    assert (line.count, line.gaps) == (3, 1)
    assert line.readings.split("\n")[2] == f"{5_000 - begin} - no entry"


def test_a_part_begins_with_the_value_that_holds_there_and_links_lead_to_other_parts() -> None:
    series = recorded("a", *((at * 1_000, str(at)) for at in range(11)))
    chart = value_chart([series], TimeRange(2_500, 4_500), now=20_000)
    assert chart is not None
    assert chart.is_part
    assert (chart.lines[0].count, chart.lines[0].lowest, chart.lines[0].highest) == (3, "2", "4")
    assert chart.others == {
        "less": TimeRange(3_000, 4_000),
        "more": TimeRange(1_500, 5_500),
        "earlier": TimeRange(1_500, 3_500),
        "later": TimeRange(3_500, 5_500),
    }
    for wrong in (TimeRange(50_000, 60_000), TimeRange(3_000, 3_001)):
        whole = value_chart([series], wrong, now=20_000)
        assert whole is not None
        assert not whole.is_part


def test_each_of_two_units_has_an_axis_and_other_keys_say_why_they_have_no_line() -> None:
    chart = value_chart(
        [
            recorded("mass", (0, "1 kg"), (10, "2 kg")),
            recorded("text", (0, "a")),
            recorded("temperature", (5, "280 K")),
            recorded("both", (0, "1 kg"), (1, "1 g")),
            recorded("length", (0, "1 m")),
            recorded("constant", before=(0, "7 kg")),
        ],
        None,
        now=100,
    )
    assert chart is not None
    assert [(line.key, line.style, line.axis) for line in chart.lines] == [
        ("mass", 0, 0),
        ("temperature", 2, 1),
        ("constant", 5, 0),
    ]
    assert [axis.unit for axis in chart.axes] == ["kg", "K"]
    assert chart.undrawn == {
        "text": "has no number",
        "both": "has numbers in several units",
        "length": "has a unit without an axis: a chart has axes for 2 units",
    }
    assert corners(chart.lines[2].path)[0][-1][0] == BOX, "a value without a change goes through"
    assert value_chart([recorded("text", (0, "a"), (1, "1 kg"), (2, "1 g"))], None, now=5) is None


def test_of_many_values_the_extreme_ones_are_drawn() -> None:
    values = [(at, str(at % 100)) for at in range(20_000)]
    values[7_001] = (7_001, "-500")
    values[13_003] = (13_003, "900")
    values[15_000] = (15_000, "no entry")
    series = [recorded("a", *values), recorded("b", *values)]
    chart = value_chart(series, None, now=30_000)
    assert chart is not None
    readings = [line.readings.split("\n") for line in chart.lines]
    assert sum(map(len, readings)) <= DRAWN
    for texts in ({one.split(" ", 2)[2] for one in of_line} for of_line in readings):
        assert {"-500", "900", "no entry"} <= texts
    assert (chart.lines[0].lowest, chart.lines[0].highest, chart.lines[0].count) == ("-500", "900", 19_999)


@pytest.mark.parametrize(
    "values", [["1", "1"], ["-1e308", "1e308"], ["1e-320", "2e-320"], ["0", "5e-324"], ["1e15", "1000000000000001"]]
)
def test_equal_and_extreme_values_have_a_chart(values: list[str]) -> None:
    chart = value_chart([recorded("a", *((7, value) for value in values))], None, now=7)
    assert chart is not None
    assert all(0 <= number <= BOX for part in corners(chart.lines[0].path) for corner in part for number in corner)
    assert chart.axes[0].ticks
    assert all(0 <= tick.share <= 1 for tick in chart.axes[0].ticks)


def test_ticks_are_round_and_their_labels_differ() -> None:
    assert [label for _, label in value_ticks(1.6, 15.2)] == ["2", "4", "6", "8", "10", "12", "14"]
    assert [label for _, label in value_ticks(-0.012, 0.02)] == [
        "-0.010",
        "-0.005",
        "0.000",
        "0.005",
        "0.010",
        "0.015",
        "0.020",
    ]
    assert [label for _, label in value_ticks(12_345_678.1, 12_345_678.4)][:2] == ["12345678.1", "12345678.15"]
    for low, high in itertools.pairwise([-sys.float_info.max, -1e300, -1.0, 0.0, 5e-324, 1e-7, 1.0, 1e9, 1e300]):
        labels = [label for _, label in value_ticks(low, high)]
        assert 2 <= len(labels) <= 9, (low, high)
        assert len(set(labels)) == len(labels), (low, high, labels)


@pytest.mark.parametrize(
    ("length", "first"),
    [
        (100, "00:00:00.020"),
        (60_000, "00:00:10"),
        (3 * 3_600_000, "00:30"),
        (3 * DAY, "12:00"),
        (5 * DAY, "01-02"),
        (50 * DAY, "01-08"),
        (900 * DAY, "1970-07"),
        (300_000 * DAY, "2400-01"),
    ],
)
def test_ticks_of_times_are_round_at_each_scale(length: int, first: str) -> None:
    ticks = time_ticks(0, length)
    assert 2 <= len(ticks) <= 10
    assert ticks[1].label == first
    assert all(stamp(tick.at)[11:] == "00:00:00.000Z" for tick in ticks if tick.precision in {"day", "month"})
    shares = [tick.share for tick in ticks]
    assert shares == sorted(shares)
    assert shares[-1] <= 1
