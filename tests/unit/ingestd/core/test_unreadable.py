"""Unreadable values: they matter only if something uses their column."""

from __future__ import annotations

import polars as pl
import pytest

from ingestd.core.errors import SourceBroken
from ingestd.core.groups import AggregateSpec, Aggregation, GroupSpec
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.core.mapping.specification import ColumnSelection
from ingestd.core.record import Batch, UnreadableColumn
from ingestd.core.unreadable import UsesColumns, reject_unreadable
from ingestd.sdk.formats import RecordChunk, RecordLocation, row_positions

VALUE = UnreadableColumn(name="mass", reason="it holds bytes that are no UTF-8 text", rows=(1,))
COLUMN = UnreadableColumn(name="photo", reason="it holds VARIANT, which has no text form")
USES_MASS = Mapping([EntrySpec(key="{part}", value="{mass}")])
USES_PHOTO = Mapping([EntrySpec(key="{part}", value="{photo}")])
USES_NEITHER = Mapping([EntrySpec(key="{part}", value="x")])
SELECTS_ALL = Mapping([EntrySpec(key="{part}.{column}", selection=ColumnSelection(match=("*",)))])
SELECTS_OTHERS = Mapping(
    [EntrySpec(key="{part}.{column}", selection=ColumnSelection(match=("*",), excluded=("photo", "mass")))]
)
COUNTS_MASSES = Aggregation(GroupSpec(by=("part",), take=(("n", AggregateSpec(function="max", field="mass")),)))


def batch() -> Batch:
    return Batch(
        records=pl.DataFrame({"part": ["A", "B"], "mass": ["1", None]}),
        positions=row_positions([1, 2]),
        cursor={},
        header=True,
        unreadable=(VALUE, COLUMN),
    )


@pytest.mark.parametrize("user", [USES_NEITHER, SELECTS_OTHERS])
def test_what_nothing_uses_is_not_missed(user: UsesColumns) -> None:
    found = reject_unreadable(batch(), user)
    assert found.records["part"].to_list() == ["A", "B"]
    assert (found.rejects, found.unreadable) == ((), ())


@pytest.mark.parametrize("user", [USES_MASS, COUNTS_MASSES])
def test_a_record_with_an_unreadable_value_in_a_used_column_is_rejected_alone(user: UsesColumns) -> None:
    found = reject_unreadable(batch(), user)
    assert found.records.rows() == [("A", "1")]
    assert found.positions.to_list() == [1]
    [reject] = found.rejects
    assert reject.position == 2
    assert reject.reason == "The value of column 'mass' can't be read: it holds bytes that are no UTF-8 text."
    assert (reject.field, reject.record) == ("mass", {"part": "B", "mass": None})


@pytest.mark.parametrize("user", [USES_PHOTO, SELECTS_ALL, None])
def test_a_used_column_that_cannot_be_read_rejects_the_reading_with_its_name(user: UsesColumns | None) -> None:
    with pytest.raises(SourceBroken) as broken:
        reject_unreadable(batch(), user)
    assert str(broken.value) == (
        "Column 'photo' can't be read: it holds VARIANT, which has no text form. Correct the file, or map other columns only."
    )


def test_a_chunk_for_a_reader_without_a_mapping_counts_every_column_as_used() -> None:
    chunk = RecordChunk(
        records=batch().records, positions=batch().positions, end=RecordLocation(row=2), unreadable=(VALUE,)
    )
    found = chunk.without_unreadable()
    assert (found.records.rows(), len(found.rejects), found.unreadable) == ([("A", "1")], 1, ())
