"""Pages of filtered lists with bounded work."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workspaced.core.problems import Invalid
from workspaced.storage.bounded_walk import Walked, walk
from workspaced.storage.port import Row


class Rows:
    """The numbers from 1 on; every ``every``-th matches. Counts the rows that are skipped."""

    def __init__(self, count: int, every: int) -> None:
        self.numbers = range(1, count + 1)
        self._every = every
        self.passed = 0

    def page(self, start: int, *, take: int, skip: int, most: int) -> Walked[int]:
        return walk(
            start,
            take=take,
            skip=skip,
            most=most,
            matching=self._matching,
            end=lambda after, count: after + count if after + count <= len(self.numbers) else None,
            position=lambda row: int(row[0]),
        )

    def _matching(self, after: int, count: int, limit: int) -> list[Row]:
        walked = [number for number in self.numbers if number > after][:count]
        self.passed += len(walked)
        return [(number,) for number in walked if number % self._every == 0][:limit]


@given(count=st.integers(0, 200), every=st.integers(1, 60), take=st.integers(1, 20), most=st.integers(1, 300))
def test_pages_have_every_match_once_and_skip_a_bounded_number_of_rows(
    count: int, every: int, take: int, most: int
) -> None:
    # contract G28
    rows, found, start = Rows(count, every), list[int](), 0
    while True:
        rows.passed = 0
        page = rows.page(start, take=take, skip=0, most=most)
        assert rows.passed <= most
        assert len(page.rows) <= take
        found += [row[0] for row in page.rows]
        if page.next_after is None:
            break
        assert page.next_after > start
        start = page.next_after
    assert found == [number for number in rows.numbers if number % every == 0]


@given(count=st.integers(0, 100), every=st.integers(1, 10), take=st.integers(1, 20), skip=st.integers(0, 30))
def test_the_first_matches_can_be_skipped(count: int, every: int, take: int, skip: int) -> None:
    rows = Rows(count, every)
    matches = [number for number in rows.numbers if number % every == 0]
    assert [row[0] for row in rows.page(0, take=take, skip=skip, most=1_000).rows] == matches[skip : skip + take]


def test_a_page_without_a_filter_skips_only_its_own_rows() -> None:
    rows = Rows(10_000, 1)
    rows.page(0, take=10, skip=5, most=1_000)
    assert rows.passed == 16


def test_an_offset_beyond_the_limit_is_rejected() -> None:
    with pytest.raises(Invalid, match="at most 100 records"):
        Rows(1_000, 50).page(0, take=1, skip=5, most=100)
