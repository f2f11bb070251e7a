"""Times and numbers of change: exact order, and the same form when they are moved back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.http.since import NoRank, back, read_change


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("9", "10"),
        ("-1.5", "-1.4"),
        ("2026-11-23T10:00:00.1234567Z", "2026-11-23T10:00:00.1234568Z"),
        ("2026-11-23T12:00:00+02:00", "2026-11-23T10:00:01Z"),
        ("2026-11-22", "2026-11-23T00:00:00Z"),
        ("1969-12-31T23:59:59.2Z", "1969-12-31T23:59:59.3Z"),
    ],
)
def test_changes_are_ordered_exactly(earlier: str, later: str) -> None:
    assert read_change(earlier).rank < read_change(later).rank


def test_equal_times_in_other_words_are_equal() -> None:
    assert read_change("2026-11-23T12:00:00+02:00").rank == read_change("2026-11-23T10:00:00.000Z").rank


@pytest.mark.parametrize(
    ("text", "overlap", "expected"),
    [
        ("2026-11-23T10:00:00Z", 60, "2026-11-23T09:59:00Z"),
        ("2026-11-23T10:00:00+02:00", 60, "2026-11-23T09:59:00+02:00"),
        ("2026-11-23T10:00:00", 0.5, "2026-11-23T09:59:59.500000"),
        ("2026-11-23", 1, "2026-11-22"),
        ("2026-11-23", 86_401, "2026-11-21"),
        ("105", 5, "100"),
        ("2026-11-23T10:00:00.1234567Z", 0, "2026-11-23T10:00:00.1234567Z"),
    ],
)
def test_a_value_is_moved_back_in_its_own_form(text: str, overlap: float, expected: str) -> None:
    assert back(text, overlap) == expected


@given(st.datetimes(), st.floats(0.001, 1e6))
def test_what_is_moved_back_is_never_later(at: object, overlap: float) -> None:
    text = str(at).replace(" ", "T") + "Z"
    try:
        moved = back(text, overlap)
    except OverflowError:
        return
    assert read_change(moved).rank <= read_change(text).rank


@pytest.mark.parametrize("text", [None, "", " ", "soon", "1/2/2026", "NaN"])
def test_anything_else_has_no_order(text: str | None) -> None:
    with pytest.raises(NoRank):
        read_change(text)
