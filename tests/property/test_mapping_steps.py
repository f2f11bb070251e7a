"""The steps of a trace end at the entry that the mapping makes of the record, whatever the mapping is."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestd.core.mapping import EntrySpec, LookupSpec, Mapping, MappingStep, TableSource
from ingestd.core.mapping.conversion import PadRule, UnitRule, ValueRefused, ValueRules
from ingestd.core.mapping.steps import value_steps

TYPES = TableSource(file="types.csv", key="code", value="name")
TABLES = {TYPES: {"M8": "bolt", "W": "washer"}}
FACTS = {"file.name": "RUN07_north.csv", "file.stem": "RUN07_north"}
texts = st.none() | st.sampled_from(["", " ", "7", "1250", "1.250,5", "-0,30", "1e3", "n/a", "x", "M8", "W", "kg"])
rules = st.builds(
    ValueRules,
    trim=st.booleans(),
    missing=st.sampled_from([(), ("n/a",), ("", "x")]),
    case=st.sampled_from([None, "upper", "lower"]),
    pattern=st.sampled_from([None, ".*[0-9].*"]),
    decimal=st.sampled_from([None, ".", ","]),
    group=st.sampled_from(["", "."]),
    unit=st.sampled_from([None, UnitRule(source="kg", target="g"), UnitRule(source="kg", target="lb")]),
    minimum=st.sampled_from([None, "0"]),
    digits=st.sampled_from([None, 1, 3]),
    pad=st.sampled_from([None, PadRule(width=6)]),
)
specs = st.builds(
    EntrySpec,
    key=st.sampled_from(["{part}.mass", "{file.part.run}.{part}", "{file.stem}.{kind}", "{part}{net}"]),
    expression=st.sampled_from(["mass", "net", "net * 2", "CONCAT(kind, ' ', mass)"]),
    lookup=st.just((("kind", LookupSpec(table=TYPES, by="code")),)),
    let=st.just((("net", "REPLACE(mass, ',', '.')"),)),
    where=st.sampled_from([None, "part <> ''", "net > 1", "code = 'M8'"]),
    file_name=st.just("RUN{run}_{bench}.csv"),
    rules=rules,
)
records = st.fixed_dictionaries({"part": texts, "mass": texts, "code": st.sampled_from(["M8", "W", "Q", None])})


@given(rule=rules, text=texts.filter(lambda text: text is not None))
def test_the_last_step_of_a_value_is_its_conversion(rule: ValueRules, text: str) -> None:
    steps = list(value_steps(rule, text, "kg"))
    try:
        expected = rule.convert(text, "kg")
    except ValueRefused:
        expected = None
    assert (steps[-1].result if steps else text) == expected
    assert all(step.result is not None for step in steps[:-1])
    named = [name for step in steps for name in step.name.split(", ")]
    assert len(named) == len(set(named))


@given(spec=specs, record=records)
def test_the_steps_of_a_record_end_at_its_entry(spec: EntrySpec, record: dict[str, str | None]) -> None:
    mapping = Mapping([spec], TABLES)
    frame = pl.DataFrame([record], schema=dict.fromkeys(record, pl.String))
    number = pl.Series([0], dtype=pl.Int64)
    mapped = mapping.apply(frame, number, number, FACTS)
    assert mapping.steps(frame, FACTS, "no such key") is None
    for key, value, data_type in mapped.entries.select("key", "value", "data_type").iter_rows():
        made = mapping.steps(frame, FACTS, key)
        assert made is not None
        assert (made.value, made.data_type, made.refusal) == (value, data_type, "")
        assert made.steps[-1] == MappingStep(name="key", text=spec.key, result=key)
        results = {step.name: step.result for step in made.steps}
        assert results.get("where", "true") == "true"
        assert made.steps[-2].result == value
        assert all(made.record[name] == record[name] for name in made.record)


def test_a_rule_that_needs_a_later_one_is_a_step_with_it() -> None:
    rule = ValueRules(trim=True, unit=UnitRule(source="kg", target="lb"), digits=4, pad=PadRule(width=9))
    assert [(step.name, step.text, step.result) for step in value_steps(rule, " 2.5 ", "kg")] == [
        ("trim", "", "2.5"),
        ("unit, digits", "kg to lb, 4", "5.512"),
        ("pad", "9 with '0'", "00005.512"),
    ]


@pytest.mark.parametrize(("mass", "last"), [("x", "let"), ("0", "where")])
def test_a_record_without_an_entry_has_the_steps_that_end_it(mass: str, last: str) -> None:
    mapping = Mapping([EntrySpec(key="{part}", expression="net * 2", let=(("net", "mass + 0"),), where="net > 1")])
    frame = pl.DataFrame({"part": ["A"], "mass": [mass]})
    made = mapping.steps(frame, {}, "A")
    assert made is not None
    assert made.value is None
    assert bool(made.refusal) == (mass == "x")
    results = {step.name: step.result for step in made.steps}
    assert results[last] in {None, "false"}


def test_of_two_templates_with_one_key_the_last_one_gives_the_value() -> None:
    mapping = Mapping([EntrySpec(key="{part}", value="{a}"), EntrySpec(key="{part}", value="{b}")])
    made = mapping.steps(pl.DataFrame({"part": ["A"], "a": ["1"], "b": ["2"]}), {}, "A")
    assert made is not None
    assert (made.value, made.steps[0].text, dict(made.record)) == ("2", "{b}", {"part": "A", "b": "2"})


def test_a_column_that_was_chosen_by_its_name_is_shown() -> None:
    spec = EntrySpec(key="{part}.{column} [{units.{column}}]", columns=("mass", "length"))
    frame = pl.DataFrame({"part": ["A"], "mass": ["1"], "length": ["2"]})
    made = Mapping([spec]).steps(frame, {"units.mass": "kg", "units.length": "mm"}, "A.length [mm]")
    assert made is not None
    assert [(step.name, step.text, step.result) for step in made.steps] == [
        ("value", "{length}", "2"),
        ("key", "{part}.{column} [{units.{column}}]", "A.length [mm]"),
    ]
    assert made.record["units.length"] == "mm"
