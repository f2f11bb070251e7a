"""A rollback: entries get back the values that they had before the runs, and the same content is not delivered again."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from ingestd.core.address import SinkAddress
from ingestd.core.errors import MirrorFull, NotRolledBack, SourceBroken
from ingestd.core.guard import DEFAULT_GUARD, Guard
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.core.record import Deletes, Partition, Reject
from ingestd.intake import Reader
from ingestd.mirror.port import Snapshot
from ingestd.mirror.rollback import Rollback, RunSelection
from ingestd.mirror.row_hashes import RowHashes
from ingestd.mirror.sqlite import SqliteMirror
from tests.contract.mirror_intake import entries, hashes
from tests.contract.test_mirror_full_disk import FullDisk
from tests.support.scripted_source import Script, ScriptedConnector

SINK = SinkAddress(workspace="w", by="label", name="s")


class RollbackStage:
    """Pipelines that write one sink; the service is a dictionary, to which `deliver` sends everything that is pending."""

    def __init__(self, path: Path, *, factory: type[sqlite3.Connection] = sqlite3.Connection) -> None:
        self.path, self.time = path, 1_000_000.0
        self.scripts: dict[str, Script] = {}
        self.service: dict[str, str | None] = {}
        self.mirror = SqliteMirror.open(path, now=lambda: self.time, factory=factory)

    def pipeline(
        self, name: str = "pipe", *, deletes: Deletes = "keep", guard: Guard | None = None, value: str = "{v}"
    ) -> Script:
        """Add a pipeline, or give it another mapping."""
        script = self.scripts.setdefault(name, Script(deletes=deletes))
        self.readers = {**getattr(self, "readers", {}), name: (guard, value)}
        self.mirror.intake.activate([*self.scripts])
        return script

    def reader(self, name: str) -> Reader:
        guard, value = self.readers[name]
        return Reader(
            pipeline=name, connector=ScriptedConnector(self.scripts[name]), mapping=Mapping([EntrySpec(key="{k}", value=value)]),
            sink=SINK, mirror=self.mirror.intake, emit=lambda event: None, guard=guard or Guard(),
        )  # fmt: skip

    def read(self, name: str = "pipe") -> None:
        self.time += 60
        self.reader(name).read_pass()

    def write(self, values: dict[str, str], *, pipeline: str = "pipe", partition: str = "p", reads: bool = True) -> int:
        """Write a partition and read it; return the number of the run that it had."""
        self.scripts[pipeline].write(partition, [{"k": key, "v": value} for key, value in values.items()])
        if reads:
            self.read(pipeline)
        runs = self.mirror.status.past_runs(pipeline, limit=1)
        return runs[0].summary.id if runs else 0

    async def deliver(self) -> dict[str, str | None]:
        (lane,) = await self.mirror.delivery.lanes()
        while (claim := await self.mirror.delivery.claim(lane.id, max_items=100, max_bytes=100_000)) is not None:
            for part in claim.parts:
                for row in pl.read_json(part.body).iter_rows(named=True):
                    if row.get("delete"):
                        self.service.pop(row["key"], None)
                    else:
                        self.service[row["key"]] = row["value"]
            await self.mirror.delivery.acknowledge(claim)
        return self.service

    def undo(self, run: int | None = None, *, since: float | None = None, pipeline: str = "") -> Rollback:
        """Roll back, and check that the plan said what was done."""
        selection = RunSelection(run=run, since=since, pipeline=pipeline)
        planned = self.mirror.status.rollback_plan(selection)
        done = self.mirror.intake.roll_back(selection, by="root")
        assert done == planned
        if since is not None:
            assert self.mirror.intake.roll_back(selection, by="root").changed == 0, "a second rollback finds nothing"
        return done

    def restart(self) -> None:
        self.mirror.close()
        self.mirror = SqliteMirror.open(self.path, now=lambda: self.time)
        self.mirror.intake.activate([*self.scripts])

    def held(self) -> list[int]:
        return [one.run for one in self.mirror.status.held_runs()]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[RollbackStage]:
    made = RollbackStage(tmp_path / "state.db")
    yield made
    made.mirror.close()


async def test_a_day_of_grams_is_undone_by_one_command(stage: RollbackStage) -> None:
    stage.pipeline()
    stage.write({"a": "1", "b": "2", "c": "3"})
    before = dict(await stage.deliver())
    morning = stage.time + 1
    for grams in ("1000", "1001", "1002"):
        stage.write({"a": grams, "b": f"2{grams}", "c": "3", "new": grams})
        await stage.deliver()
    assert stage.service["a"] == "1002"
    done = stage.undo(since=morning, pipeline="pipe")
    assert (done.restored, done.removed, done.created, done.left_count) == (2, 1, 0, 0)
    assert [(one.key, one.now, one.restored) for one in done.keys] == [
        ("a", "1002", "1"),
        ("b", "21002", "2"),
        ("new", "1002", None),
    ]
    assert await stage.deliver() == before
    stage.read()
    stage.mirror.cursors.set_cursor("pipe", "p", None)
    stage.read()
    assert await stage.deliver() == before, "the next reading of the same content does not repeat the mistake"
    (held,) = stage.mirror.status.held_runs()
    assert (held.run, held.created, held.updated, held.removed) == (done.runs[-1].run, 1, 2, 0)
    assert held.reasons[0].startswith("root rolled it back 1970-01-12 ")


async def test_an_approval_delivers_what_was_rolled_back_and_can_be_rolled_back_again(stage: RollbackStage) -> None:
    stage.pipeline(deletes="remove")
    stage.write({"a": "1", "b": "2", "gone": "3"})
    before = dict(await stage.deliver())
    run = stage.write({"a": "1000", "b": "2", "new": "9"})
    after = dict(await stage.deliver())
    for _ in range(2):
        done = stage.undo(run)
        assert (done.restored, done.removed, done.created) == (1, 1, 1)
        assert await stage.deliver() == before
        assert stage.held() == [run]
        approved = stage.mirror.intake.approve(run)
        assert (approved.created, approved.updated, approved.removed) == (1, 1, 1), "not with the first delivery"
        assert await stage.deliver() == after
        stage.read()
        assert stage.held() == []
        assert await stage.deliver() == after
    assert [one.ending for one in stage.mirror.status.former_values("a")] == [
        "approved",
        "rolled_back",
        "approved",
        "rolled_back",
        "replaced",
    ]


async def test_a_discarded_rollback_is_not_delivered_without_a_guard(stage: RollbackStage) -> None:
    stage.pipeline()
    stage.write({"a": "1"})
    run = stage.write({"a": "1000"})
    stage.undo(run)
    stage.mirror.intake.discard(run)
    stage.scripts["pipe"].contents["p"].version += 1  # it is saved again, with the same content
    stage.restart()
    stage.read()
    stage.mirror.cursors.set_cursor("pipe", "p", None)
    stage.read()
    assert await stage.deliver() == {"a": "1"}
    stage.write({"a": "1.5"})
    assert await stage.deliver() == {"a": "1.5"}, "another content is delivered"


@pytest.mark.parametrize("guard", [None, DEFAULT_GUARD])
async def test_a_corrected_file_ends_the_hold(stage: RollbackStage, guard: Guard | None) -> None:
    stage.pipeline(guard=guard, deletes="remove")
    stage.write({"a": "1", "b": "2", "c": "3"})
    run = stage.write({"a": "1000", "b": "2000", "c": "3"})
    await stage.deliver()
    stage.undo(run)
    stage.write({"a": "1.1", "b": "2000", "c": "3"})
    assert await stage.deliver() == {"a": "1.1", "b": "2000", "c": "3"}, (
        "all of the changed file is read, not its differences"
    )
    assert stage.held() == []


async def test_a_corrected_mapping_ends_the_hold(stage: RollbackStage) -> None:
    stage.pipeline()
    stage.write({"a": "1"})
    run = stage.write({"a": "2"})
    stage.undo(run)
    stage.pipeline(value="{v}00")
    stage.read()
    assert await stage.deliver() == {"a": "200"}


async def test_keys_that_changed_since_are_listed_and_left(stage: RollbackStage) -> None:
    stage.pipeline()
    stage.write({"a": "1", "b": "2", "c": "3"})
    run = stage.write({"a": "1000", "b": "2000", "c": "3000"})
    await stage.deliver()
    later = stage.write({"a": "1.5", "b": "2000", "c": "3000"})
    await stage.deliver()
    lane = (await stage.mirror.delivery.lanes())[0].id
    stage.service["c"] = "a person's"
    await stage.mirror.delivery.remember_sink(lane, workspace_id="w", sink_id="s", adopted=True)
    check = await stage.mirror.drift.begin_check(lane)
    found = pl.DataFrame({"key": [*stage.service], "value": [*stage.service.values()], "data_type": ["scalar"] * 3})
    await stage.mirror.drift.show(check, found)
    await stage.mirror.drift.end_check(check)
    done = stage.undo(run)
    assert [(one.key, one.reason) for one in done.left] == [
        ("a", f"run {later} has changed it since"),
        ("c", "another program has changed it in the service"),
    ]
    assert await stage.deliver() == {"a": "1.5", "b": "2", "c": "a person's"}


async def test_a_value_that_was_adopted_since_is_left(stage: RollbackStage) -> None:
    stage.pipeline()
    stage.write({"a": "1"})
    run = stage.write({"a": "1000"})
    await stage.deliver()
    lane = (await stage.mirror.delivery.lanes())[0].id
    await stage.mirror.delivery.remember_sink(lane, workspace_id="w", sink_id="s", adopted=True)
    check = await stage.mirror.drift.begin_check(lane)
    await stage.mirror.drift.show(check, pl.DataFrame({"key": ["a"], "value": ["7"], "data_type": ["scalar"]}))
    await stage.mirror.drift.end_check(check)
    await stage.mirror.drift.adopt_drift(lane, ["pipe"])
    done = stage.undo(run)
    assert (done.changed, done.left_count) == (0, 1)
    assert stage.held() == [], "nothing was rolled back, so nothing is held"


async def test_entries_that_the_service_had_are_not_removed(stage: RollbackStage) -> None:
    """A value that the first delivery overwrote is restored; one that only got an owner is left."""
    stage.pipeline()
    stage.write({"own": "0"}, partition="q")
    run = stage.write({"a": "1", "new": "3", "null": "4"})
    lane = (await stage.mirror.delivery.lanes())[0].id
    found = pl.DataFrame({"key": ["a", "null"], "value": ["10", None], "data_type": ["text"] * 2})
    await stage.mirror.delivery.adopt(lane, found)
    await stage.deliver()
    done = stage.undo(run)
    assert await stage.deliver() == {"own": "0", "a": "10", "null": "4"}
    assert (done.restored, done.removed) == (1, 1)
    assert [one.restored_type for one in done.keys if one.key == "a"] == ["text"]
    assert [one.reason for one in done.left] == [
        "the service had it without a value (null), which only a person can write"
    ]


async def test_an_equal_entry_of_the_service_that_a_run_named_is_left(stage: RollbackStage) -> None:
    stage.pipeline()
    stage.write({"own": "0"}, partition="q")
    lane = (await stage.mirror.delivery.lanes())[0].id
    stage.service["a"] = "1"
    await stage.mirror.delivery.adopt(lane, pl.DataFrame({"key": ["a"], "value": ["1"], "data_type": ["scalar"]}))
    run = stage.write({"a": "1", "b": "2"})
    await stage.deliver()
    done = stage.undo(run)
    assert [one.key for one in done.keys] == ["b"]
    assert await stage.deliver() == {"own": "0", "a": "1"}


@pytest.mark.parametrize("changes", [5, 40])
async def test_the_value_before_a_long_day_is_known(stage: RollbackStage, changes: int) -> None:
    """Of older changes, the first of each hour is kept; so a period that begins with an hour can be undone."""
    stage.pipeline()
    stage.time = 3600.0 * 1000 - 59
    for number in range(12):
        stage.write({"a": f"{number}"})
    stage.time = 3600.0 * 1002
    for number in range(changes):
        stage.write({"a": f"{number}000"})
        stage.time += 600
    done = stage.undo(since=3600.0 * 1002)
    assert [(one.key, one.restored) for one in done.keys] == [("a", "11")]
    assert await stage.deliver() == {"a": "11"}


async def test_an_entry_is_left_if_its_former_value_may_be_lost(
    stage: RollbackStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry without a known former value is not taken for one that the runs created."""
    monkeypatch.setattr("ingestd.mirror.sqlite.entries.former_values.AT_MOST", 3)
    monkeypatch.setattr("ingestd.mirror.sqlite.runs.undo_plan.AT_MOST", 3)
    stage.pipeline()
    stage.write({"a": "1"})
    since = stage.time + 1
    for number in range(2, 7):
        stage.write({"a": str(number)})
    done = stage.undo(since=since)
    assert [one.reason for one in done.left] == ["its value before the runs is not stored any more"]
    assert await stage.deliver() == {"a": "6"}


async def test_shared_keys_of_two_pipelines_return_to_their_owner(stage: RollbackStage) -> None:
    for name in ("one", "two"):
        stage.pipeline(name, deletes="remove")
    stage.write({"a": "1", "b": "1"}, pipeline="one", partition="o")
    stage.write({"a": "2", "c": "2"}, pipeline="two", partition="t")
    before = dict(await stage.deliver())
    assert before == {"a": "1", "b": "1", "c": "2"}
    run = stage.write({"b": "1000"}, pipeline="one", partition="o")
    assert await stage.deliver() == {"a": "2", "b": "1000", "c": "2"}, (
        "the other pipeline's value replaced a removed one"
    )
    stage.undo(run)
    assert await stage.deliver() == before
    for name in ("one", "two", "one", "two"):
        stage.read(name)
    assert await stage.deliver() == before
    stage.mirror.intake.approve(run)
    for name in ("one", "two"):
        stage.read(name)
    assert await stage.deliver() == {"a": "2", "b": "1000", "c": "2"}


async def test_repeated_keys_and_changed_types_return(stage: RollbackStage) -> None:
    script = stage.pipeline()
    stage.write({"a": "1"})
    script.write("p", [{"k": "a", "v": "5"}, {"k": "a", "v": ""}, {"k": "b", "v": "6"}])
    stage.read()
    run = stage.mirror.status.past_runs("pipe", limit=1)[0].summary.id
    await stage.deliver()
    assert stage.service["a"] == ""
    stage.undo(since=stage.time - 30)
    assert await stage.deliver() == {"a": "1"}
    stage.read()
    assert await stage.deliver() == {"a": "1"}
    assert stage.held() == [run]


async def test_a_run_that_was_never_sent_is_undone(stage: RollbackStage) -> None:
    stage.pipeline()
    stage.write({"a": "1"})
    await stage.deliver()
    run = stage.write({"a": "1000", "new": "1"})
    stage.undo(run)
    assert await stage.deliver() == {"a": "1"}


async def test_two_rollbacks_one_after_the_other(stage: RollbackStage) -> None:
    """The second one does not restore what the first one has undone."""
    stage.pipeline()
    stage.write({"a": "1", "b": "1"})
    second = stage.write({"a": "2", "b": "1"})
    third = stage.write({"a": "3", "b": "3"})
    stage.undo(third)
    assert await stage.deliver() == {"a": "2", "b": "1"}
    (run,) = stage.undo(second).runs
    assert (run.run, run.is_held, run.held_run) == (second, True, third)
    assert await stage.deliver() == {"a": "1", "b": "1"}
    assert stage.held() == [third]
    stage.mirror.intake.approve(third)
    stage.read()
    assert await stage.deliver() == {"a": "3", "b": "3"}


async def test_a_run_without_a_present_value_holds_nothing(stage: RollbackStage) -> None:
    stage.pipeline()
    stage.write({"a": "1"})
    second = stage.write({"a": "2"})
    third = stage.write({"a": "3"})
    (run,) = stage.undo(second).runs
    assert (run.is_changed, run.is_held, run.held_run) == (False, False, None)
    assert stage.held() == []
    stage.undo(third)
    stage.mirror.intake.discard(third)
    (run,) = stage.undo(second).runs
    assert (run.is_changed, run.is_held, run.held_run) == (True, True, None), "there is no run to approve"


@pytest.mark.parametrize("deletes", ["keep", "remove"])
async def test_a_file_that_is_gone_leaves_no_held_run(stage: RollbackStage, deletes: Deletes) -> None:
    stage.pipeline(deletes=deletes)
    stage.write({"a": "1"})
    run = stage.write({"a": "1000"})
    await stage.deliver()
    stage.scripts["pipe"].take_away("p")
    stage.mirror.intake.pruner.note_gone(1)
    done = stage.undo(run)
    assert not done.runs[0].is_held
    assert (stage.held(), await stage.deliver()) == ([], {"a": "1"})
    stage.write({"a": "1000"})
    assert await stage.deliver() == {"a": "1"}, "the same content in a new file of this name is not delivered"
    stage.write({"a": "1100"})
    assert await stage.deliver() == {"a": "1100"}


async def test_a_failed_reading_of_a_held_file_delivers_nothing(stage: RollbackStage) -> None:
    script = stage.pipeline(guard=Guard(removed_percent=50))
    stage.write({"a": "1"})
    run = stage.write({"a": "1000"})
    stage.undo(run)
    script.write("p", [{"k": "a", "v": "1000"}, {"k": "b", "v": "2"}, {"k": "c", "v": "2"}])
    script.contents["p"].fails_after, script.contents["p"].error = 2, SourceBroken("cut off")
    stage.read()
    assert await stage.deliver() == {"a": "1"}


def test_what_cannot_be_rolled_back_is_refused_with_the_reason(stage: RollbackStage) -> None:
    stage.pipeline(guard=Guard(changed_percent=10, minimum=1))
    stage.write({"a": "1"})
    unchanged = stage.write({"a": "1"})
    stage.write({"a": "1000"})
    (held,) = stage.held()
    refusals = {
        99: "There is no run 99.",
        held: f"Run {held} is held: nothing of it is delivered",
    }
    for run, sentence in refusals.items():
        for call in (stage.mirror.status.rollback_plan, lambda one: stage.mirror.intake.roll_back(one, by="root")):
            with pytest.raises(NotRolledBack, match=sentence):
                call(RunSelection(run=run))
    with pytest.raises(NotRolledBack, match="No pipeline has written a data sink 'x'"):
        stage.mirror.status.rollback_plan(RunSelection(since=0, sink="x"))
    assert stage.mirror.status.rollback_plan(RunSelection(since=0, sink="s")).removed == 1
    assert unchanged


async def test_a_stream_is_restored_and_an_equal_record_of_a_later_run_is_left(stage: RollbackStage) -> None:
    """After a rejection, an equal record dates its entry with the later run, which did not give the value."""
    stage.pipeline()
    state = stage.mirror.intake.open_partition("pipe", Partition(name="log", snapshot=False), SINK, "d")
    runs: list[int] = []
    for rows, rejects in (
        ([("a", "1"), ("b", "1")], [(Reject(position=9, reason="No number."), None)]),
        (
            [("a", "1"), ("b", "1000"), ("c", "1000")],
            [],
        ),
    ):
        runs.append(stage.mirror.intake.begin_run(state.id, snapshot=False, whole=True))
        stage.mirror.intake.commit(
            runs[-1], entries=entries(rows), records=len(rows), rejects=rejects, cursor={"at": len(runs)}, facts={}
        )
        stage.mirror.intake.finish_run(runs[-1], cursor={"at": len(runs)}, seen=None, deletes="keep")
    await stage.deliver()
    done = stage.undo(runs[-1])
    assert [(one.key, one.restored) for one in done.keys] == [("b", "1"), ("c", None)]
    assert not done.runs[0].is_held
    assert await stage.deliver() == {"a": "1", "b": "1"}
    assert stage.held() == []


class FullDiskStage(RollbackStage):
    """Three entries with three values, and a disk that is full after the first key of a rollback."""

    def __init__(self, path: Path) -> None:
        self.disk: type[FullDisk] = type("Disk", (FullDisk,), {})
        super().__init__(path, factory=self.disk)
        self.pipeline()
        _, self.second, self.third = (self.write(dict.fromkeys("abc", value)) for value in "123")

    def interrupt(self) -> None:
        """Begin to roll the third run back; then the disk has space again."""
        self.mirror.on_pending = lambda _: setattr(self.disk, "full", True)
        with pytest.raises(MirrorFull):
            self.mirror.intake.roll_back(RunSelection(run=self.third), by="root")
        self.mirror.on_pending = lambda _: None
        self.disk.full = False


@pytest.fixture
def full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FullDiskStage]:
    monkeypatch.setattr("ingestd.mirror.sqlite.runs.undo_plan.PAGE", 1)
    made = FullDiskStage(tmp_path / "state.db")
    yield made
    made.mirror.close()


async def test_a_rollback_that_a_full_disk_interrupted_is_completed_by_the_next_one(full: FullDiskStage) -> None:
    full.interrupt()
    assert await full.deliver() == {"a": "2", "b": "3", "c": "3"}
    assert full.mirror.intake.roll_back(RunSelection(run=full.second), by="root").restored == 3
    assert await full.deliver() == dict.fromkeys("abc", "1")


async def test_a_rollback_that_a_full_disk_interrupted_can_be_repeated(full: FullDiskStage) -> None:
    full.interrupt()
    await full.deliver()
    done = full.undo(full.third)
    assert ([one.key for one in done.keys], done.runs[0].is_held) == (["b", "c"], True)
    assert await full.deliver() == dict.fromkeys("abc", "2")
    assert full.held() == [full.third]
    with pytest.raises(NotRolledBack, match="is held"):
        full.mirror.status.rollback_plan(RunSelection(run=full.third))


async def test_an_approval_counts_only_the_entries_that_it_delivers(stage: RollbackStage) -> None:
    stage.pipeline(deletes="remove")
    stage.write({"a": "1", "b": "1", "c": "1"})
    await stage.deliver()
    run = stage.write({"a": "2", "b": "1", "d": "2"})
    await stage.deliver()
    for _ in range(2):
        stage.undo(run)
        await stage.deliver()
        approved = stage.mirror.intake.approve(run)
        assert (approved.created, approved.updated, approved.removed) == (1, 1, 1)
        assert await stage.deliver() == {"a": "2", "b": "1", "d": "2"}
    (last, _) = stage.mirror.status.past_runs("pipe", limit=2)
    assert (last.summary.records, last.summary.created, last.summary.updated, last.summary.removed) == (3, 1, 1, 1)


@pytest.mark.parametrize(("decision", "value"), [("approve", "3"), ("discard", "2")])
async def test_a_decision_about_a_rollback_that_a_full_disk_interrupted_completes_it_first(
    full: FullDiskStage, decision: str, value: str
) -> None:
    full.interrupt()
    getattr(full.mirror.intake, decision)(full.third)
    assert await full.deliver() == dict.fromkeys("abc", value)
    full.restart()
    full.read()
    assert (await full.deliver(), full.held()) == (dict.fromkeys("abc", value), []), (
        "nothing is left for the next start"
    )


async def test_a_reading_that_began_before_an_interrupted_rollback_does_not_end_the_hold(full: FullDiskStage) -> None:
    """The differences of the run refer to values that are gone."""
    intake, rows = full.mirror.intake, [(key, "3") for key in "abc"]
    mapping = Mapping([EntrySpec(key="{k}", value="{v}")])
    state = intake.open_partition("pipe", Partition(name="p"), SINK, mapping.digest)
    run = intake.begin_run(state.id, snapshot=True, whole=False)
    full.interrupt()
    summary = intake.finish_run(
        run, cursor={"version": 9}, seen=Snapshot(hashes=RowHashes.of(hashes(rows))), deletes="keep"
    )
    assert summary.collided
    assert full.held() == [full.third]
