from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bench.__main__ import compare as compare_command
from bench.comparison import ResultsUnusable, compare, read_results
from bench.figures import Report, Rounds


def results(aim: str, *rounds: float, floor: float = 1.0) -> dict[str, Any]:
    figures = Rounds()
    for value in rounds:
        figures.add("ours", value)
        figures.add("floor", floor)
    ratios = [
        ("ours over floor", figures.ratio("ours", "floor"), aim),
        ("not measured", figures.ratio("peer", "floor"), ""),
    ]
    report = Report(name="start", title="", header=(), lines=(), ratios=ratios, notes=(), summary={"rows": 1})
    found: dict[str, Any] = json.loads(json.dumps({"start": report.results()}))
    return found


def test_results_have_the_median_the_range_and_the_aim_of_each_ratio() -> None:
    found = results("1.3 or less", 3.0, 2.0, 2.5, floor=2.0)["start"]
    assert found["ratios"]["ours over floor"] == {"median": 1.25, "lowest": 1.0, "highest": 1.5, "aim": "1.3 or less"}
    assert found["ratios"]["not measured"]["median"] is None
    assert found["rows"] == 1


@pytest.mark.parametrize(
    ("aim", "before", "after", "direction"),
    [
        ("1.3 or less", (1.0, 1.1, 1.2), (2.0, 2.1, 2.2), "slower"),
        ("1.3 or less", (2.0, 2.1, 2.2), (1.0, 1.1, 1.2), "faster"),
        ("under 1", (0.1, 0.2), (0.5, 0.6), "slower"),
        ("less than 0.05", (0.01, 0.02), (0.03, 0.04), "slower"),
        ("0.8 or more", (0.9, 1.0), (0.5, 0.6), "slower"),
        ("0.8 or more", (0.5, 0.6), (0.9, 1.0), "faster"),
        ("", (1.0, 1.1), (2.0, 2.1), "changed"),
    ],
)
def test_a_ratio_outside_the_earlier_range_differs_in_the_direction_of_its_aim(
    aim: str, before: tuple[float, ...], after: tuple[float, ...], direction: str
) -> None:
    [found] = compare(results(aim, *before), results(aim, *after))
    assert (found.direction, found.benchmark, found.ratio) == (direction, "start", "ours over floor")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((1.0, 1.2, 2.0), (1.9, 2.2, 2.5)),  # the ranges overlap
        ((1.0,), (1.08,)),  # one round each: a small difference of the medians
        ((1.0, 1.1, 1.2), (1.0, 1.1, 1.2)),
    ],
)
def test_noise_is_no_difference(before: tuple[float, ...], after: tuple[float, ...]) -> None:
    assert compare(results("1 or less", *before), results("1 or less", *after)) == []


def test_what_only_one_run_measured_is_left_out() -> None:
    assert compare(results("1 or less", 1.0), {}) == []
    other = results("1 or less", 1.0)
    del other["start"]["ratios"]["ours over floor"]
    assert compare(results("1 or less", 1.0), other) == []


def test_the_command_lists_what_became_slower_first_and_reports_it_by_its_exit_code(tmp_path: Path) -> None:
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    slow, fast = results("1 or less", 1.0, 1.1), results("1 or less", 2.0, 2.2)
    before.write_text(json.dumps({"benchmarks": {"b": slow["start"], "a": fast["start"]}}))
    after.write_text(json.dumps({"benchmarks": {"b": fast["start"], "a": slow["start"]}}))
    result = CliRunner().invoke(compare_command, [str(before), str(after)])
    assert result.exit_code == 1
    assert result.output.splitlines() == [
        "slower: b: ours over floor: 1.05 (1.00-1.10) -> 2.10 (2.00-2.20), 2.00 times",
        "faster: a: ours over floor: 2.10 (2.00-2.20) -> 1.05 (1.00-1.10), 0.50 times",
    ]
    same = CliRunner().invoke(compare_command, [str(before), str(before)])
    assert (same.exit_code, same.output) == (0, "No ratio differs by more than its spread.\n")


@pytest.mark.parametrize("content", ["{", "[]", '{"rows": 1}'])
def test_a_file_without_results_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "results.json"
    file.write_text(content)
    with pytest.raises(ResultsUnusable, match="--json FILE"):
        read_results(file)
