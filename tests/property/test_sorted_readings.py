"""A large reading that sorts its entries before it stores them has the result of one that stores them in its order."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ingestd.core.address import SinkAddress
from ingestd.core.errors import MirrorFull, SourceBroken
from ingestd.core.guard import Guard
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.intake import Reader
from ingestd.intake.difference import SPILL_PARTS, Difference
from ingestd.intake.entry_sorter import RANGES, EntrySorter
from ingestd.intake.spill_file import SpillFile
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.mirror.sqlite.entries.segments import encode, json_rows
from tests.support.scripted_source import Script, ScriptedConnector

Rows = list[tuple[str, str]]
MAPPING = Mapping([EntrySpec(key="{k}", value="{v}")])
CONTENT = st.lists(st.tuples(st.text("abcdé", min_size=1, max_size=2), st.sampled_from("123")), max_size=25)


class Readings:
    """Passes over one source, with a state file of their own."""

    def __init__(self, folder: Path, guard: Guard, script: Script) -> None:
        self._folder = folder
        self.mirror = SqliteMirror.open(folder / "state.db")
        self.mirror.intake.activate(["pipe"])
        self.reader = Reader(
            pipeline="pipe", connector=ScriptedConnector(script), mapping=MAPPING, mirror=self.mirror.intake,
            sink=SinkAddress(workspace="w", by="label", name="s"), emit=lambda event: None, guard=guard, folder=folder,
        )  # fmt: skip

    def entries(self) -> list[tuple[Any, ...]]:
        """Return all entries. Segments differ; so does the position of an equal record that is repeated in another commit.

        A key that is repeated in another commit can have the pass read once more, so another run removes what vanished.
        """
        statement = "SELECT key, value, removed, iif(removed, 0, run), row_hash FROM entry ORDER BY key"
        with closing(sqlite3.connect(self._folder / "state.db")) as database:
            return database.execute(statement).fetchall()

    def counts(self) -> list[tuple[int, ...]]:
        return [(one.records, one.rejected) for one in self.reader.read_pass().read]


@settings(max_examples=30)
@example(
    # The repeated key is alone in the first of several frames, which polars 2.1 then wrote as no rows.
    contents=[[("a", "1")] * 2, [("a", "1")] * 3 + [("b", "1"), ("b", "1"), ("c", "1")]], batch_rows=1, commit=4, unsorted=0,
    seconds=1e9, in_memory=1, guard=Guard(),
)  # fmt: skip
@given(
    contents=st.lists(CONTENT, min_size=1, max_size=3),
    batch_rows=st.integers(1, 7),
    commit=st.integers(1, 5),
    unsorted=st.integers(0, 10),
    seconds=st.sampled_from([0.0, 1e9]),
    in_memory=st.integers(1, 30),
    guard=st.sampled_from([Guard(), Guard(types=True)]),
)
def test_sorted_entries_have_the_result_of_unsorted_ones(
    *, contents: list[Rows], batch_rows: int, commit: int, unsorted: int, seconds: float, in_memory: int, guard: Guard
) -> None:
    script = Script(deletes="remove", batch_rows=batch_rows)
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        plain, by_key = Readings(Path(one), guard, script), Readings(Path(other), guard, script)
        for rows in contents:
            script.write("p", [{"k": key, "v": value} for key, value in rows])
            with patch("ingestd.intake.run._ENTRIES_IN_COMMIT", commit):
                counts = plain.counts()
                with (
                    patch("ingestd.intake.run._ENTRIES_UNSORTED", unsorted),
                    patch("ingestd.intake.run._SORTING_SECONDS", seconds),
                    patch("ingestd.intake.difference._IN_MEMORY", in_memory),
                    patch("ingestd.intake.difference._SLICE", 3),
                    patch("ingestd.intake.entry_sorter.ROWS_AT_ONCE", 3),
                    patch("ingestd.mirror.row_hashes._SORTED", in_memory),
                    patch("ingestd.mirror.sqlite.entries.snapshots._PIECE", 3),
                ):
                    assert by_key.counts() == counts
            assert by_key.entries() == plain.entries()
            assert {key: value for key, value, removed, *_ in by_key.entries() if not removed} == dict(rows)
        assert [one.name for one in Path(other).iterdir() if "state.db" not in one.name] == [], "no file remains"
        plain.mirror.close()
        by_key.mirror.close()


@pytest.mark.parametrize("stays", [True, False])
def test_a_broken_reading_stores_what_it_sorted(tmp_path: Path, *, stays: bool) -> None:
    script = Script(batch_rows=2)
    script.write("p", [{"k": f"k{number}", "v": "1"} for number in range(10)])
    script.contents["p"].fails_after = 6
    script.contents["p"].error = SourceBroken("the file ends in the middle") if stays else None
    readings = Readings(tmp_path, Guard(), script)
    with patch("ingestd.intake.run._ENTRIES_IN_COMMIT", 1), patch("ingestd.intake.run._ENTRIES_UNSORTED", 3):
        readings.counts()
    assert len(readings.entries()) == (6 if stays else 10)
    readings.mirror.close()


def test_parts_of_the_sorter_are_in_the_order_of_keys(tmp_path: Path) -> None:
    numbers = pl.int_range(5000, eager=True).shuffle(seed=5)
    entries = pl.DataFrame({"key": numbers.cast(pl.String).str.zfill(5), "position": pl.int_range(5000, eager=True)})
    with EntrySorter(tmp_path) as sorter:
        for piece in entries.iter_slices(1000):
            sorter.add(piece)
        pieces = list(sorter.drain())
        assert len(pieces) == RANGES
        assert pl.concat([piece.sort("key") for piece in pieces]).equals(entries.sort("key"))
        assert sorter.height == 0
        sorter.add(entries[:10])
        assert sum(piece.height for piece in sorter.drain()) == 10, "it can be used again"


@given(st.lists(st.lists(st.integers(0, 2**64 - 1), max_size=20), max_size=6))
def test_spilled_row_hashes_keep_their_order(batches: list[list[int]]) -> None:
    with tempfile.TemporaryDirectory() as folder, patch("ingestd.intake.difference._IN_MEMORY", 4):
        spill = SpillFile(Path(folder), parts=SPILL_PARTS, content="row hashes")
        difference = Difference(None, spill)
        for batch in batches:
            difference.mask_new(pl.Series("row_hash", batch, dtype=pl.UInt64))
        seen = difference.seen().hashes.series()
        spill.close()
    assert seen.dtype == pl.UInt64
    assert seen.to_list() == [value for batch in batches for value in batch]


def test_a_frame_of_which_the_first_chunk_is_empty_is_written_with_all_rows() -> None:
    chunks = pl.concat([pl.DataFrame({"key": ["b"]}), pl.DataFrame({"key": ["b", "c"]})], rechunk=False)
    rest = chunks.filter(pl.col("key").ne_missing(pl.col("key").shift(-1)))
    assert json_rows(rest) == '[{"key":"b"},{"key":"c"}]'
    entries = rest.with_columns(value=pl.lit("1"), data_type=pl.lit("scalar"))
    assert [item["key"] for item in msgspec.json.decode(encode(entries, "create"))] == ["b", "c"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    spill = SpillFile(tmp_path / "file", parts=1, content="entries")
    with pytest.raises(
        MirrorFull, match=r"The entries can't be written to a temporary file in .*file: .*Is the disk full"
    ):
        spill.append(0, pl.DataFrame({"key": ["a"]}))
