"""The notation of numbers in a sample: what is proven, and what a person decides."""

from __future__ import annotations

import polars as pl
import pytest

from ingestd.core.column_profile import ColumnProfile


def profile_of(**columns: list[str | None]) -> ColumnProfile:
    found = ColumnProfile()
    found.add(pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String)))
    return found


@pytest.mark.parametrize(
    ("values", "commas", "thousands", "unclear"),
    [
        (["1,204.5", "0.51"], {}, {"a"}, {}),
        (["1,204", "0.5", None, ""], {}, {"a"}, {}),
        (["1,204,000.5"], {}, {"a"}, {}),
        (["1.204,5", "0,51"], {"a": True}, set(), {}),
        (["1,250", "2,500"], {}, set(), {"a": True}),
        (["12,34.5", "1"], {}, set(), {}),
        (["1204.5", "0.5"], {}, set(), {}),
        (["1,204.5", "x"], {}, set(), {}),
    ],
)
def test_the_marks_of_a_column_show_its_notation(
    values: list[str | None], commas: dict[str, bool], thousands: set[str], unclear: dict[str, bool]
) -> None:
    found = profile_of(a=values)
    assert (found.decimal_commas(), set(found.thousands_commas())) == (commas, thousands)
    assert found.unclear_numbers(points=False) == unclear


def test_a_column_with_commas_between_thousands_proves_decimal_points() -> None:
    found = profile_of(a=["1,204.5", "2"], b=["1.250", "2.500"])
    assert found.unclear_numbers(points=True) == {}
    assert profile_of(b=["1.250", "2.500"]).unclear_numbers(points=True) == {"b": False}
