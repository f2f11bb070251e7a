"""Rows of removed partitions and runs are pruned; rows that explain entries, rejections or repeated files are kept."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ingestd.core.address import SinkAddress
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.core.record import Acknowledgement, Batch, Cursor, Partition, Reject
from ingestd.intake import Reader
from ingestd.mirror.rejections import Selection
from ingestd.mirror.rollback import RunSelection
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.mirror.sqlite.entries.former_values import KEPT as FORMER
from ingestd.telemetry.catalogue.intake import ContentKnown
from ingestd.telemetry.event import Event
from tests.contract.mirror_intake import entries
from tests.support.scripted_source import Script, ScriptedConnector

SINK = SinkAddress(workspace="w", by="label", name="s")
KEPT = 5
RUNS_KEPT = 10
RUNS_APART = 5
DAY = 86_400.0


class ArchivingSource(ScriptedConnector):
    """Removes each partition when it is delivered, unless it is configured to keep it."""

    keeps = False

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:
        for batch in super().read(partition, cursor):
            yield Batch(
                records=batch.records, positions=batch.positions, cursor=batch.cursor, last=batch.last,
                rejects=batch.rejects, unchanged=batch.unchanged,
                facts=dict(batch.facts) | {"file.sha256": f"sha of {self.script.contents[partition.name].rows}"},
            )  # fmt: skip

    def acknowledge(self, partition: Partition, cursor: Cursor, acknowledgement: Acknowledgement) -> None:
        super().acknowledge(partition, cursor, acknowledgement)
        if not self.keeps:
            del self.script.contents[partition.name]

    def holds(self, name: str) -> bool:
        return name in self.script.contents


class ArchivingPipeline:
    """A pipeline that reads a folder in memory into a sink that accepts everything."""

    def __init__(self, path: Path, *, keeps: bool = False) -> None:
        self.path = path
        self.time = 1_000_000.0
        self.mirror = SqliteMirror.open(path, now=lambda: self.time)
        self.script = Script(batch_rows=100)
        source = ArchivingSource(self.script)
        source.keeps = keeps
        self.events: list[Event] = []
        self.reader = Reader(
            pipeline="pipe", connector=source, mapping=Mapping([EntrySpec(key="{k}", value="{v}")]), sink=SINK,
            mirror=self.mirror.intake, emit=self.events.append,
        )  # fmt: skip

    async def drop(self, name: str, *rows: tuple[str, str]) -> None:
        """Add a file, read, deliver and acknowledge it."""
        self.script.write(name, [{"k": key, "v": value} for key, value in rows])
        await self.look()

    async def look(self) -> None:
        """Read the source, deliver all that is pending, and acknowledge it."""
        self.time += 1
        self.reader.read_pass()
        for lane in await self.mirror.delivery.lanes():
            while claim := await self.mirror.delivery.claim(lane.id, max_items=100, max_bytes=1_000_000):
                await self.mirror.delivery.acknowledge(claim)
        self.reader.acknowledge_partitions()

    def counts(self) -> dict[str, int]:
        with closing(sqlite3.connect(self.path)) as connection:
            return {
                table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                for table in (
                    "partition",
                    "run",
                    "snapshot",
                    "wait",
                    "segment",
                    "staging",
                    "entry",
                    "former",
                    "delivered",
                )
            }


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ArchivingPipeline]]:
    monkeypatch.setattr("ingestd.mirror.sqlite.entries.snapshots.KEPT", KEPT)
    monkeypatch.setattr("ingestd.mirror.sqlite.runs.run_finisher.RUNS_APART", 1)
    monkeypatch.setattr("ingestd.mirror.sqlite.runs.pruner.KEPT", KEPT)
    monkeypatch.setattr("ingestd.mirror.sqlite.runs.pruner.RUNS_KEPT", RUNS_KEPT)
    monkeypatch.setattr("ingestd.mirror.sqlite.runs.pruner.RUNS_APART", RUNS_APART)
    worlds: list[ArchivingPipeline] = []

    def build(*, keeps: bool = False) -> ArchivingPipeline:
        worlds.append(ArchivingPipeline(tmp_path / f"{len(worlds)}.db", keeps=keeps))
        return worlds[-1]

    yield build
    for world in worlds:
        world.mirror.close()


async def test_ten_times_as_many_archived_files_leave_equally_many_rows(make: Callable[..., ArchivingPipeline]) -> None:
    world = make()
    found = []
    for number in range(150):
        await world.drop(f"export-{number}", ("mass", str(number)), ("length", str(-number)))
        if number in {14, 149}:
            found.append(world.counts())
    few, many = found
    assert many["partition"] <= KEPT + FORMER + RUNS_APART + 3
    assert many["run"] <= RUNS_KEPT + 2 * RUNS_APART
    assert many["snapshot"] <= KEPT + 1
    assert many["former"] == 2 * (FORMER + 1), "the newest ones, and the first of the hour"
    assert many["delivered"] <= 2 + 2 * RUNS_APART
    assert {table: many[table] for table in ("wait", "segment", "staging", "entry")} == {
        "wait": 0, "segment": 0, "staging": 0, "entry": 2,
    }  # fmt: skip
    assert all(many[table] <= few[table] + RUNS_APART for table in many)
    former = world.mirror.status.former_values("mass")
    assert [one.partition for one in former] == [f"export-{number}" for number in (*range(148, 148 - FORMER, -1), 0)]
    assert all(one.read_at is not None for one in former), "the file of a former value is known"


async def test_an_entry_that_the_sink_still_holds_is_traced_to_its_file(make: Callable[..., ArchivingPipeline]) -> None:
    world = make()
    await world.drop("first", ("only here", "1"), ("mass", "0"))
    for number in range(50):
        await world.drop(f"export-{number}", ("mass", str(number)))
    (origin,) = world.mirror.status.origins("only here")
    assert (origin.pipeline, origin.partition, origin.facts["file.name"]) == ("pipe", "first", "first")
    assert origin.read_at == 1_000_001.0
    history = world.mirror.status.history("pipe", "first")
    assert history is not None
    assert history.reading is not None
    assert history.reading.records == 2


async def test_a_rejected_row_keeps_its_file(make: Callable[..., ArchivingPipeline]) -> None:
    world = make()
    await world.drop("bad", ("", "no key"), ("mass", "0"))
    for number in range(50):
        await world.drop(f"export-{number}", ("mass", str(number)))
    (rejection,) = world.mirror.status.selected(Selection(), limit=10)
    assert (rejection.partition, rejection.pipeline) == ("bad", "pipe")


def test_the_run_that_gave_a_value_is_kept_after_later_runs_named_the_value_again(
    make: Callable[..., ArchivingPipeline],
) -> None:
    world = make()
    intake = world.mirror.intake
    log = intake.open_partition("pipe", Partition(name="log", snapshot=False), SINK, "d")
    for number in range(50):
        rows = [("mass", "1")] if number else []
        rejects = [] if number else [(Reject(position=9, reason="No number."), None)]  # so that equal records count
        run = intake.begin_run(log.id, snapshot=False, whole=True)
        intake.commit(
            run, entries=entries(rows), records=1, rejects=rejects, cursor={"at": number}, facts={"file.name": "log"}
        )
        intake.finish_run(run, cursor={"at": number}, seen=None, deletes="keep")
    assert intake.pruner.prune().runs
    plan = world.mirror.status.rollback_plan(RunSelection(run=2))
    assert [(one.key, one.restored) for one in plan.keys] == [("mass", None)]


async def test_the_file_that_gave_a_value_is_kept_after_another_one_took_the_entry_over(
    make: Callable[..., ArchivingPipeline],
) -> None:
    world = make()
    world.script.deletes = "remove"
    await world.drop("first", ("length", "1"))
    await world.drop("second", ("length", "1"), ("mass", "0"))
    world.time += DAY
    for number in range(50):
        await world.drop(f"export-{number}", ("mass", str(number)))
    assert [origin.partition for origin in world.mirror.status.origins("length")] == ["second"]
    assert [run.partition for run in world.mirror.status.rollback_plan(RunSelection(run=1)).runs] == ["first"]


async def test_repeated_content_is_recognised_among_the_newest_files(make: Callable[..., ArchivingPipeline]) -> None:
    world = make()
    for number in range(50):
        await world.drop(f"export-{number}", ("mass", str(number)))
    world.events.clear()
    await world.drop("again", ("mass", str(49 - KEPT + 2)))
    (known,) = [event for event in world.events if isinstance(event, ContentKnown)]
    assert f"export-{49 - KEPT + 2}" in known.sentence


async def test_the_history_of_a_pruned_file_is_empty_and_it_can_be_dropped_again(
    make: Callable[..., ArchivingPipeline],
) -> None:
    world = make()
    for number in range(50):
        await world.drop(f"export-{number}", ("mass", str(number)))
    assert world.mirror.status.history("pipe", "export-1") is None
    await world.drop("export-1", ("mass", "new"))
    assert [origin.value for origin in world.mirror.status.origins("mass")] == ["new"]


async def test_an_existing_file_is_kept_and_not_read_again(make: Callable[..., ArchivingPipeline]) -> None:
    world = make(keeps=True)
    for number in range(30):
        await world.drop(f"export-{number}", ("mass", str(number)))
    world.time += 30 * DAY
    readings = world.script.readings
    await world.drop("last", ("mass", "last"))
    assert world.counts()["partition"] == 31
    assert world.script.readings == readings + 1
    assert [origin.value for origin in world.mirror.status.origins("mass")] == ["last"]


async def test_a_file_that_a_user_removes_is_pruned_after_a_day(make: Callable[..., ArchivingPipeline]) -> None:
    world = make(keeps=True)
    for number in range(30):
        await world.drop(f"export-{number}", ("mass", str(number)))
    world.script.contents.clear()
    for number in range(10):
        await world.drop(f"more-{number}", ("mass", f"more {number}"))
    assert world.counts()["partition"] == 40, "a share that is not mounted looks the same"
    world.time += DAY
    for number in range(30):
        await world.drop(f"later-{number}", ("mass", f"later {number}"))
    assert world.counts()["partition"] == 41, "the file of the first former value of the hour is known, too"
    assert world.mirror.status.history("pipe", "export-1") is None
    assert world.mirror.status.history("pipe", "more-0") is not None, "its file is still there"


async def test_a_file_that_returns_within_a_day_is_recognised(make: Callable[..., ArchivingPipeline]) -> None:
    world = make(keeps=True)
    for number in range(20):
        await world.drop(f"export-{number}", ("mass", str(number)))
    away = dict(world.script.contents)
    world.script.contents.clear()
    for number in range(10):
        await world.drop(f"more-{number}", ("mass", f"more {number}"))
    world.script.contents.update(away)
    readings = world.script.readings
    world.time += 2 * DAY
    await world.drop("last", ("mass", "last"))
    await world.drop("last", ("mass", "last of all"))
    assert world.script.readings == readings + 2
    assert world.counts()["partition"] == 31
    assert [origin.value for origin in world.mirror.status.origins("mass")] == ["last of all"]
