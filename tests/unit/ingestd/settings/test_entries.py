"""The settings of an entry mapping: their values, and where a mistake is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingestd.core.errors import ConfigurationError
from ingestd.core.mapping import EntrySpec, LookupSpec, TableSource
from ingestd.core.mapping.conversion import DateRule, PadRule, UnitRule, ValueRules
from ingestd.core.mapping.specification import ColumnSelection
from tests.support.sample_connectors import GOOD, load

_PLAIN = '{key: "{part}.mass", value: "{mass}"}'


def specification(entries: str, folder: Path) -> EntrySpec:
    [spec] = load(GOOD.replace(_PLAIN, entries), folder).pipelines[0].entries
    return spec


def test_expressions_are_read(tmp_path: Path) -> None:
    entries = """{key: "{part}", value: {expr: "kg + 1"}, where: "kg > 0", let: {kg: "mass / 1000"}}"""
    assert specification(entries, tmp_path) == EntrySpec(
        key="{part}", expression="kg + 1", where="kg > 0", let=(("kg", "mass / 1000"),)
    )


def test_a_lookup_is_read(tmp_path: Path) -> None:
    entries = """{key: "{part}", value: "{w}", lookup: {w: {file: t.csv, key: k, value: v, by: "UPPER(part)", missing: none}}}"""
    table = TableSource(file="t.csv", key="k", value="v")
    assert specification(entries, tmp_path) == EntrySpec(
        key="{part}", value="{w}", lookup=(("w", LookupSpec(table=table, by="UPPER(part)", missing="none")),)
    )


def test_a_choice_of_columns_is_read(tmp_path: Path) -> None:
    entries = '{key: "{part}.{column}", columns: {all: true, except: [remark]}, types: {name: text}}'
    assert specification(entries, tmp_path) == EntrySpec(
        key="{part}.{column}",
        selection=ColumnSelection(match=("*",), excluded=("remark",)),
        types=(("name", "text"),),
    )
    assert specification('{key: "{column}", columns: {match: [a*, b]}}', tmp_path).selection == ColumnSelection(
        match=("a*", "b")
    )


def test_a_dead_band_is_read(tmp_path: Path) -> None:
    for written, read in (("0.5", "0.5"), ("'1%'", "1%"), ("0", "0")):
        entries = f'{{key: "{{n}}", value: "{{m}}", values: {{deadband: {written}}}}}'
        assert specification(entries, tmp_path) == EntrySpec(key="{n}", value="{m}", deadband=read)


def test_the_lists_of_children_are_read(tmp_path: Path) -> None:
    assert specification('{each: parts, key: "{n}", value: "{m}"}', tmp_path).each == ("parts",)
    assert specification('{each: [parts, p], key: "{n}", value: "{parent.m}"}', tmp_path).each == ("parts", "p")


@pytest.mark.parametrize(
    ("entries", "names"),
    [
        ('{key: "{part}", value: "{mass}", let: {a: "b"}, optional: [mass, b]}', ("mass", "b")),
        ('{key: "{part}.{column}", columns: {match: "m_*", except: [m_x]}, optional: ["m_*", m_x]}', ("m_*", "m_x")),
        (
            '{each: [a, b], key: "{n}", value: "{parent.parent.v}", optional: [a, b, parent.parent.v]}',
            ("a", "b", "parent.parent.v"),
        ),
        ('{key: "{file.preamble.Rig}", value: "{v}", optional: [file.preamble.Rig]}', ("file.preamble.Rig",)),
    ],
)
def test_optional_names_are_read(tmp_path: Path, entries: str, names: tuple[str, ...]) -> None:
    assert specification(entries, tmp_path).optional == names


def test_rules_for_values_are_read(tmp_path: Path) -> None:
    entries = """
      key: "{file.part.run}"
      file_name: RUN{run}.csv
      value: "{mass}"
      values:
        trim: true
        missing: ["", "-"]
        case: upper
        one_of: {A: a}
        pattern: "[a-z]"
        group: "'"
        unit: {from: "{unit}", to: kg}
        min: 0
        max: 0.1
        digits: 3
        date: {format: iso, timezone: Europe/Berlin, to: UTC}
        pad: {width: 3, with: "*", side: right}
"""
    spec = specification(entries, tmp_path)
    assert spec.file_name == "RUN{run}.csv"
    assert spec.rules == ValueRules(
        trim=True,
        missing=("", "-"),
        case="upper",
        one_of=(("A", "a"),),
        pattern="[a-z]",
        decimal=".",
        group="'",
        unit=UnitRule(source="{unit}", target="kg"),
        minimum="0",
        maximum="0.1",
        digits=3,
        date=DateRule(form="iso", timezone="Europe/Berlin", target="UTC"),
        pad=PadRule(width=3, fill="*", side="right"),
    )


@pytest.mark.parametrize(
    ("entries", "quoted", "key", "sentence"),
    [
        ("value: {expr: \"1 + read_csv('x')\"}", "read_csv", "value.expr", "There is no function 'READ_CSV'"),
        ('value: {expr: "mass / 0"}', "0", "value.expr", "divides by zero"),
        ('value: {expt: "1"}', "expt", "value.expt", "Did you mean 'expr'?"),
        ('value: v, where: "mass"', 'mass"', "where", "Expected a condition"),
        ('value: v, where: "a = 1 AND SUM(b) > 2"', "SUM", "where", "needs several records"),
        (
            'value: "{mass}", optional: [mas]',
            "mas]",
            "optional[0]",
            "Nothing here uses 'mas', so it can't be optional. Did you mean",
        ),
        ('value: v, let: {a: "b +"}', "+", "let.a", "missing or too much"),
        ('value: v, let: {units.a: "b"}', '"b"', "let.units.a", "is reserved"),
        (
            "each: parts, value: '{parent.parent.id}'",
            "'{parent.parent",
            "value",
            "{parent.parent.id} has no such parent; with this 'each' the record is {parent.name}.",
        ),
        ("each: parts, let: {a: parent.parent.id + 1}, value: v", "parent.parent", "let.a", "has no such parent"),
        ("each: [], value: v", "[]", "each", "Expected text or a list of 1 item or more"),
        ("each: '', value: v", "''", "each", "Expected text of 1 character or more or a list"),
        ("each: parts, columns: {all: true}", "{all", "columns", "With 'each' the columns are a list of names"),
        ("value: v, lookup: {w: {file: t, key: k, value: v}}", "{file", "lookup.w.by", "by"),
        ('value: v, lookup: {w: {file: t, key: k, value: v, by: "a +"}}', "+", "lookup.w.by", "missing or too much"),
        (
            'value: v, lookup: {file.w: {file: t, key: k, value: v, by: "a"}}',
            "{file: t",
            "lookup.file.w",
            "is reserved",
        ),
        (
            'value: v, lookup: {w: {file: t, key: k, value: v, by: a}}, let: {w: "b"}',
            '"b"',
            "let.w",
            "is in 'lookup', too",
        ),
        ('value: v, file_name: "RUN.csv"', '"RUN.csv"', "file_name", "Expected the form"),
        ('value: v, file_name: "{a}{b}.csv"', '"{a}{b}.csv"', "file_name", "need text between them"),
        ('value: "{file.part.b}", file_name: "{a}.csv"', '"{file.part.b}"', "value", "its parts are file.part.a"),
        ('value: {expr: "file.part.a"}', '"file.part.a"', "value.expr", "no part of 'file_name'; its parts are none"),
        ("value: v, values: {unit: {from: g, to: m}}", "m}", "values.unit.to", "'g' can't be converted to 'm'"),
        ("value: v, values: {unit: {from: gg, to: g}}", "gg", "values.unit.from", "There is no unit 'gg'"),
        ("value: v, values: {unit: {from: g, to: kgs}}", "kgs", "values.unit.to", "There is no unit 'kgs'"),
        ("value: v, values: {unit: {from: '{u}', to: kgs}}", "kgs", "values.unit.to", "There is no unit 'kgs'"),
        ("value: v, values: {digits: 1, decimals: 1}", "1}", "values.decimals", "either 'digits' or 'decimals'"),
        ('value: v, values: {group: "."}', "{group", "values", "are the same character"),
        ('value: v, values: {pattern: "("}', '"("', "values.pattern", "can't be used"),
        (
            "value: v, values: {deadband: -1}",
            "-1",
            "values.deadband",
            "'-1' is no dead-band. Expected a number of 0 or more",
        ),
        ('value: v, values: {deadband: "1 %"}', '"1 %"', "values.deadband", "'1 %' is no dead-band"),
        ('value: v, values: {min: "x"}', '"x"', "values.min", "'x' is no number"),
        (
            "value: v, values: {date: {format: '%%Z %H:%M %Z'}}",
            "'%%Z",
            "values.date.format",
            "write it instead of '%Z', as in '%H:%M UTC', and set 'timezone'",
        ),
        ("value: v, values: {date: {format: iso, timezone: Mars}}", "Mars", "values.date.timezone", "Mars"),
        ('value: v, values: {pad: {width: 3, with: "\\0"}}', '\\0"', "values.pad.with", "U+0000"),
        ("columns: {all: true, match: x}", "{all", "columns", "either 'all: true' or 'match'"),
        ("columns: {except: [x]}", "{except", "columns", "either 'all: true' or 'match'"),
    ],
)
def test_a_mistake_is_reported_where_it_is(tmp_path: Path, entries: str, quoted: str, key: str, sentence: str) -> None:
    text = GOOD.replace(_PLAIN, f'{{key: "{{part}}.{{column}}", {entries}}}')
    with pytest.raises(ConfigurationError) as raised:
        load(text, tmp_path)
    mistake = raised.value.mistakes[-1]
    assert sentence in mistake.sentence
    assert mistake.key == f"pipelines[0].entries.{key}"
    assert text.splitlines()[mistake.line - 1][mistake.column - 1 :].startswith(quoted)
