"""Factors between former and new values."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestd.core.unit_factors import FACTORS, POWER_OF_TEN, as_numbers, find_near_factors

NUMBERS = st.integers(min_value=1000, max_value=10**9).map(lambda number: number / 1000)
NAMED = {name: factor for name, (factor, _) in FACTORS.items()} | {
    f"1/{name}": 1 / factor for name, (factor, _) in FACTORS.items() if factor != -1
}


def test_the_page_of_the_guard_lists_every_factor() -> None:
    page = (Path(__file__).parents[4] / "docs" / "guard.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"[\d.]*\d", " ".join(re.findall(r"^- .+$", page.partition("\n## ")[0], re.MULTILINE))))
    assert {name.removeprefix("-") for name in FACTORS} <= listed


def near(pairs: list[tuple[str | None, str | None]]) -> dict[str, list[bool]]:
    former, new = (as_numbers(pl.Series([pair[side] for pair in pairs], dtype=pl.String)) for side in (0, 1))
    return {name: mask.to_list() for name, mask in find_near_factors(new / former).items()}


@given(value=NUMBERS, factor=st.sampled_from(sorted(NAMED)), sign=st.sampled_from((1, -1)))
def test_each_factor_and_its_inverse_are_found(value: float, factor: str, sign: int) -> None:
    assert near([(f"{sign * value:.9f}", f"{sign * value * NAMED[factor]:.9f}"), ("1", "7.7")])[factor] == [True, False]


@pytest.mark.parametrize("factor", [*NAMED.values(), 10.0, 100.0, 1000.0, 1e6, 0.1, 0.01, 0.001, 1e-9])
def test_a_factor_is_near_within_one_percent(factor: float) -> None:
    for off, found in ((1.009, True), (0.991, True), (1.011, False), (0.989, False)):
        wanted = next((name for name, known in NAMED.items() if known == factor), POWER_OF_TEN)
        assert (wanted in near([("2.5", repr(2.5 * factor * off))])) is found


def test_a_lost_decimal_separator_shifts_each_value_by_its_own_decimals() -> None:
    assert near([("1.25", "125"), ("0.5", "05"), ("7.125", "7125"), ("-2.5", "-25"), ("3", "3")]) == {
        POWER_OF_TEN: [True, True, True, True, False]
    }


@given(
    value=NUMBERS,
    ratio=st.sampled_from((0.5, 0.8, 0.9, 0.95, 1.0, 1.02, 1.05, 1.1, 1.15, 1.2, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0)),
)
def test_growth_margins_and_small_multiples_are_no_factor(value: float, ratio: float) -> None:
    assert near([(f"{value:.9f}", f"{value * ratio:.9f}")]) == {}


def test_a_changed_sign_is_found_and_a_sign_with_another_value_is_not() -> None:
    assert near([("-5", "5"), ("2.50", "-2.5"), ("2", "-2.1"), ("0", "-0.0")]) == {"-1": [True, True, False, False]}


def test_what_is_not_a_nonzero_finite_number_has_no_factor() -> None:
    pairs = [
        ("a", "1000"),
        (None, "5"),
        ("0", "1000"),
        ("nan", "4"),
        ("inf", "7"),
        ("5", "0"),
        ("1,25", "125"),
        ("12 kg", "12000 kg"),
    ]
    assert near([*pairs, ("1e-300", "1e300"), ("1", "1000")]) == {POWER_OF_TEN: [False] * 9 + [True]}
    assert near([]) == {}
    numbers = as_numbers(pl.Series(["1.50", "1e3", "-2", "+5", "0.000", "", "x", None, "1e400"]))
    assert numbers.to_list() == [1.5, 1000.0, -2.0, 5.0, None, None, None, None, None]


def test_no_two_factors_of_the_table_are_the_same() -> None:
    ratios = sorted(abs(factor) for factor in NAMED.values())
    assert all(later / earlier > 1.0001 for earlier, later in pairwise(ratios))
    assert all(abs(math.log10(ratio) - round(math.log10(ratio))) > 0.004 for ratio in ratios if ratio != 1)
