"""Groups from a source to the mirror: differences, rejections, removals, and sources that can't be grouped."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest
from msgspec.structs import replace

from ingestd.core.contract import ColumnContract, Contract
from ingestd.core.errors import ConfigurationError, MirrorFull
from ingestd.core.groups import AggregateSpec, Aggregation, GroupSpec
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.core.record import Batch, Cursor, Partition, Reject
from ingestd.intake import PassReport, Reader
from ingestd.intake.group_stage import ROWS_AT_ONCE, GroupStage
from ingestd.mirror.rejections import Selection
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.registry import connector_class
from ingestd.settings.loader import load_settings
from tests.contract.mirror_deliverable import SINK
from tests.support.scripted_source import Row, Script, ScriptedConnector

MEAN = GroupSpec(
    by=("part",),
    take=(
        ("mass", AggregateSpec(function="mean", field="kg")),
        ("samples", AggregateSpec(function="count", field=None)),
    ),
    where="state = 'ok'",
)
ENTRIES = [EntrySpec(key="{part}.mass", value="{mass}"), EntrySpec(key="{part}.samples", value="{samples}")]


def row(part: str | None, kg: str | None, state: str = "ok") -> Row:
    return {"part": part, "kg": kg, "state": state}


class Scene:
    """A source with groups, and its mirror."""

    def __init__(
        self,
        folder: Path,
        *,
        group: GroupSpec = MEAN,
        contract: Contract | None = None,
        connect: Callable[[Script], ScriptedConnector] = ScriptedConnector,
    ) -> None:
        self.mirror = SqliteMirror.open(folder / "state.db")
        self.mirror.intake.activate(["pipe"])
        self.script = Script(deletes="remove")
        self.reader = Reader(
            pipeline="pipe",
            connector=connect(self.script),
            mapping=Mapping(ENTRIES),
            contract=contract,
            sink=SINK,
            mirror=self.mirror.intake,
            emit=lambda _: None,
            groups=Aggregation(group),
            folder=folder,
        )

    def read(self, *rows: Row, rejects: tuple[Reject, ...] = ()) -> PassReport:
        self.script.write("p", rows, rejects=rejects)
        return self.reader.read_pass()

    def entries(self) -> dict[str, str]:
        keys = ("a.mass", "a.samples", "b.mass", "b.samples")
        origins = [origin for key in keys for origin in self.mirror.status.origins(key)]
        return {origin.key: origin.value for origin in origins if origin.value is not None}

    def reasons(self) -> dict[str, str]:
        return {str(one.position): one.reason for one in self.mirror.status.selected(Selection(), limit=100)}


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    found = Scene(tmp_path)
    yield found
    found.mirror.close()


def test_only_the_group_of_a_changed_record_is_sent_and_an_unchanged_source_costs_nothing(scene: Scene) -> None:
    [first] = scene.read(row("a", "0.10"), row("b", "1"), row("a", "0.30"), row("a", "7", "failed")).read
    assert (first.records, first.created, first.rejected) == (4, 4, 0)
    assert scene.entries() == {"a.mass": "0.2", "a.samples": "2", "b.mass": "1", "b.samples": "1"}
    assert scene.mirror.status.origins("a.mass")[0].position == "rows 2 to 4 (2 rows)"
    [second] = scene.read(row("a", "0.10"), row("b", "3"), row("a", "0.30")).read
    assert (second.created, second.updated, second.unchanged, second.removed) == (0, 1, 1, 0)
    readings = scene.script.readings
    assert scene.reader.read_pass().read == ()
    assert scene.script.readings == readings


def test_a_group_without_records_is_removed(scene: Scene) -> None:
    scene.read(row("a", "1"), row("b", "1"))
    [second] = scene.read(row("a", "1"), row("b", "1", "failed")).read
    assert second.removed == 2
    assert scene.entries() == {"a.mass": "1", "a.samples": "1"}


def test_a_group_without_values_has_no_mean_and_still_a_count(scene: Scene) -> None:
    scene.read(row("a", ""), row("a", None))
    assert scene.entries() == {"a.samples": "2"}


def test_a_rejected_record_rejects_its_group_with_a_reason_that_names_it(scene: Scene) -> None:
    scene.read(row("a", "1"), row("a", "n/a"), row("b", "1"), row("", "5"))
    assert scene.entries() == {"b.mass": "1", "b.samples": "1"}
    sentence = (
        "'kg' is used as a number, which has at most 19 digits before and 18 after the point. Here 'kg' is 'n/a'."
    )
    assert scene.reasons() == {
        "3": sentence,
        "5": "The record has no 'part', which its group needs.",
        "rows 2 to 3 (2 rows)": "The group is rejected, because its aggregates would lack a record. Row 3: " + sentence,
    }


async def test_a_retry_repeats_the_reasons_and_a_corrected_record_ends_them(scene: Scene) -> None:
    scene.read(row("a", "1"), row("a", "n/a"), row("b", "1"))
    before = scene.reasons()
    await scene.mirror.rejected.retry(Selection())
    scene.reader.remap()
    scene.script.contents["p"].version += 1
    scene.reader.read_pass()
    assert scene.reasons() == before
    scene.read(row("a", "1"), row("a", "2"), row("b", "1"))
    assert scene.reasons() == {}
    assert scene.entries() == {"a.mass": "1.5", "a.samples": "2", "b.mass": "1", "b.samples": "1"}


def test_a_record_that_breaks_the_contract_rejects_its_group_only(tmp_path: Path) -> None:
    columns = {"part": ColumnContract(), "kg": ColumnContract(type="decimal"), "state": ColumnContract()}
    scene = Scene(tmp_path, contract=Contract(columns=columns))
    scene.read(row("a", "1"), row("b", "2"), row("a", "01"))
    assert scene.entries() == {"b.mass": "2", "b.samples": "1"}
    assert list(scene.reasons()) == ["4", "rows 2 to 4 (2 rows)"]
    scene.mirror.close()


@pytest.mark.parametrize(
    "found",
    [
        Reject(position=9, reason="Row 9 is too short.", record={"text": "a"}),
        Reject(position=9, reason="Row 9 is too long.", record={"part": "a", "kg": "1", "field 4": "x"}),
        Reject(position=9, reason="Row 9 is bad.", field="part", record={"part": "a", "kg": "1"}),
    ],
)
def test_a_record_of_an_unknown_group_rejects_the_whole_source_and_changes_nothing(scene: Scene, found: Reject) -> None:
    scene.read(row("a", "1"), row("b", "1"))
    report = scene.read(row("a", "3"), row("b", "3"), rejects=(found,))
    assert report.read == ()
    assert report.rejected[0].startswith(
        "p: The group of row 9 is unknown, so the aggregates of any group could lack this record;"
    )
    assert report.rejected[0].endswith(found.reason)
    assert scene.entries() == {"a.mass": "1", "a.samples": "1", "b.mass": "1", "b.samples": "1"}


def test_another_group_stage_has_everything_read_again(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.read(row("a", "1"), row("a", "2", "failed"))
    scene.mirror.close()
    other = Scene(tmp_path, group=GroupSpec(by=MEAN.by, take=MEAN.take))
    other.script.contents = scene.script.contents
    other.reader.read_pass()
    assert other.entries() == {"a.mass": "1.5", "a.samples": "2"}
    other.mirror.close()


def test_a_stage_with_facts_reads_equal_content_again_because_a_fact_may_differ(tmp_path: Path) -> None:
    scene = Scene(tmp_path, group=replace(MEAN, where="file.stem = 'p'"))
    scene.read(row("a", "1"))
    assert scene.entries() == {"a.mass": "1", "a.samples": "1"}
    [again] = scene.read(row("a", "1")).read
    assert (again.records, again.unchanged) == (1, 2)
    scene.mirror.close()


def test_many_groups_and_many_batches_go_through_the_disk(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingestd.intake.partition_reader.GroupStage", _small_stage)
    [summary] = scene.read(*(row(f"{number % 500}", f"{number}") for number in range(2_000))).read
    assert (summary.records, summary.created) == (2_000, 1_000)
    [origin] = scene.mirror.status.origins("7.mass")
    assert (origin.value, origin.position) == ("757", "rows 9 to 1509 (4 rows)")


def _small_stage(aggregation: Aggregation, folder: Path) -> GroupStage:
    return GroupStage(aggregation, folder, states_in_memory=100)


def test_a_large_batch_is_divided_and_its_rejects_stay_in_the_order_of_its_records(tmp_path: Path) -> None:
    count = ROWS_AT_ONCE * 2 + 10
    records = pl.DataFrame({"part": ["a", "b"] * (count // 2), "kg": ["1"] * count, "state": ["ok"] * count})
    rejects = tuple(Reject(position=at, reason="bad", field="kg", record={"part": "b"}) for at in (2, count))
    batch = Batch(records=records, positions=pl.Series(range(count)), cursor={}, rejects=rejects, last=True)
    with GroupStage(Aggregation(MEAN), tmp_path) as stage:
        assert stage.add(batch) == rejects
        [found] = stage.batches(batch)
    assert found.records.rows() == [("a", "1", str(count // 2))]
    assert [one.position for one in found.rejects] == [f"rows 1 to {count} ({count // 2 + 2} rows)"]


def test_a_full_disk_ends_the_pass_as_a_full_state_file_does(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def small(aggregation: Aggregation, folder: Path) -> GroupStage:
        return GroupStage(aggregation, folder / "state.db", states_in_memory=2)

    monkeypatch.setattr("ingestd.intake.partition_reader.GroupStage", small)
    with pytest.raises(MirrorFull, match="The groups can't be written to a temporary file"):
        scene.read(row("a", "1"), row("b", "1"), row("c", "1"))


@pytest.mark.parametrize("change", ["partial", "incremental"])
def test_single_records_of_a_source_are_refused(tmp_path: Path, change: str) -> None:
    scene = Scene(tmp_path, connect=lambda script: _Single(script, change))
    report = scene.read(row("a", "1"))
    expected = {"partial": "a group needs all of its records", "incremental": "This source yields only new records"}
    assert expected[change] in report.rejected[0]
    assert scene.entries() == {}
    scene.mirror.close()


class _Single(ScriptedConnector):
    """Yields corrected records of other readings, or new records only."""

    def __init__(self, script: Script, change: str) -> None:
        super().__init__(script)
        self.change = change

    def partitions(self) -> list[Partition]:
        return [Partition(name="p", snapshot=self.change == "partial")]

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:
        for batch in super().read(partition, cursor):
            yield dataclasses.replace(batch, partial=self.change == "partial")


@pytest.mark.parametrize(
    "source",
    [
        "{connector: log, path: logs, pattern: '*.log'}",
        "{connector: database, url: 'sqlite:///pdm.db', table: parts, mode: changes, cursor: id, key: [id]}",
    ],
)
def test_sources_that_yield_only_new_records_are_refused_in_the_configuration(tmp_path: Path, source: str) -> None:
    (tmp_path / "ingestd.yaml").write_text(
        f"""
service: {{url: "http://127.0.0.1:9", api_key: k}}
state: ingestd.db
pipelines:
  - name: p
    source: {source}
    group: {{by: [part], take: {{n: count}}}}
    entries: {{key: "{{part}}", value: "{{n}}"}}
    sink: {{workspace: w, label: l}}
    schedule: {{every: 1h}}
"""
    )
    with pytest.raises(ConfigurationError) as raised:
        load_settings(tmp_path / "ingestd.yaml", options_of=connector_class, environment={})
    assert "this source yields only new ones: an aggregate of them would be wrong" in str(raised.value)
