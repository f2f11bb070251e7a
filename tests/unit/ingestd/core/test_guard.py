"""The rule that holds a run."""

from __future__ import annotations

import pytest

from ingestd.core.guard import DEFAULT_GUARD, Example, Guard, RunEffect, hold_reasons, may_hold


def effect(*, before: int = 100, updated: int = 0, removed: int = 0, empty: bool = False) -> RunEffect:
    return RunEffect(before=before, created=0, updated=updated, removed=removed, empty=empty)


def multiplied(near: int, numeric: int) -> RunEffect:
    return RunEffect(before=1000, created=0, updated=near, removed=0, numeric=numeric, near={"25.4": near, "1/12": 1})


@pytest.mark.parametrize(
    ("count", "of", "held"), [(49, 100, False), (50, 100, True), (10, 20, True), (9, 20, False), (19, 19, False)]
)
def test_without_a_setting_half_of_twenty_entries_removed_or_multiplied_holds_a_run(
    count: int, of: int, held: bool
) -> None:
    for found in (effect(before=of, removed=count), multiplied(count, of)):
        assert bool(hold_reasons(DEFAULT_GUARD, found)) is held
    assert not hold_reasons(DEFAULT_GUARD, effect(before=of, updated=count)), "other changes of any number pass"


@pytest.mark.parametrize(
    ("near", "changed", "held"), [(20, 40, True), (20, 41, False), (10, 19, False), (20, 20, True)]
)
def test_a_factor_of_most_numbers_that_change_holds_a_run_too(near: int, changed: int, held: bool) -> None:
    found = RunEffect(
        before=1000, created=0, updated=changed, removed=0, numeric=1000, renumbered=changed, near={"25.4": near}
    )
    reasons = hold_reasons(DEFAULT_GUARD, found)
    assert bool(reasons) is held
    assert all(f"It multiplies {near} of {changed} changed numbers" in reason for reason in reasons)


def test_every_share_is_held_at_its_limit() -> None:
    guard = Guard(removed_percent=5, changed_percent=7.5, factors_percent=0)
    assert hold_reasons(guard, effect(before=400, removed=20, updated=30)) == (
        "It removes 20 of 400 entries (5.0 %); the limit is 5 %.",
        "It changes 30 of 400 entries (7.5 %); the limit is 7.5 %.",
    )
    assert hold_reasons(guard, effect(before=400, removed=19, updated=29)) == ()


def test_a_limit_of_zero_holds_one_entry_and_not_none() -> None:
    guard = Guard(removed_percent=0)
    assert hold_reasons(guard, effect(removed=1))
    assert not hold_reasons(guard, effect(updated=100))


def test_the_totals_are_needed_only_if_the_smallest_partition_would_be_held() -> None:
    assert not may_hold(DEFAULT_GUARD, effect(before=0, removed=9, updated=1000))
    assert may_hold(DEFAULT_GUARD, effect(before=0, removed=10))
    assert may_hold(DEFAULT_GUARD, multiplied(10, 0))


def test_an_empty_reading_is_held_only_if_there_was_something_before() -> None:
    assert hold_reasons(Guard(empty=True), effect(before=3, empty=True))
    assert not hold_reasons(Guard(empty=True), effect(before=0, empty=True))
    assert not hold_reasons(Guard(), effect(before=3, empty=True))


def test_a_guard_of_removals_does_not_cover_a_source_that_keeps_entries() -> None:
    assert Guard(removed_percent=50).covers("remove")
    assert not Guard(removed_percent=50).covers("keep")
    for guard in (DEFAULT_GUARD, Guard(types=True), Guard(changed_percent=1), Guard(empty=True)):
        assert guard.covers("keep")
    assert not Guard().covers("remove")


def example(key: str, *, new: str | None = "12700", new_type: str | None = "FLOAT") -> Example:
    return Example(key=key, old="500", old_type="INT", new=new, new_type=new_type)


def test_a_reason_shows_examples_once_and_long_values_shortened() -> None:
    changed = (example("a"), example("b\n" + "x" * 100))
    found = RunEffect(
        before=100, created=0, updated=60, removed=60, numeric=100, near={"25.4": 60}, retyped=1,
        examples={
            "removed": (example("gone", new=None, new_type=None),), "changed": changed, "25.4": changed, "retyped": changed,
        },
    )  # fmt: skip
    guard = Guard(removed_percent=50, changed_percent=50, factors_percent=50, types=True)
    shown = f"'a' from 500 to 12700, 'b\ufffd{'x' * 58}…' from 500 to 12700"
    retyped = shown.replace("500", "500 (INT)").replace("12700", "12700 (FLOAT)")
    assert hold_reasons(guard, found) == (
        "It removes 60 of 100 entries (60.0 %); the limit is 50 %. For example 'gone' (500).",
        f"It changes 60 of 100 entries (60.0 %); the limit is 50 %. For example {shown}.",
        "It multiplies 60 of 100 numbers (60.0 %) by about 25.4 (inches and millimetres); the limit is 50 %.",
        f"It changes the data type of 1 entry. For example {retyped}.",
    )
