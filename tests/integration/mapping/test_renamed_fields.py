"""A field that is renamed in a source removes nothing, in whatever format or by whatever connector it comes."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import openpyxl
import pytest

from connectors.database.connector import DatabaseConnector
from connectors.database.options import DatabaseOptions
from connectors.file import FileConnector, FileOptions
from ingestd.core.address import SinkAddress
from ingestd.core.groups import AggregateSpec, Aggregation, GroupSpec
from ingestd.core.guard import Guard
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.core.record import Partition
from ingestd.intake import PassReport, Reader
from ingestd.mirror.rejections import Selection
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.sdk import SourceContext
from tests.support.scripted_source import Row, Script, ScriptedConnector

SINK = SinkAddress(workspace="w", by="label", name="s")
MASS = EntrySpec(key="{part}.mass", value="{mass}")
Table = list[dict[str, str]]


class Scene:
    """The entries of one source with ``deletes: remove``, without a guard."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mirror = SqliteMirror.open(folder / "state.db")
        self.mirror.intake.activate(["pipe"])

    def read(self, connector: object, *specs: EntrySpec, group: GroupSpec | None = None) -> PassReport:
        reader = Reader(
            pipeline="pipe", connector=connector, mapping=Mapping(specs or (MASS,)), sink=SINK,  # type: ignore[arg-type]
            mirror=self.mirror.intake, emit=lambda event: None, guard=Guard(), folder=self.folder,
            groups=Aggregation(group) if group is not None else None,
        )  # fmt: skip
        return reader.read_pass()

    def file(self, name: str, **file_format: str) -> FileConnector:
        options = {"path": name, "settle_seconds": 0, "deletes": "remove"}
        options |= {"format": file_format} if file_format else {}
        context = SourceContext(pipeline="pipe", base=self.folder, now=lambda: 4_000_000_000.0)
        return FileConnector(FileOptions.model_validate(options), context)

    @property
    def entries(self) -> int:
        [sink] = self.mirror.status.sinks()
        return sink.entries

    def rejections(self) -> list[str]:
        return [one.reason for one in self.mirror.status.selected(Selection(), limit=100)]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.mirror.close()


def as_json(path: Path, rows: Table) -> None:
    path.write_text(json.dumps(rows))


def as_ndjson(path: Path, rows: Table) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def as_csv(path: Path, rows: Table) -> None:
    path.write_text("\n".join([",".join(rows[0]), *(",".join(row.values()) for row in rows)]) + "\n")


def as_xml(path: Path, rows: Table) -> None:
    items = ("".join(f"<{name}>{text}</{name}>" for name, text in row.items()) for row in rows)
    path.write_text(f"<list>{''.join(f'<item>{item}</item>' for item in items)}</list>")


def as_workbook(path: Path, rows: Table) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in [list(rows[0]), *(list(row.values()) for row in rows)]:
        sheet.append(row)
    book.save(path)


FORMATS: dict[str, tuple[Callable[[Path, Table], None], dict[str, str]]] = {
    "parts.json": (as_json, {}),
    "parts.ndjson": (as_ndjson, {}),
    "parts.csv": (as_csv, {}),
    "parts.xml": (as_xml, {"type": "xml", "records": "item"}),
    "parts.xlsx": (as_workbook, {}),
}


def renamed(rows: Table, name: str, to: str) -> Table:
    return [{to if one == name else one: text for one, text in row.items()} for row in rows]


ROWS: Table = [{"part": f"P-{number}", "mass": str(number)} for number in range(1, 61)]


@pytest.mark.parametrize(("name", "to"), [("mass", "mass_kg"), ("part", "parts")])
@pytest.mark.parametrize("file", FORMATS)
def test_a_renamed_field_rejects_the_file_and_removes_nothing(scene: Scene, file: str, name: str, to: str) -> None:
    write, file_format = FORMATS[file]
    write(scene.folder / file, ROWS)
    assert scene.read(scene.file(file, **file_format)).rejected == ()
    assert scene.entries == 60
    write(scene.folder / file, renamed(ROWS, name, to))
    (rejected,) = scene.read(scene.file(file, **file_format)).rejected
    assert f"'{name}'; the " in rejected
    assert f"Did you mean '{to}'?" in rejected
    assert (scene.entries, len(scene.rejections())) == (60, 1)
    write(scene.folder / file, ROWS[:59])
    assert scene.read(scene.file(file, **file_format)).rejected == ()
    assert (scene.entries, scene.rejections()) == (59, []), "a removed record is still removed"


def test_a_renamed_column_of_a_table_removes_nothing(scene: Scene) -> None:
    with closing(sqlite3.connect(scene.folder / "pdm.db")) as database, database:
        database.execute("CREATE TABLE parts (part TEXT PRIMARY KEY, mass TEXT)")
        database.executemany("INSERT INTO parts VALUES (?, ?)", [(row["part"], row["mass"]) for row in ROWS])
    options = DatabaseOptions.model_validate(
        {"url": "sqlite:///pdm.db", "table": "parts", "key": "part", "deletes": "remove"}
    )
    connector = DatabaseConnector(options, SourceContext(pipeline="pipe", base=scene.folder, now=lambda: 0.0))
    assert scene.read(connector).broken == ""
    assert scene.entries == 60
    with closing(sqlite3.connect(scene.folder / "pdm.db")) as database, database:
        database.execute("ALTER TABLE parts RENAME COLUMN mass TO mass_kg")
    report = scene.read(connector)
    assert "'mass'; the " in report.stopped
    assert "Did you mean 'mass_kg'?" in report.stopped
    assert scene.entries == 60
    connector.close()


LONG: list[Row] = [{"part": f"P-{number}", "mass": str(number), "length": "1"} for number in range(1_200)]
BOTH = (MASS, EntrySpec(key="{part}.length", value="{length}"))


def test_nothing_of_a_large_reading_is_delivered_before_each_field_was_seen(scene: Scene) -> None:
    script = Script(deletes="remove", batch_rows=100)
    script.write("p", [{"part": str(row["part"]), "length": "2"} for row in LONG])
    assert scene.read(ScriptedConnector(script), *BOTH).rejected
    assert scene.entries == 0, "the lengths of the first batches are not delivered"
    script.write("p", [{"part": "late", "length": "1"}, *LONG])
    assert scene.read(ScriptedConnector(script), *BOTH).rejected == ()
    assert scene.entries == 2_401, "the mass occurs in a later record"


def test_a_group_without_a_field_of_its_records_removes_nothing(scene: Scene) -> None:
    group = GroupSpec(by=("part",), take=(("mass", AggregateSpec(function="sum", field="kg")),))
    script = Script(deletes="remove")
    script.write("p", [{"part": "a", "kg": "1"}, {"part": "b", "kg": "2"}])
    scene.read(ScriptedConnector(script), group=group)
    assert scene.entries == 2
    script.write("p", [{"part": "a", "kgs": "1"}, {"part": "b", "kgs": "2"}])
    (rejected,) = scene.read(ScriptedConnector(script), group=group).rejected
    assert "No record has a field 'kg'; the fields are 'part', 'kgs'." in rejected
    assert scene.entries == 2


@pytest.mark.parametrize("file", ["parts.json", "parts.yaml"])
def test_children_without_a_field_remove_nothing(scene: Scene, file: str) -> None:
    spec = EntrySpec(each=("parts",), key="{parent.id}.{number}", value="{mass}")
    text = '{"id": "A", "parts": [{"number": "1", "mass": 2}, {"number": "2", "mass": 3}]}'  # JSON is YAML
    (scene.folder / file).write_text(text)
    scene.read(scene.file(file), spec)
    assert scene.entries == 2
    (scene.folder / file).write_text(text.replace("mass", "weight"))
    (rejected,) = scene.read(scene.file(file), spec).rejected
    assert "No item of 'parts' has a field 'mass'" in rejected
    assert scene.entries == 2


def test_an_optional_field_that_is_gone_is_as_one_without_a_value(scene: Scene) -> None:
    script = Script(deletes="remove")
    optional = EntrySpec(key="{part}.mass", value="{mass}", optional=("mass",))
    script.write("p", [{"part": "a", "mass": "1"}])
    scene.read(ScriptedConnector(script), optional)
    script.write("p", [{"part": "a"}])
    assert scene.read(ScriptedConnector(script), optional).rejected == ()
    assert scene.entries == 0


class Stream(ScriptedConnector):
    """A source of new records, such as a queue. Each batch is a reading of its own."""

    def partitions(self) -> list[Partition]:
        return [Partition(name="p", snapshot=False)]


def test_the_records_of_a_batch_without_a_field_are_rejected_and_kept(scene: Scene) -> None:
    script = Script(batch_rows=2)
    lacking: list[Row] = [{"part": "c"}, {"part": "d"}]
    script.write("p", [{"part": "a", "mass": "1"}, {"part": "b"}, *lacking])
    (summary,) = scene.read(Stream(script)).read
    assert (summary.created, summary.rejected, summary.valueless) == (1, 2, 1), "'b' is beside a record with the field"
    assert all("No record has a field 'mass'; the fields are 'part'." in one for one in scene.rejections())
    asyncio.run(scene.mirror.rejected.retry(Selection()))
    scene.read(Stream(script))
    assert len(scene.rejections()) == 2, "a retry without another mapping ends in the same way"


def test_a_reading_without_a_value_says_so_and_why(scene: Scene) -> None:
    script = Script()
    script.write("p", [{"part": "a", "mass": None, "state": "x"}, {"part": "b", "mass": "1", "state": "y"}])
    spec = EntrySpec(key="{part}.mass", value="{mass}", where="state = 'x'")
    (summary,) = scene.read(ScriptedConnector(script), spec).read
    assert summary.notice == "2 records gave no value: 'where' excludes 1, and 1 has no value in 'mass'."
    assert summary.gave_no_value
    script.write("p", [*script.contents["p"].rows, {"part": "c", "mass": "1", "state": "y"}])
    (summary,) = scene.read(ScriptedConnector(script), spec).read
    assert summary.notice == "3 records gave no value: 'where' excludes 2, and 1 has no value in 'mass'."
    script.write("p", [*script.contents["p"].rows, {"part": "d", "mass": "1", "state": "x"}])
    (summary,) = scene.read(ScriptedConnector(script), spec).read
    assert (summary.notice, summary.gave_no_value, summary.valueless) == ("", False, 3)
