"""Each rule of the mapping; `tests/property` compares it with a mapping record by record."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Sequence

import polars as pl
import pytest

from ingestd.core.mapping import EntrySpec, LookupSpec, Mapped, Mapping, TableSource
from ingestd.core.mapping.specification import ColumnSelection
from ingestd.core.mapping.typed import ExpressionError
from ingestd.core.record import Reject

FACTS = {"file.name": "run 7.csv", "file.stem": "run 7"}
MASS = EntrySpec(key="{part}.mass", value="{mass}")


def frame(**columns: Sequence[str | None]) -> pl.DataFrame:
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))


def apply(*specs: EntrySpec, **columns: Sequence[str | None]) -> Mapped:
    rule = Mapping(specs)
    records = frame(**columns)
    positions = pl.Series("position", range(2, records.height + 2), dtype=pl.Int64)
    return rule.apply(records, positions, rule.row_hashes(records, FACTS), FACTS)


def entries(mapped: Mapped) -> list[tuple[str, str, str]]:
    return mapped.entries.select("key", "value", "data_type").rows()


def rejects(mapped: Mapped) -> list[Reject]:
    return [reject for reject, _ in mapped.rejects]


@pytest.mark.parametrize("value", ["0.10", "1e-7", "00417", " 1 ", "", "9" * 40, "ß\u2028\n\t\"'\\{}", "NaN", "null"])
def test_a_value_is_the_text_of_the_record(value: str) -> None:
    assert entries(apply(MASS, part=["P-1"], mass=[value])) == [("P-1.mass", value, "scalar")]


def test_a_missing_value_makes_no_entry_and_is_no_mistake() -> None:
    mapped = apply(MASS, part=["P-1", "P-2"], mass=[None, "1"])
    assert entries(mapped) == [("P-2.mass", "1", "scalar")]
    assert rejects(mapped) == []


def test_a_column_that_the_batch_lacks_is_missing_in_every_record() -> None:
    assert entries(apply(MASS, part=["P-1"])) == []
    (reject,) = rejects(apply(MASS, mass=["1"]))
    assert (reject.field, reject.position) == ("part", 2)


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        (None, "The record has no 'part', which the key '{part}.mass' needs."),
        ("", "'part' is empty; the key '{part}.mass' needs it."),
    ],
)
def test_a_record_without_a_field_of_its_key_is_rejected(part: str | None, sentence: str) -> None:
    (reject,) = rejects(apply(MASS, part=[part], mass=["1"]))
    assert (reject.reason, reject.field) == (sentence, "part")
    assert reject.record == {"part": part, "mass": "1"}


def test_a_record_without_a_field_of_its_type_is_rejected() -> None:
    spec = EntrySpec(key="{part}", value="{mass}", type="{kind}")
    mapped = apply(spec, part=["P-1", "P-2"], mass=["1", "2"], kind=["text", None])
    assert entries(mapped) == [("P-1", "1", "text")]
    assert [(reject.field, reject.position) for reject in rejects(mapped)] == [("kind", 3)]


@pytest.mark.parametrize("place", ["part", "mass", "kind"])
def test_a_record_with_the_nul_character_is_rejected(place: str) -> None:
    record = {"part": ["P"], "mass": ["1"], "kind": ["text"], place: ["a\0b"]}
    mapped = apply(EntrySpec(key="{part}", value="{mass}", type="{kind}"), **record)
    assert entries(mapped) == []
    assert "U+0000" in rejects(mapped)[0].reason


def test_a_record_is_accepted_or_rejected_as_a_whole() -> None:
    mapped = apply(
        MASS, EntrySpec(key="{name}.mass", value="{mass}"), part=["P-1", "P-2"], name=["a", None], mass=["1", "2"]
    )
    assert entries(mapped) == [("P-1.mass", "1", "scalar"), ("a.mass", "1", "scalar")]
    assert [reject.position for reject in rejects(mapped)] == [3]


def test_one_entry_for_each_column_is_named_after_the_column() -> None:
    spec = EntrySpec(key="{part}.{column}", columns=("mass", "length"), type="text")
    mapped = apply(spec, part=["P-1", "P-2"], mass=["1", None], length=["2", "3"])
    assert entries(mapped) == [("P-1.mass", "1", "text"), ("P-1.length", "2", "text"), ("P-2.length", "3", "text")]


def test_facts_of_the_batch_can_be_used_in_keys_values_and_types() -> None:
    spec = EntrySpec(key="{file.stem}/{part}", value="{file.name}: {mass}")
    assert entries(apply(spec, part=["P-1"], mass=["1"])) == [("run 7/P-1", "run 7.csv: 1", "scalar")]


def test_braces_in_a_record_are_text() -> None:
    assert entries(apply(MASS, part=["{mass}"], mass=["{{}}"])) == [("{mass}.mass", "{{}}", "scalar")]


@pytest.mark.parametrize("name", ["*", "^p.*$", "^", "$", "mass kg", "ä", "\\d", "^(mass$"])
def test_a_column_may_have_any_name(name: str) -> None:
    mapped = apply(EntrySpec(key="{part}", value=f"{{{name}}}"), **{"part": ["P-1"], "price": ["9"], name: ["1"]})
    assert entries(mapped) == [("P-1", "1", "scalar")]
    rule = Mapping([EntrySpec(key="{part}", value=f"{{{name}}}")])
    one, other = rule.row_hashes(frame(**{"part": ["P"] * 2, "price": ["1", "2"], name: ["1", "1"]}), FACTS)
    assert one == other, "a column that the mapping does not use changes nothing"


def test_a_mapping_of_literals_makes_an_entry_of_every_record() -> None:
    mapped = apply(EntrySpec(key="k", value="v"), part=["P-1", "P-2"])
    assert entries(mapped) == [("k", "v", "scalar")] * 2
    assert mapped.entries["row_hash"].n_unique() == 1


def test_an_empty_batch_makes_an_empty_frame_with_the_right_columns() -> None:
    mapped = apply(MASS, part=[], mass=[])
    assert mapped.entries.schema == {
        "key": pl.String, "value": pl.String, "data_type": pl.String, "row_hash": pl.UInt64, "position": pl.Int64,
    }  # fmt: skip


def test_only_mapped_columns_change_the_hash_of_a_record() -> None:
    rule = Mapping([MASS])
    first = rule.row_hashes(frame(part=["a", "a", "b"], mass=["1", None, "1"], note=["x", "y", "z"]), FACTS)
    second = rule.row_hashes(frame(part=["a", "a", "b"], mass=["1", "", "1"], note=["-", "-", "-"]), FACTS)
    assert [old == new for old, new in zip(first, second, strict=True)] == [True, False, True]


def test_a_mapped_fact_changes_the_hash_of_every_record() -> None:
    rule = Mapping([EntrySpec(key="{file.stem}.{part}", value="{mass}")])
    records = frame(part=["a"], mass=["1"])
    assert rule.facts == ("file.stem",)
    assert rule.row_hashes(records, FACTS)[0] != rule.row_hashes(records, FACTS | {"file.stem": "run 8"})[0]
    assert rule.row_hashes(records, FACTS)[0] == rule.row_hashes(records, FACTS | {"file.name": "x"})[0]


def test_different_mappings_have_different_digests() -> None:
    digests = {
        Mapping(specs).digest
        for specs in (
            [MASS],
            [EntrySpec(key="{part}", value="{mass}")],
            [MASS, MASS],
            [EntrySpec(key="{part}.mass", value="{mass}", type="text")],
        )
    }
    assert len(digests) == 4
    assert Mapping([MASS]).digest == Mapping([MASS]).digest


def test_the_columns_of_an_entry_are_those_of_the_templates_that_match_its_key() -> None:
    mapping = Mapping(
        [
            EntrySpec(key="{part}.mass", value="{mass_kg}", type="{kind}"),
            EntrySpec(key="{part}/{column}", columns=("length", "width")),
            EntrySpec(key="{part}.note", value="{first} {second} {file.name}"),
            EntrySpec(key="{any}.note", value="{other}"),
        ]
    )
    assert mapping.columns_of("00417.mass") == ("mass_kg",)
    assert mapping.columns_of("00417.mass", "key") == ("part",)
    assert mapping.columns_of("00417.mass", "dataType") == ("kind",)
    assert mapping.columns_of("a/b/width") == ("width",)
    assert mapping.columns_of("x\n.note") == ("first", "second", "other")
    assert mapping.columns_of("nothing of this") == ()
    assert mapping.columns_of(".mass") == ()


def test_a_named_expression_that_nothing_uses_does_not_fail_the_reading() -> None:
    table = TableSource(file="types.csv", key="code", value="name")
    lookup = (("kind", LookupSpec(table=table, by="code")),)
    mapping = Mapping([EntrySpec(key="{part}", value="{mass}", lookup=lookup, let=(("net", "gross - 1"),))])
    assert mapping.fields == ("part", "mass", "code", "gross")
    records = pl.DataFrame({"part": ["A"], "mass": ["1"], "code": ["M8"], "gross": ["2"]})
    number = pl.Series([2], dtype=pl.Int64)
    assert mapping.apply(records, number, mapping.row_hashes(records, {}), {}).entries["value"].to_list() == ["1"]


def test_the_columns_of_an_expression_are_those_of_the_entry() -> None:
    rule = Mapping(
        [
            EntrySpec(
                key="{part}.{kind}",
                let=(("kg", "mass_g / 1000"), ("kind", "UPPER(class)")),
                value="{kg}",
                where="state = 'ok'",
            )
        ]
    )
    assert rule.columns_of("P-1.A") == ("mass_g",)
    assert rule.columns_of("P-1.A", "key") == ("part", "class")
    assert set(rule.fields) == {"part", "class", "mass_g", "state"}


@pytest.mark.parametrize("key", ["P-1.mass", "P.1.mass"])
def test_the_column_of_a_chosen_column_is_read_from_the_key(key: str) -> None:
    rule = Mapping([EntrySpec(key="{part}.{column}", selection=ColumnSelection(match=("m*",), excluded=("m_old",)))])
    assert "mass" in rule.columns_of(key)
    assert rule.columns_of("P-1.m_old") == ()
    assert rule.columns_of("P-1.mass", "key") == ("part",)


def test_a_column_without_a_value_does_not_change_the_hash_of_a_mapping_that_chooses_columns() -> None:
    rule = Mapping([EntrySpec(key="{part}.{column}", selection=ColumnSelection(match=("*",)))])
    without, empty, other = (
        rule.row_hashes(records, {}).item()
        for records in (
            frame(part=["P"], mass=["1"]),
            frame(part=["P"], length=[None], mass=["1"]),
            frame(part=["P"], length=["1"], mass=[None]),
        )
    )
    assert without == empty != other


def test_the_digest_of_a_plain_mapping_is_that_of_the_version_before_expressions() -> None:
    specs = [{"key": "{part}.mass", "value": "{mass}", "columns": [], "type": "scalar"}]
    text = json.dumps([specs, pl.__version__], sort_keys=True)
    assert Mapping([MASS]).digest == hashlib.sha256(text.encode()).hexdigest()
    assert Mapping([EntrySpec(key="{part}.mass", value="{mass}", where="mass > 1")]).digest != Mapping([MASS]).digest


def test_a_plain_configuration_does_not_import_the_parser_of_expressions() -> None:
    code = "import sys, ingestd.settings, ingestd.core.mapping; sys.exit(bool({'sqlglot', 'pint'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_entries_of_two_rules_are_in_the_order_of_their_records() -> None:
    """Of equal keys the last entry is valid: that of the last record."""
    mass, length = (EntrySpec(key="{part}", value=value) for value in ("{mass}", "{length}"))
    mapped = apply(mass, length, part=["A", "A"], mass=["1", "2"], length=["10", "20"])
    assert [value for _, value, _ in entries(mapped)] == ["1", "10", "2", "20"]


def test_between_includes_both_ends() -> None:
    spec = EntrySpec(key="{part}", value="{mass}", where="mass BETWEEN 2 AND 3")
    mapped = apply(spec, part=["A", "B", "C", "D"], mass=["1.99", "2.0", "3", "3.1"])
    assert [(key, value) for key, value, _ in entries(mapped)] == [("B", "2.0"), ("C", "3")]


def test_a_cast_to_a_decimal_rejects_what_would_lose_digits() -> None:
    spec = EntrySpec(key="{part}", expression="CAST(mass AS DECIMAL(4, 1))")
    mapped = apply(spec, part=["A", "B", "C"], mass=["999.9", "999.94", "1000"])
    assert [(key, value) for key, value, _ in entries(mapped)] == [("A", "999.9")]
    assert ["would lose digits" in reject.reason for reject in rejects(mapped)] == [True, True]


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("SELECT mass FROM parts", "has no SELECT"),
        ("(SELECT 1)", "has no SELECT"),
        ("mass IN (SELECT 1)", "has no SELECT"),
        ("EXISTS (SELECT 1)", "has no SELECT"),
        ("SUM(mass)", "needs several records"),
        ("COUNT(*)", "needs several records"),
        ("MAX(mass)", "needs several records"),
        ("ROW_NUMBER() OVER ()", "needs several records"),
        ("SUM(mass) OVER (PARTITION BY part)", "needs several records"),
        ("read_csv('/etc/passwd')", "no function 'READ_CSV'"),
        ("READ_PARQUET('x')", "no function 'READ_PARQUET'"),
        ("NOW()", "no function"),
        ("CURRENT_TIMESTAMP", "no function"),
        ("current_date", "no function"),
        ("RANDOM()", "no function"),
        ("UUID()", "no function"),
        ("mass; DROP TABLE x", "mistake"),
        ("DROP TABLE x", "mistake"),
        ("CAST(mass AS DOUBLE)", "only TEXT, DECIMAL"),
        ("CAST(mass AS STRUCT<a INT>)", "only TEXT, DECIMAL"),
        ("mass[1]", "not permitted"),
        ("mass -> 'a'", "no function"),
        ("*", "not permitted"),
        ("?", "not permitted"),
        ("@mass", "not permitted"),
        ("mass AS kg", "mistake"),
        ("mass < length", "may be text or numbers"),
        ("'abc", "not closed"),
        ("mass +", "missing or too much"),
        ("", "empty"),
        ("(" * 3000 + "1" + ")" * 900, "mistake"),
        ("1" + " + 1" * 990, "too deep"),
        ("mass / 0", "divides by zero"),
        ("UPPER(mass, part)", "mistake"),
    ],
)
def test_what_is_no_expression_over_one_record_is_refused(expression: str, sentence: str) -> None:
    with pytest.raises(ExpressionError) as raised:
        Mapping([EntrySpec(key="k", expression=expression)])
    assert sentence == "mistake" or sentence in str(raised.value)
    assert raised.value.position is None or 0 <= raised.value.position <= len(expression)


def test_a_record_of_five_thousand_chosen_columns_is_mapped() -> None:
    """A chain of as many operators takes polars longer than the time limit of a test."""
    spec = EntrySpec(key="{part}.{column}", selection=ColumnSelection(match=("*",)))
    values = {f"c{number}": [str(number)] for number in range(5_000)}
    mapped = apply(spec, part=["P"], **values)
    assert entries(mapped) == [(f"P.{column}", value, "scalar") for column, (value,) in values.items()]
