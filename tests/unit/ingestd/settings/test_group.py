"""The setting ``group`` of a pipeline: its values, and where a mistake is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingestd.core.errors import ConfigurationError
from ingestd.core.groups import AggregateSpec, GroupSpec
from tests.support.sample_connectors import GOOD, load

_ENTRIES = '    entries: {key: "{part}.mass", value: "{mass}"}\n'


def configured(group: str, entries: str = '{key: "{part}.mass", value: "{mass}"}') -> str:
    return GOOD.replace(_ENTRIES, f"    group:\n      {group}\n    entries: {entries}\n")


def test_optional_fields_of_a_group_are_read(tmp_path: Path) -> None:
    text = configured("{by: [part], where: \"state <> 'x'\", take: {mass: {sum: kg}}, optional: [kg, state]}")
    group = load(text, tmp_path).pipelines[0].group
    assert group is not None
    assert group.optional == ("kg", "state")


def test_a_group_is_read(tmp_path: Path) -> None:
    text = configured(
        """{by: [part], where: "day > '2026'", let: {day: "LEFT(at, 10)"}, take: {
        mass: {mean: kg, decimals: 3}, n: count, values: {count: kg}, latest: {last: kg, order: at, as: instant},
        low: {min: kg}}}"""
    )
    assert load(text, tmp_path).pipelines[0].group == GroupSpec(
        by=("part",),
        where="day > '2026'",
        let=(("day", "LEFT(at, 10)"),),
        take=(
            ("mass", AggregateSpec(function="mean", field="kg", decimals=3)),
            ("n", AggregateSpec(function="count", field=None)),
            ("values", AggregateSpec(function="count", field="kg")),
            ("latest", AggregateSpec(function="last", field="kg", order="at", compared="instant")),
            ("low", AggregateSpec(function="min", field="kg")),
        ),
    )


@pytest.mark.parametrize(
    ("group", "key", "sentence"),
    [
        ("{by: [part], take: {mass: {sum: kg}}, optional: [kgs]}", "optional[0]", "Nothing here uses 'kgs'"),
        ("{by: [], take: {mass: count}}", "by", "Expected a list of 1 item or more"),
        ("{by: [part, part], take: {mass: count}}", "by", "The field 'part' is listed twice."),
        ("{by: [part], take: {part: count}}", "take.part", "The name 'part' is in 'by', too."),
        ("{by: [part], take: {units.a: count}}", "take.units.a", "or is reserved"),
        ("{by: [part], take: {mass: all}}", "take.mass", "found 'all'"),
        (
            "{by: [part], take: {mass: {}}}",
            "take.mass",
            "Expected one of first, last, min, max, mean, sum, count; found none.",
        ),
        ("{by: [part], take: {mass: {min: a, max: b}}}", "take.mass", "found min and max."),
        ("{by: [part], take: {mass: {sum: a, order: b}}}", "take.mass", "'order' belongs to first and last"),
        ("{by: [part], take: {mass: {last: a, as: date}}}", "take.mass", "'last' without 'order' compares none"),
        ("{by: [part], take: {mass: {sum: a, decimals: 2}}}", "take.mass", "'sum' is never rounded"),
        ("{by: [part], take: {mass: {last: a, order: b, as: time}}}", "take.mass.as", "'time'"),
        ('{by: [part], let: {x: "SUM(a)"}, take: {mass: count}}', "let.x", "needs several records"),
        ('{by: [part], where: "file.part.run = 1", take: {mass: count}}', "where", "only entries can use"),
        ("[part]", "", "Expected a mapping with 'by' and 'take', found a list."),
    ],
)
def test_a_mistake_names_its_setting(tmp_path: Path, group: str, key: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        load(configured(group), tmp_path)
    mistake = raised.value.mistakes[-1]
    assert sentence in mistake.sentence
    assert mistake.key == f"pipelines[0].group.{key}".rstrip(".")


@pytest.mark.parametrize(
    ("entries", "sentence"),
    [
        (
            '{key: "{part}.{run}", value: "{kg}"}',
            "The entries use 'kg', but with 'group' a record has only: part, run, mass.",
        ),
        ('{key: "{part}", value: {expr: "kg + 1"}}', "The entries use 'kg'"),
        (
            '{key: "{part}", value: "{mass}"}',
            "The key '{part}' lacks {run}, so several groups would have the same key.",
        ),
    ],
)
def test_entries_must_fit_the_groups(tmp_path: Path, entries: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        load(configured("{by: [part, run], take: {mass: {sum: kg}}}", entries), tmp_path)
    assert sentence in str(raised.value)


@pytest.mark.parametrize(
    "entries",
    [
        '{key: "{part}", value: "{mass}", where: "run = 1"}',
        '{key: "{both}", value: "{mass}", let: {both: "part || run"}}',
        '{key: "{part}.{run}.{column}", columns: [mass]}',
    ],
)
def test_a_key_of_a_selected_or_computed_group_is_permitted(tmp_path: Path, entries: str) -> None:
    assert load(configured("{by: [part, run], take: {mass: {sum: kg}}}", entries), tmp_path).pipelines[0].group
