"""A key with different values in one source: the notice names the locations of both, in whatever batches they are read."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from ingestd.core.address import SinkAddress
from ingestd.core.guard import Guard
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.core.record import Partition
from ingestd.intake import Reader
from ingestd.mirror.sqlite import SqliteMirror
from tests.support.scripted_source import Script, ScriptedConnector

Rows = list[tuple[str, str]]
SINK = SinkAddress(workspace="w", by="label", name="s")
MAPPING = Mapping([EntrySpec(key="{k}", value="{v}")])
SENTENCE = re.compile(
    r"'(\w)' has different values: '(\d)' at (\w), row (\d+) and '(\d)' at (\w), row (\d+); the last one is delivered\."
    r"(?: (\d+) other keys? (?:is|are) repeated, too\.)?"
)
CONTENT = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("12")), max_size=12)


@contextmanager
def pipeline(script: Script, *, commit: int, guard: Guard) -> Iterator[tuple[Reader, SqliteMirror]]:
    """A reader that commits after ``commit`` entries."""
    with tempfile.TemporaryDirectory() as folder, patch("ingestd.intake.run._ENTRIES_IN_COMMIT", commit):
        mirror = SqliteMirror.open(Path(folder) / "state.db")
        mirror.intake.activate(["pipe"])
        reader = Reader(
            pipeline="pipe", connector=ScriptedConnector(script), mapping=MAPPING, sink=SINK,
            mirror=mirror.intake, emit=lambda event: None, guard=guard,
        )  # fmt: skip
        try:
            yield reader, mirror
        finally:
            mirror.close()


def notice(reader: Reader, mirror: SqliteMirror, name: str = "p") -> str:
    assert not reader.read_pass().rejected
    return next((one.sentence for one in mirror.status.pipelines()[0].notices if one.partition == name), "")


def repeated(rows: Rows) -> set[str]:
    """Return the keys with different values."""
    return {key for key, value in rows if (key, "1" if value == "2" else "2") in rows}


@given(
    contents=st.lists(CONTENT, min_size=1, max_size=3),
    batch_rows=st.integers(1, 5),
    commit=st.integers(1, 6),
    guard=st.sampled_from([Guard(), Guard(types=True)]),
)
def test_each_reading_names_both_locations_of_a_repeated_key(
    contents: list[Rows], batch_rows: int, commit: int, guard: Guard
) -> None:
    script = Script(deletes="remove", batch_rows=batch_rows)
    with pipeline(script, commit=commit, guard=guard) as (reader, mirror):
        for rows in contents:
            if script.contents and [*script.contents["p"].rows] == [{"k": key, "v": value} for key, value in rows]:
                continue
            script.write("p", [{"k": key, "v": value} for key, value in rows])
            found = SENTENCE.fullmatch(notice(reader, mirror))
            expected = repeated(rows)
            assert (found is None) == (not expected)
            if found is None:
                continue
            key, former, partition, former_row, last, last_partition, last_row, others = found.groups()
            assert (partition, last_partition) == ("p", "p")
            assert rows[int(former_row) - 2] == (key, former)
            assert rows[int(last_row) - 2] == (key, last)
            assert former != last
            assert int(former_row) < int(last_row)
            assert int(others or 0) == len(expected) - 1
            assert last == dict(rows)[key], "the last value is delivered"


@given(first=CONTENT, second=CONTENT, batch_rows=st.integers(1, 5), commit=st.integers(1, 6))
def test_a_key_of_two_present_partitions_names_both(first: Rows, second: Rows, batch_rows: int, commit: int) -> None:
    first, second = ([*dict(rows).items()] for rows in (first, second))  # no key twice in one partition
    script = Script(batch_rows=batch_rows)
    with pipeline(script, commit=commit, guard=Guard()) as (reader, mirror):
        script.write("p", [{"k": key, "v": value} for key, value in first])
        assert notice(reader, mirror) == ""
        script.write("q", [{"k": key, "v": value} for key, value in second])
        found = SENTENCE.fullmatch(notice(reader, mirror, "q"))
        differing = {key for key, value in second if dict(first).get(key, value) != value}
        assert (found is None) == (not differing)
        if found is not None:
            key, former, partition, former_row, last, last_partition, last_row, others = found.groups()
            assert (partition, last_partition) == ("p", "q")
            assert first[int(former_row) - 2] == (key, former)
            assert second[int(last_row) - 2] == (key, last)
            assert int(others or 0) == len(differing) - 1


def test_two_rows_in_different_commits_of_a_large_file_are_named() -> None:
    rows = [{"k": f"k{number}", "v": "1"} for number in range(12_000)]
    rows[11_000] = {"k": "k10", "v": "2"}
    script = Script(batch_rows=1000)
    script.write("p", rows)  # type: ignore[arg-type]
    with pipeline(script, commit=5000, guard=Guard()) as (reader, mirror):
        assert notice(reader, mirror) == (
            "'k10' has different values: '1' at p, row 12 and '2' at p, row 11002; the last one is delivered."
        )


def test_an_equal_value_of_an_earlier_reading_is_located_in_the_new_one() -> None:
    script = Script(batch_rows=1)
    with pipeline(script, commit=1, guard=Guard()) as (reader, mirror):
        script.write("p", [{"k": "a", "v": "1"}])
        assert notice(reader, mirror) == ""
        script.write("q", [{"k": "z", "v": "1"}])
        assert notice(reader, mirror) == ""
        script.write("p", [{"k": "b", "v": "1"}, {"k": "a", "v": "1"}, {"k": "a", "v": "2"}])
        assert notice(reader, mirror) == (
            "'a' has different values: '1' at p, row 3 and '2' at p, row 4; the last one is delivered."
        )


def test_a_partition_that_left_the_source_is_no_second_location() -> None:
    script = Script(batch_rows=1)
    with pipeline(script, commit=1, guard=Guard()) as (reader, mirror):
        script.write("p", [{"k": "a", "v": "1"}])
        assert notice(reader, mirror) == ""
        script.take_away("p")
        mirror.intake.pruner.note_gone(
            mirror.intake.open_partition("pipe", Partition(name="p"), SINK, MAPPING.digest).id
        )
        script.write("q", [{"k": "a", "v": "2"}])
        assert notice(reader, mirror, "q") == ""
