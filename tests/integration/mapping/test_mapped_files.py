"""Mappings of real files: units, parts of file names, and columns that each file decides."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ingestd.core.errors import ConfigurationError, SourceBroken
from ingestd.core.mapping import EntrySpec, Mapping
from tests.support.mapped_files import map_files

WITH_UNITS = "part,mass,length\n,kg,mm\nP-1,0.10,7\n"
UNITS_ROW = "{type: csv, units_row: true}"


def test_the_unit_of_a_column_reaches_keys_values_and_types(tmp_path: Path) -> None:
    entries = '{key: "{part}.mass", value: "{mass} {units.mass}", type: "{units.mass}"}'
    found = map_files(tmp_path, entries, {"a.csv": WITH_UNITS}, file_format=UNITS_ROW)
    assert found.entries == [("P-1.mass", "0.10 kg", "kg")]


def test_each_of_several_columns_has_its_own_unit(tmp_path: Path) -> None:
    entries = '{key: "{part}.{column} [{units.{column}}]", columns: [mass, length]}'
    found = map_files(tmp_path, entries, {"a.csv": WITH_UNITS}, file_format=UNITS_ROW)
    assert found.entries == [("P-1.mass [kg]", "0.10", "scalar"), ("P-1.length [mm]", "7", "scalar")]


def test_a_unit_can_be_used_in_an_expression(tmp_path: Path) -> None:
    entries = """{key: "{part}.mass", value: {expr: "IF(units.mass = 'g', mass / 1000, mass * 1)"}}"""
    files = {"a.csv": WITH_UNITS, "b.csv": WITH_UNITS.replace("kg", "g").replace("P-1", "P-2")}
    found = map_files(tmp_path, entries, files, file_format=UNITS_ROW)
    assert found.entries == [("P-1.mass", "0.1", "scalar"), ("P-2.mass", "0.0001", "scalar")]


def test_values_are_converted_from_the_unit_of_their_column(tmp_path: Path) -> None:
    entries = '{key: "{part}.mass", value: "{mass}", values: {unit: {from: "{units.mass}", to: g}}}'
    found = map_files(tmp_path, entries, {"a.csv": WITH_UNITS}, file_format=UNITS_ROW)
    assert found.entries == [("P-1.mass", "100", "scalar")]


def test_a_source_without_units_rejects_a_mapping_that_uses_them(tmp_path: Path) -> None:
    with pytest.raises(SourceBroken, match="set 'units_row: true' in its format"):
        map_files(tmp_path, '{key: "{part}", value: "{units.mass}"}', {"a.csv": WITH_UNITS})


def test_a_field_with_the_name_of_a_unit_is_that_field(tmp_path: Path) -> None:
    content = '{"part": "P-1", "units": {"mass": "lb"}}\n'
    found = map_files(
        tmp_path, '{key: "{part}", value: "{units.mass}"}', {"a.ndjson": content}, file_format="{type: ndjson}"
    )
    assert found.entries == [("P-1", "lb", "scalar")]


def test_a_changed_unit_changes_the_hash_of_each_row() -> None:
    rule = Mapping([EntrySpec(key="{part}", value="{mass} {units.mass}")])
    records = pl.DataFrame({"part": ["P-1"], "mass": ["1"]})
    kilograms, grams = (rule.row_hashes(records, {"units.mass": unit}).item() for unit in ("kg", "g"))
    assert kilograms != grams


def test_parts_of_the_file_name_are_facts(tmp_path: Path) -> None:
    entries = """
file_name: "RUN{run}_{bench}.csv"
key: "{file.part.bench}/{file.part.run}/{part}"
value: {expr: "file.part.run + 1"}
"""
    found = map_files(tmp_path, entries, {"RUN07_north_2.csv": "part\nP-1\n"})
    assert found.entries == [("north_2/07/P-1", "8", "scalar")]


def test_a_file_with_a_name_of_another_form_is_rejected(tmp_path: Path) -> None:
    entries = '{file_name: "RUN{run}.csv", key: "{file.part.run}.{part}", value: x}'
    with pytest.raises(SourceBroken, match=r"'old\.csv' does not have the form 'RUN\{run\}\.csv'"):
        map_files(tmp_path, entries, {"old.csv": "part\nP-1\n"})


def test_all_columns_but_those_of_the_key_and_the_excepted_ones_make_entries(tmp_path: Path) -> None:
    entries = '{key: "{part}.{column}", columns: {all: true, except: [remark]}, types: {name: text}}'
    found = map_files(tmp_path, entries, {"a.csv": "part,name,mass,remark\nP-1,Bolt,0.10,x\n"})
    assert found.entries == [("P-1.name", "Bolt", "text"), ("P-1.mass", "0.10", "scalar")]


def test_columns_can_be_chosen_by_a_glob(tmp_path: Path) -> None:
    entries = '{key: "{part}.{column}", columns: {match: "mass_*"}}'
    found = map_files(tmp_path, entries, {"a.csv": "part,mass_kg,mass_lb,name\nP-1,1,2,Bolt\n"})
    assert [key for key, *_ in found.entries] == ["P-1.mass_kg", "P-1.mass_lb"]


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ('{match: "weight*"}', "selects none of the columns"),
        ("{all: true, except: [remrak]}", "There is no column 'remrak'.*Did you mean 'remark'"),
    ],
)
def test_a_choice_that_does_not_fit_the_file_rejects_it(tmp_path: Path, columns: str, sentence: str) -> None:
    with pytest.raises(SourceBroken, match=sentence):
        map_files(
            tmp_path, f'{{key: "{{part}}.{{column}}", columns: {columns}}}', {"a.csv": "part,mass,remark\nP-1,1,x\n"}
        )


def test_a_record_that_an_expression_can_not_use_is_rejected_alone(tmp_path: Path) -> None:
    entries = '{key: "{part}.mass_kg", value: {expr: "mass_g / 1000"}}'
    content = "part,mass_g\nP-1,250\nP-2,n/a\nP-3,\nP-4,1e-3\nP-5,0.0000000000000000001\n"
    found = map_files(tmp_path, entries, {"a.csv": content})
    assert found.entries == [("P-1.mass_kg", "0.25", "scalar"), ("P-4.mass_kg", "0.000001", "scalar")]
    assert [(reject.position, reject.field) for reject in found.rejects] == [
        (3, "mass_g"),
        (4, "mass_g"),
        (6, "mass_g"),
    ]
    assert "'mass_g' is 'n/a'" in found.rejects[0].reason


def test_records_outside_of_where_make_no_entries_and_are_no_mistakes(tmp_path: Path) -> None:
    entries = """{key: "{part}.mass", value: "{kg}", where: "status = 'released'", let: {kg: "mass_g / 1000"}}"""
    content = "part,status,mass_g\nP-1,released,250\nP-2,draft,n/a\n,draft,1\n"
    found = map_files(tmp_path, entries, {"a.csv": content})
    assert found.entries == [("P-1.mass", "0.25", "scalar")]
    assert found.rejects == []


def test_a_mistake_in_an_expression_is_reported_at_its_position(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as raised:
        map_files(tmp_path, """key: "{part}"\nvalue: {expr: "mass + read_csv('/etc/passwd')"}""", {})
    [mistake] = raised.value.mistakes
    line = (tmp_path / "ingestd.yaml").read_text().splitlines()[mistake.line - 1]
    assert line[mistake.column - 1 :].startswith("read_csv")
    assert mistake.sentence.startswith("There is no function 'READ_CSV'.")


@pytest.mark.parametrize("rows", [1, 200])
@pytest.mark.parametrize(
    ("expression", "value", "expected"),
    [
        ("CEIL(c)", "9999999999999999999.99", None),
        ("-(CEIL(c))", "9999999999999999999.99", None),
        ("FLOOR(c)", "-9999999999999999999.01", None),
        ("ROUND(c)", "9999999999999999999.5", None),
        ("ROUND(c, 1)", "-9999999999999999999.99", None),
        ("CEIL(c)", "-9999999999999999999.99", "-9999999999999999999"),
        ("ROUND(c, 1)", "9999999999999999999.94", "9999999999999999999.9"),
    ],
)
def test_a_rounded_number_with_more_than_19_digits_is_rejected(
    tmp_path: Path, rows: int, expression: str, value: str, expected: str | None
) -> None:
    table = "a,c\n" + "".join(f"k{row},{value}\n" for row in range(rows))
    found = map_files(tmp_path, f'key: "{{a}}"\nvalue: {{expr: "{expression}"}}', {"x.csv": table})
    assert {text for _, text, _ in found.entries} == ({expected} if expected is not None else set())
    assert all("has more than 19 digits before the point" in one.reason for one in found.rejects)
    assert len(found.entries) + len(found.rejects) == rows
