from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestd.intake.difference import Difference
from ingestd.mirror.port import Snapshot
from ingestd.mirror.row_hashes import RowHashes

HASHES = st.lists(st.integers(0, 2**64 - 1), max_size=20)


def series(values: list[int]) -> pl.Series:
    return pl.Series("row_hash", values, dtype=pl.UInt64)


@given(before=HASHES, now=HASHES, shared=st.integers(0, 10))
def test_fresh_rows_are_those_that_the_last_reading_lacked(before: list[int], now: list[int], shared: int) -> None:
    now = now + before[:shared]
    difference = Difference(lambda: Snapshot(hashes=RowHashes.of(series(before))))
    assert difference.mask_new(series(now)).to_list() == [value not in before for value in now]
    assert difference.seen().hashes.series().to_list() == now


BORDERS = [0, 1, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1]
"""Neighbours that a comparison as signed integers or as floating-point numbers would confuse or misplace."""


@pytest.mark.parametrize("others", [0, 1000], ids=["joined", "searched"])
@given(before=st.lists(st.sampled_from(BORDERS)), now=st.lists(st.sampled_from(BORDERS)))
def test_neighbouring_hashes_are_compared_exactly_over_the_whole_range(
    others: int, before: list[int], now: list[int]
) -> None:
    known = [*before, *range(10**6, 10**6 + others)]
    difference = Difference(lambda: Snapshot(hashes=RowHashes.of(series(known))))
    assert difference.mask_new(series(now)).to_list() == [value not in before for value in now]


def test_without_a_last_reading_all_rows_are_fresh() -> None:
    difference = Difference(None)
    assert difference.mask_new(series([1, 1, 2])).to_list() == [True, True, True]


def test_seen_rows_are_collected_over_batches() -> None:
    difference = Difference(lambda: Snapshot(hashes=RowHashes.of(series([5]))))
    difference.mask_new(series([9, 5]))
    difference.mask_new(series([]))
    difference.mask_new(series([1]))
    assert difference.seen().hashes.series().to_list() == [9, 5, 1]


def test_without_batches_the_seen_rows_are_an_empty_series() -> None:
    seen = Difference(None).seen().hashes.series()
    assert seen.len() == 0
    assert seen.dtype == pl.UInt64
