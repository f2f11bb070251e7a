"""The digest of a reading depends on its records and not on its batches."""

from __future__ import annotations

from itertools import pairwise

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from ingestd.core.record import Reject
from ingestd.intake.recorded_intake import PartitionReading

HASHES = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20)


def reading(hashes: list[int], cuts: list[int], reason: str = "It is no number.") -> PartitionReading:
    made = PartitionReading()
    edges = sorted({0, *(cut % len(hashes) for cut in cuts), len(hashes)})
    for start, end in pairwise(edges):
        entries = pl.DataFrame({"row_hash": hashes[start:end]}, schema={"row_hash": pl.UInt64})
        rejects = [(Reject(position=start, reason=reason), None)] if start == 0 else []
        made.add(entries, rejects, end - start)
    return made


@given(hashes=HASHES, one=st.lists(st.integers(0, 20)), two=st.lists(st.integers(0, 20)))
def test_equal_records_in_other_batches_have_an_equal_digest(hashes: list[int], one: list[int], two: list[int]) -> None:
    assert reading(hashes, one).content == reading(hashes, two).content
    assert reading(hashes, one).records == len(hashes)


@given(hashes=HASHES, other=HASHES)
def test_other_records_or_reasons_have_another_digest(hashes: list[int], other: list[int]) -> None:
    assert (reading(hashes, []).content == reading(other, []).content) == (hashes == other)
    assert reading(hashes, []).content != reading(hashes, [], reason="It is empty.").content
