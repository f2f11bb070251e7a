"""Children of records in real files: JSON, XML, YAML, and JSON in the cells of CSV."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ingestd.core.errors import SourceBroken
from ingestd.core.mapping import EntrySpec, Mapping
from tests.support.file_flow import FileFlow
from tests.support.mapped_files import MappedFiles, map_files

PARTS = '{each: parts, key: "{parent.id}.{index}.{name}", value: "{mass}"}'


def positions(found: MappedFiles) -> list[tuple[object, str]]:
    return [(reject.position, reject.reason) for reject in found.rejects]


def from_json(folder: Path, content: str, entries: str = PARTS, *, kind: str = "json") -> MappedFiles:
    return map_files(folder, entries, {f"a.{kind}": content}, file_format=f"{{type: {kind}}}")


@pytest.mark.parametrize("kind", ["json", "ndjson"])
def test_each_number_keeps_its_characters(tmp_path: Path, kind: str) -> None:
    numbers = ["0.10", "-0", "1E-7", "12345678901234567890123.4500", "1e400"]
    items = ",".join(f'{{"name": "n", "mass": {number}}}' for number in numbers)
    found = from_json(tmp_path, f'{{"id": "A", "parts": [{items}]}}\n', kind=kind)
    assert [(key, value) for key, value, _ in found.entries] == [
        (f"A.{index}.n", number) for index, number in enumerate(numbers, start=1)
    ]


def test_a_missing_an_empty_and_a_null_list_have_no_children(tmp_path: Path) -> None:
    found = from_json(tmp_path, '[{"id": "A"}, {"id": "B", "parts": []}, {"id": "C", "parts": null}]')
    assert found == MappedFiles(entries=[], rejects=[])


def test_a_value_and_an_object_instead_of_a_list_reject_their_record_alone(tmp_path: Path) -> None:
    good = '{"id": "C", "parts": [{"name": "n", "mass": 1}]}'
    found = from_json(tmp_path, f'[{{"id": "A", "parts": 5}}, {{"id": "B", "parts": {{"name": "n"}}}}, {good}]')
    assert found.entries == [("C.1.n", "1", "scalar")]
    assert positions(found) == [
        (1, "'parts' is no JSON list, and 'each' needs one; it is '5'."),
        (2, "'parts' is an object, and 'each' needs a list."),
    ]


def test_an_object_instead_of_a_nested_list_rejects_the_child_that_has_it(tmp_path: Path) -> None:
    entries = '{each: [parts, p], key: "{parent.index}.{index}", value: "{child}"}'
    found = from_json(tmp_path, '[{"parts": [{"p": {"x": 1}}, {"p": [7, "8", null]}]}]', entries)
    assert found.entries == [("2.1", "7", "scalar"), ("2.2", "8", "scalar")]
    assert positions(found) == [("row 1, at parts[1]", "'p' is an object, and 'each' needs a list.")]


def test_children_of_different_kinds_are_rejected_only_if_they_lack_what_the_key_needs(tmp_path: Path) -> None:
    found = from_json(tmp_path, '[{"id": "A", "parts": [{"name": "n", "mass": 1}, 7, "x", {"name": "o"}, [1]]}]')
    assert found.entries == [("A.1.n", "1", "scalar")]
    assert [position for position, _ in positions(found)] == [f"row 1, at parts[{index}]" for index in (2, 3, 5)]


def test_lists_of_lists_are_followed_by_the_name_child(tmp_path: Path) -> None:
    entries = '{each: [matrix, child], key: "{parent.index}.{index}", value: "{child}"}'
    found = from_json(tmp_path, '[{"matrix": [[1.0, 2], [], [3e1]]}]', entries)
    assert [(key, value) for key, value, _ in found.entries] == [("1.1", "1.0"), ("1.2", "2"), ("3.1", "3e1")]


def test_expressions_and_conditions_use_the_fields_of_all_levels(tmp_path: Path) -> None:
    entries = """
each: [parts, p]
let: {total: "v * parent.count"}
where: "parent.parent.state = 'ok' AND index > 1"
key: "{parent.name}.{index}"
value: {expr: "total + 0.5"}
type: "{size.unit}"
"""
    item = '{"v": 1.5, "size": {"unit": "text"}}'
    record = f'{{"state": "ok", "parts": [{{"name": "n", "count": 2, "p": [{item}, {item}]}}]}}'
    found = from_json(tmp_path, f"[{record}, {record.replace('ok', 'no')}]", entries)
    assert found.entries == [("n.2", "3.5", "text")]


def test_columns_of_a_child_each_make_an_entry(tmp_path: Path) -> None:
    entries = '{each: parts, key: "{parent.id}.{name}.{column}", columns: [mass, size.l]}'
    found = from_json(tmp_path, '[{"id": "A", "parts": [{"name": "n", "mass": 1.0, "size": {"l": 2.0}}]}]', entries)
    assert [(key, value) for key, value, _ in found.entries] == [("A.n.mass", "1.0"), ("A.n.size.l", "2.0")]


def test_xml_elements_are_children_even_if_there_is_only_one(tmp_path: Path) -> None:
    content = """<r>
<asm id="A"><part name="a"><property name="m">0.10</property><property name="k"/></part><part name="b"/></asm>
<asm id="B"><part name="c"><property name="m"> 7 </property></part></asm><asm id="C"/></r>"""
    entries = '{each: [part, property], key: "{parent.parent.@id}.{parent.@name}.{@name}", value: "{text}"}'
    kind = "{type: xml, lists: [part, part/property]}"
    found = map_files(tmp_path, entries, {"a.xml": content}, file_format=kind)
    assert found.rejects == []
    assert [(key, value) for key, value, _ in found.entries] == [("A.a.m", "0.10"), ("B.c.m", " 7 ")]


def test_lists_in_yaml_and_in_cells_have_children(tmp_path: Path) -> None:
    yaml = "id: A\nparts: [{name: n, mass: 0.10}]\n"
    assert map_files(tmp_path / "1", PARTS, {"a.yaml": yaml}, file_format="{type: yaml}").entries == [
        ("A.1.n", "0.10", "scalar")
    ]
    csv = 'id,parts\nA,"[{""name"": ""n"", ""mass"": 0.10}]"\n'
    assert map_files(tmp_path / "2", PARTS, {"a.csv": csv}).entries == [("A.1.n", "0.10", "scalar")]


def test_a_table_without_the_column_of_the_list_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(SourceBroken, match="There is no column 'parts'"):
        map_files(tmp_path, PARTS, {"a.csv": "id\nA\n"})


@pytest.mark.parametrize(("opened", "closed"), [("[", "]"), ('{"a":', "}")])
def test_deep_nesting_is_a_rejection_with_a_sentence(opened: str, closed: str) -> None:
    mapping = Mapping([EntrySpec(key="{index}", value="{b.c}", each=("parts",))])
    for depth, rejected in ((500, []), (100_000, [(1, "'parts' is nested too deeply.")])):
        deep = f'[{{"b": {{"c": 6}}, "d": {opened * depth}0{closed * depth}}}]'
        records = pl.DataFrame({"parts": [deep, '[{"b": {"c": 7}}]']})
        mapped = mapping.apply(records, pl.Series([1, 2]), mapping.row_hashes(records, {}), {})
        assert mapped.entries["value"].to_list() == (["7"] if rejected else ["6", "7"])
        assert [(reject.position, reject.reason) for reject, _ in mapped.rejects] == rejected


def test_two_children_with_one_key_have_their_own_positions() -> None:
    mapping = Mapping([EntrySpec(key="{name}", value="{mass}", each=("parts",))])
    records = pl.DataFrame({"parts": ['[{"name": "n", "mass": 1}, {"name": "n", "mass": 2}]']})
    mapped = mapping.apply(records, pl.Series([1]), mapping.row_hashes(records, {}), {})
    assert mapped.entries["position"].to_list() == ["row 1, at parts[1]", "row 1, at parts[2]"]


def test_rejected_children_keep_their_record_once() -> None:
    mapping = Mapping([EntrySpec(key="{name}", value="{mass}", each=("parts",))])
    records = pl.DataFrame({"parts": ["[1, 2, 3]"], "other": ["x"]})
    mapped = mapping.apply(records, pl.Series([1]), mapping.row_hashes(records, {}), {})
    assert [reject.record for reject, _ in mapped.rejects] == [{"parts": "[1, 2, 3]", "other": "x"}, {}, {}]


def test_a_hundred_thousand_children_of_one_record_are_mapped(tmp_path: Path) -> None:
    items = ",".join(f'{{"name":"p{at}","mass":{at}.50,"rest":[1,{{}}]}}' for at in range(100_000))
    found = from_json(tmp_path, f'{{"id":"A","parts":[{items}]}}')
    assert len(found.entries) == 100_000
    assert found.entries[-1] == ("A.100000.p99999", "99999.50", "scalar")


def test_a_child_that_the_service_refuses_is_one_row_with_the_whole_record(tmp_path: Path) -> None:
    spec = EntrySpec(key="{parent.id}.{name}", value="{mass}", each=("parts",))
    flow = FileFlow(tmp_path, spec=spec)
    flow.refuses = {"99", "98"}
    part = '{"name": "n", "mass": 1}'
    bad = '{"name": "o", "mass": 99}, {"name": "p", "mass": 98}'
    flow.write("a.json", f'[{{"id": "A", "parts": [{part}]}}, {{"id": "B", "parts": [{part}, {bad}]}}]')
    flow.pass_once()
    assert flow.held == {"A.n": "1", "B.n": "1"}
    rejected = tmp_path / "done" / "rejected"
    [path] = rejected.iterdir()
    [row] = path.read_text(encoding="utf-8").splitlines()
    assert '"id": "B"' in row
    assert "B.o: Too heavy" in row
    assert "B.p: Too heavy" in row
    path.rename(flow.drop / path.name)
    flow.write(path.name, row.replace("99", "9").replace("98", "8"))
    flow.pass_once()
    assert flow.held == {"A.n": "1", "B.n": "1", "B.o": "9", "B.p": "8"}
    flow.close()


def test_the_steps_to_the_entry_of_a_child_are_those_of_this_child() -> None:
    mapping = Mapping(
        [EntrySpec(key="{parent.part}.{name}", value="{mass}", each=("parts",), where="CAST(mass AS DECIMAL) > 1")]
    )
    record = pl.DataFrame({"part": ["A"], "parts": ['[{"name": "m", "mass": 1.50}, {"name": "n", "mass": 2.50}]']})
    found = mapping.steps(record, {}, "A.n")
    assert found is not None
    assert (found.value, found.record) == ("2.50", {"parent.part": "A", "name": "n", "mass": "2.50"})
    assert [(step.name, step.result) for step in found.steps] == [("where", "true"), ("value", "2.50"), ("key", "A.n")]
    assert mapping.steps(record, {}, "A.o") is None
