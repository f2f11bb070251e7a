"""Rejected records: read again, retried, corrected, dropped; with a real reader and a real state file."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
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


class RecordPipeline:
    """A source, a state file, and a clock that advances by one with every reading of it."""

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
def records(tmp_path: Path) -> Iterator[RecordPipeline]:
    made = RecordPipeline(tmp_path / "state.db")
    yield made
    made.mirror.close()


def read_conflict(records: RecordPipeline) -> Reader:
    """Read the entry a by pipeline pipe, then by pipeline other; return the reader of the latter."""
    records.mirror.intake.activate(["pipe", "other"])
    records.script.write("m.csv", [GOOD])
    records.read()
    other = Script()
    other.write("o.csv", [{"k": "a", "v": "2"}])
    theirs = Reader(
        pipeline="other", connector=ScriptedConnector(other), mapping=Mapping([EntrySpec(key="{k}", value="{v}")]),
        sink=SINK, mirror=records.mirror.intake, emit=lambda event: None,
    )  # fmt: skip
    theirs.read_pass()
    return theirs


def test_a_rejected_record_is_stored_unchanged_with_its_location(records: RecordPipeline) -> None:
    records.script.write("m.csv", [GOOD, {"k": "", "v": " 0.10\t", "other": None}])
    records.read()
    (one,) = records.rejected()
    assert (one.subject, one.pipeline, one.partition, one.position, one.field) == ("record", "pipe", "m.csv", 3, "k")
    assert one.record == {"k": "", "v": " 0.10\t", "other": None}
    assert (one.workspace, one.sink, one.times, one.retried) == ("w", "s", 1, False)


def test_a_record_that_is_rejected_again_keeps_its_number_and_its_first_time(records: RecordPipeline) -> None:
    records.script.write("m.csv", [GOOD, BAD], rejects=(UNREADABLE,))
    records.read()
    before = {one.position: one for one in records.rejected()}
    records.script.write("m.csv", [GOOD, {"k": "b", "v": "2"}, BAD], rejects=(UNREADABLE,))
    records.read()
    records.retry()
    records.read()
    after = {one.position: one for one in records.rejected()}
    assert after[7].id == before[7].id
    assert (after[7].at, after[7].times) == (before[7].at, 3), "three times it could not be read"
    assert after[7].last_at > after[7].at
    moved = after[4]
    assert (moved.id, moved.at, moved.times) == (before[3].id, before[3].at, 2), (
        "it has another position, and is the same record"
    )


def test_equal_rejected_records_are_separate(records: RecordPipeline) -> None:
    for _ in range(2):
        records.script.write("m.csv", [BAD, GOOD, BAD])
        records.read()
        records.retry()
        records.read()
        assert [one.position for one in records.rejected()] == [2, 4]
    assert len({one.id for one in records.rejected()}) == 2


def test_a_retried_record_is_evaluated_at_the_next_reading(records: RecordPipeline) -> None:
    records.script.write("m.csv", [GOOD, BAD])
    records.read()
    done = records.retry()
    assert (done.records, done.entries, done.pipelines) == (1, 0, ("pipe",))
    assert [one.retried for one in records.rejected()] == [True]
    records.read()
    assert [(one.retried, one.times) for one in records.rejected()] == [(False, 2)]


def test_only_the_retried_record_is_mapped_again(records: RecordPipeline) -> None:
    good: list[Row] = [{"k": f"k{n}", "v": "1"} for n in range(20)]
    records.script.write("m.csv", [*good, BAD, {"k": "", "v": "8"}])
    records.read()
    first, _ = records.rejected()
    records.retry(Selection(ids=(first.id,)))
    records.read()
    (pipeline,) = records.mirror.status.pipelines()
    assert pipeline.last_run is not None
    assert (pipeline.last_run.rejected, pipeline.last_run.unchanged) == (1, 0), "no good record was mapped"
    assert [one.times for one in records.rejected()] == [2, 1]


@pytest.mark.parametrize("begun", [False, True])
def test_a_retry_during_a_reading_applies_to_the_next_reading(records: RecordPipeline, *, begun: bool) -> None:
    """A retry before the first batch applies to this reading."""
    records.script.write("m.csv", [GOOD, BAD, {"k": "b", "v": "2"}])
    records.read()
    records.script.write("m.csv", [GOOD, BAD, {"k": "b", "v": "3"}])
    connector, asked = records.reader.connector, list[Retried]()
    read = connector.read

    def read_and_be_asked(partition: Partition, cursor: Cursor | None) -> Iterator[Batch | RecordUnreadable]:
        batches = read(partition, cursor)
        if begun:
            yield next(batches)
        if not asked:
            asked.append(records.retry())
        yield from batches

    connector.read = read_and_be_asked  # type: ignore[method-assign]
    records.read()
    known = (True, 1) if begun else (False, 2)
    assert [(one.retried, one.times) for one in records.rejected()] == [known]
    records.read()
    assert [(one.retried, one.times) for one in records.rejected()] == [(False, 2)]


def test_a_record_that_another_mapping_accepts_is_no_longer_rejected(records: RecordPipeline) -> None:
    records.script.write("m.csv", [GOOD, BAD])
    records.read()
    records.reader = records.new_reader(Mapping([EntrySpec(key="x{v}", value="{k}")]))
    records.read()
    assert records.rejected() == []


def test_a_resolved_conflict_is_removed_by_a_retry(records: RecordPipeline) -> None:
    theirs = read_conflict(records)
    assert [one.subject for one in records.rejected()] == ["conflict"]
    assert records.retry().pipelines == ("other",)
    theirs.read_pass()
    assert [(one.subject, one.retried) for one in records.rejected()] == [("conflict", False)], (
        "the conflict still exists"
    )
    records.mirror.intake.activate(["other"])
    records.retry()
    theirs.read_pass()
    assert records.rejected() == []
    assert [origin.value for origin in records.mirror.status.origins("a")] == ["2"]


def test_a_conflict_exists_as_long_as_the_other_pipeline_writes_the_key(records: RecordPipeline) -> None:
    theirs = read_conflict(records)
    (before,) = records.rejected()
    records.script.write("m.csv", [{"k": "a", "v": "3"}])
    records.read()
    assert [one.id for one in records.rejected()] == [before.id], "the owner's new value does not resolve it"
    records.retry()
    theirs.read_pass()
    (after,) = records.rejected()
    assert (after.id, after.at, after.times) == (before.id, before.at, 2)


def test_a_conflict_ends_with_the_configuration_of_its_pipeline_and_begins_with_it_again(
    records: RecordPipeline,
) -> None:
    theirs = read_conflict(records)
    records.mirror.intake.activate(["pipe"])
    assert records.rejected() == []
    records.mirror.intake.activate(["pipe", "other"])
    theirs.read_pass()
    assert [(one.subject, one.pipeline, one.key) for one in records.rejected()] == [("conflict", "other", "a")]


def test_an_unreadable_file_is_reported_with_its_first_time(records: RecordPipeline) -> None:
    records.script.write("m.csv", [GOOD])
    records.script.contents["m.csv"].error = SourceBroken("There is no column 'k'.")
    records.script.contents["m.csv"].fails_after = 0
    for _ in range(2):
        assert records.reader.read_pass().rejected
    (one,) = records.rejected()
    assert (one.subject, one.times) == ("partition", 2)
    assert one.last_at > one.at
    records.script.write("m.csv", [GOOD])
    records.read()
    assert records.rejected() == []


def test_a_file_that_waits_for_its_archiving_is_archived_after_the_retry_is_read(records: RecordPipeline) -> None:
    records.script.write("m.csv", [BAD])
    records.read()
    records.retry()
    assert records.reader.acknowledge_partitions() == 0, "a file that is read again must not be archived"
    records.read()
    assert records.reader.acknowledge_partitions() == 1


def test_a_dropped_record_is_ignored_until_it_changes_or_the_file_is_read_whole(records: RecordPipeline) -> None:
    records.script.write("m.csv", [GOOD, BAD])
    records.read()
    assert records.drop() == 1
    records.script.write("m.csv", [GOOD, BAD, {"k": "b", "v": "2"}])
    records.read()
    assert records.rejected() == []
    records.script.write("m.csv", [GOOD, {**BAD, "v": "10"}])
    records.read()
    assert [one.record["v"] for one in records.rejected()] == ["10"]


def test_records_can_be_selected_by_file(records: RecordPipeline) -> None:
    for name in ("in/m.csv", "n.csv"):
        records.script.write(name, [BAD])
    records.read()
    names = {name: records.mirror.status.count(Selection(file=name)) for name in ("in/m.csv", "m.csv", "*.csv", "csv")}
    assert names == {"in/m.csv": 1, "m.csv": 1, "*.csv": 2, "csv": 0}
