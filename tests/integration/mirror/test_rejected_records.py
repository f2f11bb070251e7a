"""Records that are parked: read again, put back, mended, dropped; over a real reader and a real state file."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from ingestd.core.address import SinkAddress
from ingestd.core.errors import RecordUnreadable, SourceBroken
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.core.record import Batch, Cursor, Partition, Reject
from ingestd.intake import Reader
from ingestd.mirror.rejections import Rejection, Retried, Selection
from ingestd.mirror.sqlite import SqliteMirror
from tests.support.scripted_source import Row, Script, ScriptedConnector

ALL = Selection()
SINK = SinkAddress(workspace="w", by="label", name="s")
GOOD: Row = {"k": "a", "v": "1"}
BAD: Row = {"k": "", "v": "9"}
UNREADABLE = Reject(position=7, reason="Line 7 is no line.", record={"text": "a;b\\c"})


class Desk:
    """A source, a state file, and a clock that goes on by one with every look."""

    def __init__(self, path: Path) -> None:
        self.script = Script()
        self._time = 0.0
        self._mapped = 0
        self.mirror = SqliteMirror.open(path, now=self._now)
        self.reader = self.new_reader(Mapping([EntrySpec(key="{k}", value="{v}")]))

    def _now(self) -> float:
        self._time += 1
        return self._time

    def new_reader(self, mapping: Mapping) -> Reader:
        return Reader(
            pipeline="pipe", connector=ScriptedConnector(self.script), mapping=mapping, sink=SINK,
            mirror=self.mirror.intake, emit=lambda event: None,
        )  # fmt: skip

    def read(self) -> None:
        report = self.reader.read_pass()
        assert not report.broken
        assert not report.away

    def rejected(self) -> list[Rejection]:
        return self.mirror.status.selected(ALL, limit=100)

    def retry(self, selection: Selection = ALL) -> Retried:
        return asyncio.run(self.mirror.rejected.retry(selection))

    def drop(self, selection: Selection = ALL) -> int:
        return asyncio.run(self.mirror.rejected.drop(selection))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path / "state.db")
    yield made
    made.mirror.close()


def test_a_rejected_record_is_told_as_it_was_with_its_place(desk: Desk) -> None:
    desk.script.write("m.csv", [GOOD, {"k": "", "v": " 0.10\t", "other": None}])
    desk.read()
    (one,) = desk.rejected()
    assert (one.subject, one.pipeline, one.partition, one.position, one.field) == ("record", "pipe", "m.csv", 3, "k")
    assert one.record == {"k": "", "v": " 0.10\t", "other": None}
    assert (one.workspace, one.sink, one.times, one.retried) == ("w", "s", 1, False)


def test_a_record_that_is_rejected_again_keeps_its_number_and_since_when(desk: Desk) -> None:
    desk.script.write("m.csv", [GOOD, BAD], rejects=(UNREADABLE,))
    desk.read()
    before = {one.position: one for one in desk.rejected()}
    desk.script.write("m.csv", [GOOD, {"k": "b", "v": "2"}, BAD], rejects=(UNREADABLE,))
    desk.read()
    desk.retry()
    desk.read()
    after = {one.position: one for one in desk.rejected()}
    assert after[7].id == before[7].id
    assert (after[7].at, after[7].times) == (before[7].at, 3), "three times it could not be read"
    assert after[7].last_at > after[7].at
    moved = after[4]
    assert (moved.id, moved.at, moved.times) == (before[3].id, before[3].at, 2), "it has moved, and is the same record"


def test_equal_records_that_are_rejected_stay_apart(desk: Desk) -> None:
    for _ in range(2):
        desk.script.write("m.csv", [BAD, GOOD, BAD])
        desk.read()
        desk.retry()
        desk.read()
        assert [one.position for one in desk.rejected()] == [2, 4]
    assert len({one.id for one in desk.rejected()}) == 2


def test_a_retried_record_waits_for_the_next_reading_and_is_judged_there(desk: Desk) -> None:
    desk.script.write("m.csv", [GOOD, BAD])
    desk.read()
    done = desk.retry()
    assert (done.records, done.entries, done.pipelines) == (1, 0, ("pipe",))
    assert [one.retried for one in desk.rejected()] == [True]
    desk.read()
    assert [(one.retried, one.times) for one in desk.rejected()] == [(False, 2)]


def test_only_what_was_asked_for_is_mapped_again(desk: Desk) -> None:
    good: list[Row] = [{"k": f"k{n}", "v": "1"} for n in range(20)]
    desk.script.write("m.csv", [*good, BAD, {"k": "", "v": "8"}])
    desk.read()
    first, _ = desk.rejected()
    desk.retry(Selection(ids=(first.id,)))
    desk.read()
    (pipeline,) = desk.mirror.status.pipelines()
    assert pipeline.last_run is not None
    assert (pipeline.last_run.rejected, pipeline.last_run.unchanged) == (1, 0), "no good record was mapped"
    assert [one.times for one in desk.rejected()] == [2, 1]


@pytest.mark.parametrize("begun", [False, True])
def test_a_retry_that_comes_while_the_partition_is_read_is_for_the_next_reading(desk: Desk, *, begun: bool) -> None:
    """One that comes before the first batch is for this one."""
    desk.script.write("m.csv", [GOOD, BAD, {"k": "b", "v": "2"}])
    desk.read()
    desk.script.write("m.csv", [GOOD, BAD, {"k": "b", "v": "3"}])
    connector, asked = desk.reader.connector, list[Retried]()
    read = connector.read

    def read_and_be_asked(partition: Partition, cursor: Cursor | None) -> Iterator[Batch | RecordUnreadable]:
        batches = read(partition, cursor)
        if begun:
            yield next(batches)
        if not asked:
            asked.append(desk.retry())
        yield from batches

    connector.read = read_and_be_asked  # type: ignore[method-assign]
    desk.read()
    known = (True, 1) if begun else (False, 2)
    assert [(one.retried, one.times) for one in desk.rejected()] == [known]
    desk.read()
    assert [(one.retried, one.times) for one in desk.rejected()] == [(False, 2)]


def test_a_record_that_another_mapping_can_use_is_rejected_no_more(desk: Desk) -> None:
    desk.script.write("m.csv", [GOOD, BAD])
    desk.read()
    desk.reader = desk.new_reader(Mapping([EntrySpec(key="x{v}", value="{k}")]))
    desk.read()
    assert desk.rejected() == []


def test_a_conflict_that_is_over_is_gone_after_a_retry(desk: Desk) -> None:
    desk.mirror.intake.activate(["pipe", "other"])
    desk.script.write("m.csv", [GOOD])
    desk.read()
    other = Script()
    other.write("o.csv", [{"k": "a", "v": "2"}])
    theirs = Reader(
        pipeline="other", connector=ScriptedConnector(other), mapping=Mapping([EntrySpec(key="{k}", value="{v}")]),
        sink=SINK, mirror=desk.mirror.intake, emit=lambda event: None,
    )  # fmt: skip
    theirs.read_pass()
    assert [one.subject for one in desk.rejected()] == ["conflict"]
    assert desk.retry().pipelines == ("other",)
    theirs.read_pass()
    assert [(one.subject, one.retried) for one in desk.rejected()] == [("conflict", False)], "it still stands"
    desk.mirror.intake.activate(["other"])
    desk.retry()
    theirs.read_pass()
    assert desk.rejected() == []
    assert [origin.value for origin in desk.mirror.status.origins("a")] == ["2"]


def test_a_conflict_stands_as_long_as_the_other_pipeline_writes_the_key(desk: Desk) -> None:
    desk.mirror.intake.activate(["pipe", "other"])
    desk.script.write("m.csv", [GOOD])
    desk.read()
    other = Script()
    other.write("o.csv", [{"k": "a", "v": "2"}])
    theirs = Reader(
        pipeline="other", connector=ScriptedConnector(other), mapping=Mapping([EntrySpec(key="{k}", value="{v}")]),
        sink=SINK, mirror=desk.mirror.intake, emit=lambda event: None,
    )  # fmt: skip
    theirs.read_pass()
    (before,) = desk.rejected()
    desk.script.write("m.csv", [{"k": "a", "v": "3"}])
    desk.read()
    assert [one.id for one in desk.rejected()] == [before.id], "the owner's new value settles nothing"
    desk.retry()
    theirs.read_pass()
    (after,) = desk.rejected()
    assert (after.id, after.at, after.times) == (before.id, before.at, 2)


def test_a_file_that_can_t_be_read_is_told_since_the_first_time(desk: Desk) -> None:
    desk.script.write("m.csv", [GOOD])
    desk.script.contents["m.csv"].error = SourceBroken("There is no column 'k'.")
    desk.script.contents["m.csv"].fails_after = 0
    for _ in range(2):
        assert desk.reader.read_pass().rejected
    (one,) = desk.rejected()
    assert (one.subject, one.times) == ("partition", 2)
    assert one.last_at > one.at
    desk.script.write("m.csv", [GOOD])
    desk.read()
    assert desk.rejected() == []


def test_a_file_that_waits_to_be_put_away_is_put_away_after_the_retry_is_read(desk: Desk) -> None:
    desk.script.write("m.csv", [BAD])
    desk.read()
    desk.retry()
    assert desk.reader.acknowledge_partitions() == 0, "what is to be read again may not be archived"
    desk.read()
    assert desk.reader.acknowledge_partitions() == 1


def test_a_dropped_record_is_forgotten_until_it_changes_or_the_file_is_read_whole(desk: Desk) -> None:
    desk.script.write("m.csv", [GOOD, BAD])
    desk.read()
    assert desk.drop() == 1
    desk.script.write("m.csv", [GOOD, BAD, {"k": "b", "v": "2"}])
    desk.read()
    assert desk.rejected() == []
    desk.script.write("m.csv", [GOOD, {**BAD, "v": "10"}])
    desk.read()
    assert [one.record["v"] for one in desk.rejected()] == ["10"]


def test_records_are_chosen_by_file_too(desk: Desk) -> None:
    for name in ("in/m.csv", "n.csv"):
        desk.script.write(name, [BAD])
    desk.read()
    names = {name: desk.mirror.status.count(Selection(file=name)) for name in ("in/m.csv", "m.csv", "*.csv", "csv")}
    assert names == {"in/m.csv": 1, "m.csv": 1, "*.csv": 2, "csv": 0}


def test_a_state_file_of_the_first_layout_keeps_its_rejections(tmp_path: Path) -> None:
    script = files("ingestd.mirror.sqlite").joinpath("migrations", "0001_initial.sql").read_text(encoding="utf-8")
    path = tmp_path / "old.db"
    old = sqlite3.connect(path)
    old.executescript(script + "PRAGMA application_id = 1229866820; PRAGMA user_version = 1;")
    with old:
        old.execute("INSERT INTO sink (id, workspace, addressed_by, name) VALUES (1, 'w', 'label', 's')")
        old.execute("INSERT INTO pipeline (id, name) VALUES (1, 'pipe')")
        old.execute("INSERT INTO partition (id, pipeline, sink, name, digest) VALUES (1, 1, 1, 'm.csv', '')")
        row = "(5, 'record', 1, 1, 1, 3, 'No.', '{\"k\": \"\"}', 12.5)"
        old.execute(
            f"INSERT INTO rejected (id, subject, partition, run, sink, position, reason, record, at) VALUES {row}"
        )
    old.close()
    mirror = SqliteMirror.open(path)
    (one,) = mirror.status.selected(ALL, limit=9)
    mirror.close()
    assert (one.id, one.position, one.reason, one.record) == (5, 3, "No.", {"k": ""})
    assert (one.at, one.last_at, one.times) == (12.5, 12.5, 1)
