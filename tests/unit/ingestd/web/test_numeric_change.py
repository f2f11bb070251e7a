"""The difference and the factor that the page of a held run shows."""

from __future__ import annotations

import pytest

from ingestd.web.numeric_change import NumericChange, numeric_change


@pytest.mark.parametrize(
    ("before", "after", "difference", "factor", "is_large"),
    [
        ("0.5", "0.7", "+0.2", "1.4", False),
        ("1.7", "1.5", "-0.2", "0.882", False),
        ("12", "12000", "+11988", "1000", True),
        ("12000", "12", "-11988", "0.001", True),
        ("1", "2", "+1", "2", True),
        ("4", "2", "-2", "0.5", True),
        ("5", "-5", "-10", "-1", True),
        ("5", "0", "-5", "0", True),
        ("5", "5.0", "0", "1", False),
        ("0", "3", "+3", "", True),
        ("0", "0.0", "0", "", False),
        ("1e300", "1e-300", "-1E+300", "1E-600", True),
    ],
)
def test_two_numbers_have_a_difference_and_a_factor(
    before: str, after: str, difference: str, factor: str, is_large: bool
) -> None:
    assert numeric_change(before, after) == NumericChange(difference=difference, factor=factor, is_large=is_large)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, "1"),
        ("1", None),
        ("a", "1"),
        ("", "1"),
        ("NaN", "1"),
        ("1", "Infinity"),
        ("1" * 41, "1"),
        ("true", "false"),
    ],
)
def test_other_values_have_none(before: str | None, after: str | None) -> None:
    assert numeric_change(before, after) == NumericChange()


def test_a_result_out_of_range_is_large_and_has_no_text() -> None:
    assert numeric_change("1e-999999", "1e999999") == NumericChange(is_large=True)
