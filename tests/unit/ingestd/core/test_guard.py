"""The rule that holds a run."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestd.core.guard import DEFAULT_GUARD, FACTORS, MIN_VALUES, Guard, RunEffect, count_near_factors, hold_reasons


def effect(*, before: int = 100, updated: int = 0, removed: int = 0, empty: bool = False) -> RunEffect:
    return RunEffect(before=before, created=0, updated=updated, removed=removed, empty=empty)


@pytest.mark.parametrize(("removed", "held"), [(50, False), (51, True), (100, True)])
def test_without_a_setting_a_run_that_removes_more_than_half_of_a_hundred_is_held(removed: int, held: bool) -> None:
    assert bool(hold_reasons(DEFAULT_GUARD, effect(removed=removed))) is held
    assert not hold_reasons(DEFAULT_GUARD, effect(before=99, removed=99))


def test_a_reason_names_the_numbers_and_the_limit() -> None:
    guard = Guard(removed_percent=5, changed_percent=7.5)
    assert hold_reasons(guard, effect(before=400, removed=21, updated=100)) == (
        "It removes 21 of 400 entries (5.2 %); the limit is 5 %.",
        "It changes 100 of 400 entries (25.0 %); the limit is 7.5 %.",
    )


def test_shares_of_few_entries_are_not_checked() -> None:
    guard = Guard(removed_percent=5, changed_percent=5, minimum=20)
    assert hold_reasons(guard, effect(before=19, removed=19, updated=19)) == ()
    assert hold_reasons(guard, effect(before=20, removed=19))


def test_an_empty_reading_is_held_only_if_there_was_something_before() -> None:
    assert hold_reasons(Guard(empty=True), effect(before=3, empty=True))
    assert not hold_reasons(Guard(empty=True), effect(before=0, empty=True))
    assert not hold_reasons(Guard(), effect(before=3, empty=True))


def test_a_guard_of_removals_does_not_cover_a_source_that_keeps_entries() -> None:
    assert DEFAULT_GUARD.covers("remove")
    assert not DEFAULT_GUARD.covers("keep")
    assert Guard(types=True).covers("keep")


NUMBERS = st.integers(min_value=1000, max_value=10**9).map(lambda number: number / 1000)


@given(
    values=st.lists(NUMBERS, min_size=MIN_VALUES, max_size=60),
    factor=st.sampled_from(sorted(FACTORS)),
    negative=st.booleans(),
    others=st.lists(NUMBERS, max_size=60),
)
def test_a_majority_of_numbers_moved_by_a_factor_is_found(
    values: list[float], factor: str, negative: bool, others: list[float]
) -> None:
    others = others[: len(values) - 1]
    sign = -1 if negative else 1
    former = [f"{sign * value:.6f}" for value in values] + [str(value) for value in others]
    new = [f"{sign * value * FACTORS[factor]:.6f}" for value in values] + [str(value * 7) for value in others]
    numeric, near = count_near_factors(pl.Series(former), pl.Series(new))
    assert numeric == len(values) + len(others)
    assert near == {name: len(values) if name == factor else 0 for name in FACTORS}
    moved = RunEffect(before=1, created=0, updated=numeric, removed=0, numeric=numeric, near=near)
    (reason,) = hold_reasons(Guard(factors=True), moved)
    assert f"It multiplies {len(values)} of {numeric} changed numbers by about {factor}," in reason


@given(values=st.lists(NUMBERS, max_size=40), ratio=st.floats(min_value=0.5, max_value=2))
def test_ordinary_changes_are_not_near_a_factor(values: list[float], ratio: float) -> None:
    former, new = [str(value) for value in values], [str(value * ratio) for value in values]
    _, near = count_near_factors(pl.Series(former, dtype=pl.String), pl.Series(new, dtype=pl.String))
    moved = RunEffect(before=1, created=0, updated=len(values), removed=0, numeric=len(values), near=near)
    assert hold_reasons(Guard(factors=True), moved) == ()


def test_what_is_not_a_number_has_no_ratio() -> None:
    former = pl.Series(["1", "a", None, "0", "nan", "inf", "5"])
    new = pl.Series(["1000", "1000", "5", "3", "4", "7", "0"])
    assert count_near_factors(former, new) == (1, {name: int(name == "1000") for name in FACTORS})


@pytest.mark.parametrize(("near", "held"), [(MIN_VALUES - 1, False), (MIN_VALUES, True)])
def test_a_few_values_near_a_factor_are_not_held(near: int, held: bool) -> None:
    moved = RunEffect(before=1, created=0, updated=near, removed=0, numeric=near, near={"25.4": near})
    assert bool(hold_reasons(Guard(factors=True), moved)) is held
