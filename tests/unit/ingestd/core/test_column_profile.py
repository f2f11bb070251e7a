"""The notation of numbers in a sample: what is proven, and what a person decides."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pytest
from msgspec.structs import replace

from ingestd.core.column_profile import ColumnProfile, UnclearNumbers

COMMAS = UnclearNumbers(commas=True, points=False)
POINTS = UnclearNumbers(commas=False, points=True)
MIXED = UnclearNumbers(commas=True, points=True)


def profile_of(**columns: Sequence[str | None]) -> ColumnProfile:
    found = ColumnProfile()
    found.add(pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String)))
    return found


@pytest.mark.parametrize(
    ("values", "commas", "thousands", "unclear"),
    [
        (["1,204.5", "0.51"], {}, {"a"}, {}),
        (["1,204", "0.5", "1,204.5", None, ""], {}, {"a"}, {}),
        (["1,204,000", "0.5"], {}, {"a"}, {}),
        (["1,204,000.5"], {}, {"a"}, {}),
        (["1.204,5", "0,51"], {"a": True}, set(), {}),
        (["1.204.000", "0,5"], {"a": True}, set(), {}),
        (["1,250", "2,500"], {}, set(), {"a": COMMAS}),
        (["1.250", "0.500", "2,750", None, ""], {}, set(), {"a": replace(MIXED, decimal=".")}),
        (["1.250", "0,5"], {}, set(), {"a": replace(MIXED, decimal=",")}),
        (["1.250", "2,750"], {}, set(), {"a": MIXED}),
        (["0.500", "0,500"], {}, set(), {}),
        (["12,34.5", "1"], {}, set(), {}),
        (["1204.5", "0.5"], {}, set(), {}),
        (["1,204.5", "x"], {}, set(), {}),
    ],
)
def test_the_marks_of_a_column_show_its_notation(
    values: list[str | None], commas: dict[str, bool], thousands: set[str], unclear: dict[str, UnclearNumbers]
) -> None:
    found = profile_of(a=values)
    assert (found.decimal_commas(), set(found.thousands_commas())) == (commas, thousands)
    assert found.unclear_numbers(points=False) == unclear


def test_a_column_with_commas_between_thousands_proves_decimal_points() -> None:
    found = profile_of(a=["1,204.5", "2"], b=["1.250", "2.500"])
    assert found.unclear_numbers(points=True) == {}
    assert profile_of(b=["1.250", "2.500"]).unclear_numbers(points=True) == {"b": POINTS}


def test_a_column_with_lone_commas_and_lone_points_proves_nothing_about_another_column() -> None:
    for values in (["1,204", "0.5"], ["1.204", "0,5"]):
        found = profile_of(a=values, b=["1,250", "2,500"], c=["1.250", "2.500"])
        assert found.unclear_numbers(points=True).keys() == {"a", "b", "c"}


def test_texts_for_a_missing_number_do_not_make_a_column_of_texts() -> None:
    found = profile_of(
        mass=["1,5", "n/a", "-", ""], count=["1", "2", "N/A", "3"], note=["bolt", "-", "nut", "2"], none=["-"] * 4
    )
    contract = found.contract()
    assert {name: (column.type, column.filled) for name, column in contract.items()} == {
        "mass": ("text", False), "count": ("integer", False), "note": ("text", True), "none": ("text", True),
    }  # fmt: skip
    assert found.decimal_commas() == {"mass": False, "count": False}
    assert (found.gaps("mass"), found.gaps("count")) == (["", "-", "n/a"], ["N/A"])
