"""Arguments of a push that can't be used: nothing is sent, and the sentence names the argument."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pytest

from ingestd.client.pushed_rows import InvalidPush, read_rows

ROWS = [{"part": "a", "mass": 0.5}]


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({}, "The column 'mass' has floating-point numbers, such as 0.5 in row 0"),
        ({"rows": pl.DataFrame(ROWS)}, "decimals=3 or digits=6 rounds them, number='repr'"),
        ({"rows": pd.DataFrame(ROWS)}, "The column 'mass' has floating-point numbers"),
        ({"number": "%.3f"}, "number='%.3f' is not a rule for writing"),
        ({"value": "mas"}, "There is no column 'mas'; the columns are 'part', 'mass'. Did you mean 'mass'?"),
        ({"key": "{part"}, "key='{part' is no template: '{' has no '}'"),
        ({"data_type": "{part"}, "data_type='{part' is no template: '{' has no '}'"),
        ({"data_type": "{kind}"}, "There is no column 'kind'"),
        ({"rules": {"decimls": 3}}, r"push\(\) has no argument 'decimls'. Did you mean 'decimals'"),
        ({"rules": {"decimals": 3, "digits": 2}}, "either 'digits' or 'decimals'; found both"),
        ({"rules": {"decimals": -1}}, r"'decimals' can't be used: Input should be greater than or equal to 0\.$"),
        ({"rules": {"unit": {"from": "..", "to": "kg"}}}, r"'unit.from' can't be used: There is no unit '\.\.'\.$"),
        ({"rules": {"unit": {"from": "mm", "to": "kg"}}}, r"Do both measure the same quantity\?$"),
        ({"rows": "part,mass"}, "an iterable of mappings; found str"),
        ({"rows": {"part": "a"}}, "an iterable of mappings; found dict"),
        ({"rows": 7}, "an iterable of mappings; found int"),
        ({"rows": [ROWS[0], 7]}, "Expected a mapping in row 1; found int"),
        ({"rows": pd.DataFrame([["a", 1, 2]], columns=["part", "mass", "mass"])}, "several columns 'mass'"),
    ],
)
def test_an_argument_that_cannot_be_used_is_named(changed: dict[str, Any], sentence: str) -> None:
    arguments: dict[str, Any] = {
        "rows": ROWS, "key": "part", "value": "mass", "data_type": None, "number": None, "rules": {}, **changed
    }  # fmt: skip
    with pytest.raises(InvalidPush, match=sentence):
        read_rows(arguments.pop("rows"), **arguments)


def test_no_rows_are_no_mistake() -> None:
    read = read_rows([], key="part", value="mass", data_type=None, number=None, rules={})
    assert (read.entries, read.rejected) == ((), ())


def test_a_column_with_braces_in_its_name_is_found_by_its_name() -> None:
    with pytest.raises(InvalidPush, match="is no template"):
        read_rows([{"a}b": "1"}], key="a}b", value="a}b", data_type=None, number=None, rules={})


def test_a_unit_may_be_a_column() -> None:
    rows = [{"part": "a", "mass": 250.5, "unit": "g"}, {"part": "b", "mass": 1.0, "unit": "kg"}]
    rules = {"decimals": 3, "unit": {"from": "{unit}", "to": "kg"}}
    read = read_rows(rows, key="part", value="mass", data_type=None, number=None, rules=rules)
    assert [one.value for one in read.entries] == ["0.251", "1.000"]


@pytest.mark.parametrize("kind", ["Float32", "Float64"])
def test_a_missing_number_of_pandas_is_no_value(kind: str) -> None:
    frame = pd.DataFrame({"part": ["a", "b"], "mass": pd.array([0.1, None], dtype=kind)})
    read = read_rows(frame, key="part", value="mass", data_type=None, number="repr", rules={})
    assert [(one.key, one.value) for one in read.entries] == [("a", "0.1")]
    assert [(one.key, one.reason) for one in read.rejected] == [("b", "There is no value: 'mass' is missing.")]
