"""Rejected is not absent: with ``deletes: remove``, a record that is rejected keeps its entry until the record is removed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from ingestd.core.address import SinkAddress
from ingestd.core.contract import ColumnContract, Contract
from ingestd.core.groups import AggregateSpec, Aggregation, GroupSpec
from ingestd.core.guard import Guard
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.core.mapping.conversion import ValueRules
from ingestd.core.record import Reject
from ingestd.intake import Reader
from ingestd.mirror.sqlite import SqliteMirror
from tests.support.scripted_source import Row, Script, ScriptedConnector

SINK = SinkAddress(workspace="w", by="label", name="s")
NUMBERS = EntrySpec(key="{k}", value="{v}", rules=ValueRules(minimum="0"))
ROW_A: Row = {"k": "a", "v": "1"}
ROW_B: Row = {"k": "b", "v": "2"}
ROW_C: Row = {"k": "c", "v": "3"}


class Scene:
    """One partition with ``deletes: remove``, and its entries."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.script = Script(deletes="remove")
        self.mirror = SqliteMirror.open(path)
        self.mirror.intake.activate(["pipe"])
        self.use(Mapping([NUMBERS]))

    def use(self, mapping: Mapping, **more: object) -> None:
        self._reader = Reader(
            pipeline="pipe", connector=ScriptedConnector(self.script), mapping=mapping, sink=SINK,
            mirror=self.mirror.intake, emit=lambda event: None, **more,  # type: ignore[arg-type]
        )  # fmt: skip

    def read(self, *rows: Row, rejects: Sequence[Reject] = ()) -> dict[str, str]:
        """Read these rows and return the entries."""
        self.script.write("p", rows, rejects=tuple(rejects))
        return self.read_written()

    def read_written(self) -> dict[str, str]:
        """Read what the script has, and return the entries."""
        self._reader.read_pass()
        assert not self._reader.read_pass().broken
        return self.entries()

    def entries(self) -> dict[str, str]:
        with closing(sqlite3.connect(self._path)) as connection:
            return dict(connection.execute("SELECT key, value FROM entry WHERE NOT removed ORDER BY key"))

    def notice(self) -> str:
        (pipeline,) = [one for one in self.mirror.status.pipelines() if one.name == "pipe"]
        return " ".join(one.sentence for one in pipeline.notices)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path / "state.db")
    yield made
    made.mirror.close()


def test_a_record_with_a_refused_value_keeps_its_entry_until_it_is_removed(scene: Scene) -> None:
    scene.read(ROW_A, ROW_B, ROW_C)
    bad: Row = {"k": "b", "v": "#N/A"}
    assert scene.read(ROW_A, bad, ROW_C) == {"a": "1", "b": "2", "c": "3"}
    assert scene.read(ROW_A, bad) == {"a": "1", "b": "2"}, "an unchanged rejected record still names it"
    assert scene.read(ROW_A) == {"a": "1"}
    assert scene.notice() == ""


def test_a_corrected_record_takes_its_entry_again(scene: Scene) -> None:
    scene.read(ROW_A, ROW_B)
    scene.read(ROW_A, {"k": "b", "v": "?"})
    assert scene.read(ROW_A, {"k": "b", "v": "4"}) == {"a": "1", "b": "4"}
    assert scene.read(ROW_A) == {"a": "1"}


def test_a_record_without_a_known_key_keeps_every_entry_and_says_so(scene: Scene) -> None:
    scene.read(ROW_A, ROW_B, ROW_C)
    unknown: Row = {"k": "", "v": "2"}
    assert scene.read(ROW_A, unknown, ROW_C) == {"a": "1", "b": "2", "c": "3"}
    assert "1 entry that no record names stays, because a rejected record may name" in scene.notice()
    assert scene.read(ROW_A, unknown) == {"a": "1", "b": "2", "c": "3"}, (
        "the record is unchanged, and not known any better"
    )
    assert "2 entries that no record names stay" in scene.notice()
    assert scene.read(ROW_A) == {"a": "1"}
    assert scene.notice() == ""


def test_an_unreadable_record_keeps_the_entry_of_its_key(scene: Scene) -> None:
    scene.read(ROW_A, ROW_B, ROW_C)
    blob = Reject(position=9, reason="Column v holds binary data.", field="v", record={"k": "b", "v": None})
    assert scene.read(ROW_A, rejects=[blob]) == {"a": "1", "b": "2"}
    assert scene.read(ROW_A, ROW_C, rejects=[blob]) == {"a": "1", "b": "2", "c": "3"}
    assert scene.read(ROW_A, {"k": "b", "v": None}) == {"a": "1"}, "a record without a value makes no entry"


@pytest.mark.parametrize(
    "reject",
    [
        Reject(position=9, reason="The row has 3 fields.", record={"k": "a", "v": "b", "field 3": "2"}),
        Reject(position=9, reason="Column k holds binary data.", field="k", record={"k": None, "v": "2"}),
        Reject(position=9, reason="Line 9 is no object.", field="v", record={"text": "{"}),
        Reject(position=9, reason="Nothing is known."),
    ],
)
def test_an_unreadable_record_without_a_known_key_keeps_every_entry(scene: Scene, reject: Reject) -> None:
    scene.read(ROW_A, ROW_B)
    assert scene.read(ROW_A, rejects=[reject]) == {"a": "1", "b": "2"}
    assert scene.read(ROW_A) == {"a": "1"}


def test_a_rejected_record_never_takes_the_value_of_a_good_one_with_its_key(scene: Scene) -> None:
    bad: Row = {"k": "b", "v": "?"}
    assert scene.read(ROW_B, bad) == {"b": "2"}
    assert scene.read({"k": "b", "v": "5"}, bad) == {"b": "5"}
    assert scene.read(bad, {"k": "b", "v": "6"}) == {"b": "6"}
    assert scene.read(bad) == {"b": "6"}
    assert scene.read(ROW_A) == {"a": "1"}


def test_a_rejected_record_creates_no_entry(scene: Scene) -> None:
    assert scene.read(ROW_A, {"k": "b", "v": "?"}) == {"a": "1"}


def test_a_condition_decides_whether_a_rejected_record_names_a_key(scene: Scene) -> None:
    first = EntrySpec(key="one.{k}", value="{v}", where="kind = '1'", rules=ValueRules(minimum="0"))
    scene.use(Mapping([first, EntrySpec(key="two.{other}", value="{v}", where="kind = '2'")]))
    good: Row = {"k": "a", "other": "", "kind": "1", "v": "1"}
    other: Row = {"k": "", "other": "b", "kind": "2", "v": "2"}
    scene.read(good, other)
    assert scene.read({**good, "v": "?"}) == {"one.a": "1"}


def test_a_new_mapping_that_rejects_a_record_keeps_its_entry(scene: Scene) -> None:
    scene.use(Mapping([EntrySpec(key="{k}", value="{v}")]))
    scene.read(ROW_A, {"k": "b", "v": "x"}, {"k": "c", "v": "3"})
    scene.use(Mapping([NUMBERS]))
    assert scene.read(ROW_A, {"k": "b", "v": "x"}) == {"a": "1", "b": "x"}


def test_a_new_mapping_with_an_unknown_key_removes_former_keys_once_all_are_known(scene: Scene) -> None:
    scene.read(ROW_A, ROW_B)
    scene.use(Mapping([EntrySpec(key="new.{k}", value="{v}")]))
    assert scene.read(ROW_A, {"k": "", "v": "2"}) == {"a": "1", "b": "2", "new.a": "1"}
    assert "2 entries that no record names stay" in scene.notice()
    assert scene.read(ROW_A, ROW_B) == {"new.a": "1", "new.b": "2"}


def test_a_rejected_child_keeps_its_entry_and_a_broken_list_keeps_all(scene: Scene) -> None:
    scene.use(Mapping([EntrySpec(key="{parent.k}.{n}", value="{v}", each=("parts",), rules=ValueRules(minimum="0"))]))

    def record(*parts: tuple[str, str]) -> Row:
        return {"k": "x", "parts": json.dumps([{"n": name, "v": value} for name, value in parts])}

    scene.read(record(("1", "10"), ("2", "20"), ("3", "30")))
    assert scene.read(record(("1", "10"), ("2", "?"))) == {"x.1": "10", "x.2": "20"}
    assert scene.read({"k": "x", "parts": "7"}) == {"x.1": "10", "x.2": "20"}
    assert scene.read(record(("2", "?"))) == {"x.2": "20"}


def test_a_rejected_group_keeps_its_entry(scene: Scene) -> None:
    spec = GroupSpec(by=("k",), take=(("sum", AggregateSpec(function="sum", field="v")),))
    scene.use(Mapping([EntrySpec(key="{k}", value="{sum}")]), groups=Aggregation(spec))
    scene.read(ROW_A, ROW_B, ROW_C)
    assert scene.read(ROW_A, {"k": "b", "v": "?"}) == {"a": "1", "b": "2"}
    assert scene.read(ROW_A, {"k": "", "v": "2"}) == {"a": "1", "b": "2"}, "the record may belong to any group"
    assert scene.read(ROW_A) == {"a": "1"}


def test_a_record_that_breaks_the_contract_keeps_its_entry(scene: Scene) -> None:
    contract = Contract(columns={"k": ColumnContract(filled=True), "v": ColumnContract(filled=True)})
    scene.use(Mapping([NUMBERS]), contract=contract)
    scene.read(ROW_A, ROW_B, ROW_C)
    assert scene.read(ROW_A, {"k": "b", "v": ""}) == {"a": "1", "b": "2"}


def test_a_guard_does_not_count_kept_entries_and_an_approved_run_keeps_them(scene: Scene) -> None:
    scene.use(Mapping([NUMBERS]), guard=Guard(removed_percent=30, minimum=2))
    scene.read(ROW_A, ROW_B, ROW_C)
    bad: Row = {"k": "b", "v": "?"}
    assert scene.read(ROW_A, bad, ROW_C) == {"a": "1", "b": "2", "c": "3"}
    assert scene.mirror.status.held_runs() == []
    scene.read(bad, ROW_C | {"v": "4"})
    (held,) = scene.mirror.status.held_runs()
    assert (held.removed, held.updated, held.created) == (1, 1, 0)
    scene.mirror.intake.approve(held.run)
    assert scene.entries() == {"b": "2", "c": "4"}


def test_an_approved_run_with_an_unknown_key_removes_nothing(scene: Scene) -> None:
    scene.use(Mapping([NUMBERS]), guard=Guard(removed_percent=30, changed_percent=30, minimum=2))
    scene.read(ROW_A, ROW_B, ROW_C)
    scene.read({"k": "a", "v": "9"}, {"k": "b", "v": "8"}, {"k": "", "v": "3"})
    (held,) = scene.mirror.status.held_runs()
    assert (held.removed, held.updated) == (0, 2)
    scene.mirror.intake.approve(held.run)
    assert scene.entries() == {"a": "9", "b": "8", "c": "3"}


@pytest.mark.parametrize(("rejecting", "losing"), [("p", "q"), ("q", "p")])
def test_a_rejected_record_also_keeps_an_entry_that_another_partition_names(
    scene: Scene, rejecting: str, losing: str
) -> None:
    def read(part: str, *rows: Row) -> dict[str, str]:
        scene.script.write(part, rows)
        return scene.read_written()

    read("p", ROW_A, ROW_B)
    assert read("q", ROW_A, ROW_C) == {"a": "1", "b": "2", "c": "3"}
    kept = {"p": ROW_B, "q": ROW_C}
    read(rejecting, {"k": "a", "v": "-1"}, kept[rejecting])
    assert read(losing, kept[losing]) == {"a": "1", "b": "2", "c": "3"}
    assert read(rejecting, kept[rejecting]) == {"b": "2", "c": "3"}
