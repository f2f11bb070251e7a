from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bench.__main__ import goals as goals_command
from bench.comparison import read_results
from bench.goals import GOALS, NOT_MEASURED, beside_goals

PUBLISHED = Path(__file__).parents[3] / "docs" / "figures" / "goals.json"


def results(benchmark: str, ratio: str, *values: float) -> dict[str, Any]:
    low, median, high = values
    return {benchmark: {"ratios": {ratio: {"median": median, "lowest": low, "highest": high}}}}


def row(case: str, *files: dict[str, Any]) -> list[str]:
    return next(rest for name, *rest in beside_goals(files) if name == case)


@pytest.mark.parametrize(("median", "reached"), [(2.0, "yes"), (2.01, "no")])
def test_at_most_a_value_is_reached_up_to_it(median: float, reached: str) -> None:
    found = results("ten", "pass over polars, both warm", 1.5, median, 3.0)
    assert row("10 rows of 1 M changed / polars", found) == [f"{median:.2f} (1.50-3.00)", "≤ 2", reached]


@pytest.mark.parametrize(("median", "reached"), [(0.7, "yes"), (0.69, "no")])
def test_at_least_a_value_is_reached_from_it_on(median: float, reached: str) -> None:
    found = results("service", "sqlite: bulk / bare", 0.1, median, 0.9)
    assert row("workspaced, bulk / bare", found) == [f"{median:.2f} (0.10-0.90)", "≥ 0.7", reached]


def test_a_later_file_counts_and_what_no_file_has_is_not_measured() -> None:
    early, late = (results("ten", "pass over polars, both warm", x, x, x) for x in (9.0, 1.0))
    assert row("10 rows of 1 M changed / polars", early, late)[0] == "1.00 (1.00-1.00)"
    assert row("drop to visible, p50 / floor", early, late) == [NOT_MEASURED, "≤ 4", ""]


def test_a_ratio_without_a_peer_is_not_measured() -> None:
    missing = {"single": {"ratios": {"run over syslog-ng, a request an entry": {"median": None}}}}
    assert row("one entry a request / syslog-ng", missing)[0] == NOT_MEASURED


def test_each_goal_names_one_ratio_of_the_published_results() -> None:
    """A renamed ratio would be reported as not measured for ever."""
    published = read_results(PUBLISHED)
    for goal in GOALS:
        names = [name for name in published[goal.benchmark]["ratios"] if re.fullmatch(goal.ratio, name)]
        assert len(names) == 1, goal


def test_the_command_prints_the_table_of_files(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps({"benchmarks": results("ten", "pass over polars, both warm", 1.0, 1.5, 2.0)}))
    printed = CliRunner().invoke(goals_command, [str(file)]).output
    assert re.search(r"10 rows of 1 M changed / polars +1\.50 \(1\.00-2\.00\) +≤ 2 +yes", printed)
