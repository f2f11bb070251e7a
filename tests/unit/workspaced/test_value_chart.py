from __future__ import annotations

import pytest

from workspaced.ui.value_chart import HEIGHT, WIDTH, Quantity, quantity_of, value_chart


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


def test_a_value_stays_until_the_next_one_and_the_chart_fills_its_box() -> None:
    chart = value_chart([(0, "a", "1 kg"), (50, "b", "3 kg"), (100, "c", "2 kg")])
    assert chart is not None
    corners = [tuple(map(float, corner.split(","))) for corner in chart.points.split()]
    assert [x for x, _ in corners] == [8, WIDTH / 2, WIDTH / 2, WIDTH - 8, WIDTH - 8]
    assert [y for _, y in corners] == [HEIGHT - 8, HEIGHT - 8, 8, 8, HEIGHT / 2]
    assert (chart.lowest, chart.highest, chart.unit, chart.first, chart.last) == ("1 kg", "3 kg", "kg", "a", "c")


@pytest.mark.parametrize("values", [["1"], ["1", "2 kg"], ["1", "x"], ["1", None], []])
def test_other_values_have_no_chart(values: list[str | None]) -> None:
    assert value_chart([(at, "t", value) for at, value in enumerate(values)]) is None


def test_equal_and_extreme_values_have_a_chart() -> None:
    for values in (["1", "1"], ["-1e308", "1e308"]):
        chart = value_chart([(7, "t", value) for value in values])
        assert chart is not None
        assert all(0 <= float(number) <= WIDTH for corner in chart.points.split() for number in corner.split(","))
