"""Cases of `ingestd test`: differences, and the rules that they cover."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ingestd.commands.mapping_test.case_file import read_cases
from ingestd.commands.mapping_test.case_run import CaseResult, rules_of, run_case
from ingestd.core.errors import ConfigurationError
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.core.record import Batch

SPECS = (EntrySpec(key="{part}.mass", value="{mass}"), EntrySpec(key="{part}.{column}", columns=("length", "width")))


def no_sample(path: Path) -> Iterator[Batch]:
    raise AssertionError(path)


def run(folder: Path, case: str) -> CaseResult:
    file = folder / "tests.yaml"
    file.write_text(f"cases:\n  - {case}\n")
    (read,) = read_cases(file, pipelines=["bench"])
    return run_case(read, mapping=Mapping(SPECS), rules=rules_of(SPECS), sample=no_sample)


def test_of_equal_keys_the_last_value_is_compared(tmp_path: Path) -> None:
    result = run(tmp_path, "{rows: [{part: a, mass: 1}, {part: a, mass: 2}], entries: [{key: a.mass, value: 2}]}")
    assert result.differences == ()
    assert result.covered == {0}


def test_each_column_of_a_rule_is_covered_by_its_own_entries(tmp_path: Path) -> None:
    result = run(tmp_path, "{rows: [{part: a, width: 2}], entries: [{key: a.width}]}")
    assert result.differences == ()
    assert result.covered == {2}


def test_an_entry_that_is_made_but_not_expected_covers_nothing(tmp_path: Path) -> None:
    result = run(tmp_path, "{rows: [{part: a, mass: 1}], partial: true, entries: []}")
    assert (result.differences, result.covered) == ((), frozenset())


def test_an_expected_rejection_matches_one_rejection_only(tmp_path: Path) -> None:
    result = run(tmp_path, "{rows: [{mass: 1}, {mass: 2}], rejected: [{reason: part}]}")
    assert [line for line, _ in result.differences] == [2]
    assert "row 2 was rejected" in result.differences[0][1]


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        ("{entries: []}", "either 'rows' or 'sample'"),
        ("{rows: []}", "expects nothing"),
        ("{rows: [], entries: {}}", "Expected a list"),
        ("{rows: [{part: [1]}], entries: []}", "Expected a text, found a list"),
        ("{rows: [], entries: [], partial: 1}", "Expected true or false"),
        ("{rows: [], entries: [], pipeline: benhc}", "Did you mean 'bench'?"),
    ],
)
def test_a_mistake_has_a_sentence_and_a_line(tmp_path: Path, case: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        run(tmp_path, case)
    (mistake,) = refused.value.mistakes
    assert mistake.line == 2
    assert sentence in mistake.sentence
