"""Row hashes in pieces and ranges: the same results as with all hashes in memory."""

from __future__ import annotations

import sqlite3

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingestd.mirror import row_hashes
from ingestd.mirror.row_hashes import RowHashes
from ingestd.mirror.sqlite.entries import snapshots
from ingestd.mirror.sqlite.entries.snapshots import digest_of, keep_in_snapshot, load_snapshot, store_snapshot

MOST = (1 << 64) - 1
HASHES = st.lists(st.integers(0, MOST) | st.sampled_from([0, 1, (1 << 63) - 1, 1 << 63, MOST]), max_size=30)
many_ranges = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def series(values: list[int]) -> pl.Series:
    return pl.Series("row_hash", values, dtype=pl.UInt64)


def in_pieces(values: list[int]) -> RowHashes:
    return RowHashes(lambda: (series(values[at : at + 3]) for at in range(0, len(values), 3)), len(values))


@pytest.fixture(autouse=True)
def _sort_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_hashes, "_SORTED", 4)


@many_ranges
@given(HASHES)
def test_the_ranges_have_all_hashes_in_order(values: list[int]) -> None:
    ranges = list(in_pieces(values).ranges())
    assert [value for part in ranges for value in part.hashes] == sorted(values)
    assert len(ranges) >= len(values) / 4


@many_ranges
@given(HASHES, HASHES)
def test_each_hash_is_compared_within_its_range(values: list[int], others: list[int]) -> None:
    asked = series(others + values[:5])
    absent = []
    for part in in_pieces(values).ranges():
        within = part.within(asked)
        absent += within.filter(part.mask_absent(within.reinterpret(signed=True))).to_list()
    assert sorted(absent) == sorted(one for one in others if one not in values)


@many_ranges
@given(HASHES)
def test_a_statement_selects_the_hashes_of_a_range(values: list[int]) -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE entry (row_hash INTEGER)")
    signed = series(values).reinterpret(signed=True).to_list()
    connection.executemany("INSERT INTO entry VALUES (?)", [(value,) for value in signed])
    for part in in_pieces(values).ranges():
        sql = "SELECT row_hash FROM entry WHERE row_hash >> :shift & :mask = :range"
        found = [value % (MOST + 1) for (value,) in connection.execute(sql, part.parameters)]
        assert sorted(found) == part.hashes.to_list()
    connection.close()


@many_ranges
@given(HASHES, HASHES)
def test_hashes_are_found_whether_signed_or_not(values: list[int], others: list[int]) -> None:
    for asked in (series(others), series(others).reinterpret(signed=True)):
        assert set(in_pieces(values).find(asked)) == {*values} & {*others}
        assert in_pieces(values).has_any_of(asked) == bool({*values} & {*others})


@many_ranges
@given(HASHES)
def test_the_digest_depends_neither_on_pieces_nor_on_ranges(values: list[int]) -> None:
    expected = digest_of(in_pieces(values))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_hashes, "_SORTED", 100)
        assert digest_of(RowHashes.of(series(values[::-1]))) == expected


def test_the_digest_of_many_hashes_does_not_depend_on_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_hashes, "_SORTED", 1 << 18)
    many = pl.select(pl.int_range(1_200_000, dtype=pl.UInt64).hash()).to_series()  # more than a piece of the digest
    pieces = RowHashes(lambda: (piece.to_series() for piece in many.to_frame().iter_slices(70_000)), many.len())
    assert digest_of(pieces) == digest_of(RowHashes.of(many))


def test_hashes_can_be_added() -> None:
    more = in_pieces([5, 6, 7, 8]).plus([series([1]), series([9, 2])])
    assert (more.count, more.series().to_list()) == (7, [5, 6, 7, 8, 1, 9, 2])


@many_ranges
@given(HASHES, st.sets(st.integers(0, 29)), HASHES)
def test_a_snapshot_keeps_the_hashes_of_a_reading_in_their_order(
    values: list[int], gone: set[int], others: list[int]
) -> None:
    seen = [value for at, value in enumerate(values) if at not in gone] + others
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE snapshot (partition INTEGER, piece INTEGER, hashes BLOB, sections BLOB)")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshots, "_PIECE", 3)
        patch.setattr(snapshots, "_SMALL", 0)
        for partition in (1, 2):
            store_snapshot(connection, partition, in_pieces(values), pl.DataFrame({"digest": [b"d"], "records": [1]}))
        keep_in_snapshot(connection, 1, in_pieces(seen))
    assert load_snapshot(connection, 1).to_list() == [value for value in values if value in seen]
    assert load_snapshot(connection, 2).to_list() == values
    assert connection.execute(
        "SELECT count(*) FROM snapshot WHERE partition = 1 AND sections IS NOT NULL"
    ).fetchone() == (0,)
    connection.close()
