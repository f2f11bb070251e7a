"""The plug-in of pytest in a project of its own: the fixture, its failures, and what loading it imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.executed_page import blocks

PAGE = Path(__file__).parents[3] / "docs" / "testing-mappings.md"

pytest_plugins = ["pytester"]

CONFIGURATION = """
service: {url: "http://127.0.0.1:9", api_key: "${env:NOT_SET}"}
state: var/ingestd.db
pipelines:
  - name: mass-budget
    source: {connector: directory, path: drop, pattern: "*.csv"}
    entries:
      - {key: "{part}.mass", value: "{mass_kg}"}
      - {key: "{file.stem}.last", value: "{part}", type: text}
    sink: {workspace: w, label: a}
"""

PASSING = """
import pytest

from ingestd.core.errors import SourceBroken


@pytest.fixture
def mass_budget(mapping_case):
    return mapping_case("config/ingestd.yaml", "mass-budget")


def test_a_record(mass_budget):
    result = mass_budget({"part": "00417", "mass_kg": "0.30"}, facts={"file.stem": "b"})
    assert result.entries == {"00417.mass": "0.30", "b.last": "00417"}
    assert result.types == {"00417.mass": "scalar", "b.last": "text"}
    assert result.rejected == []


def test_several_records(mass_budget):
    result = mass_budget([{"part": None, "mass_kg": "1"}, {"part": "a", "mass_kg": "2"}], facts={"file.stem": "b"})
    assert list(result.entries) == ["a.mass", "b.last"]
    assert [row for row, _ in result.rejected] == ["1"]


def test_a_file(mass_budget):
    assert mass_budget("config/masses.csv").entries == {"00417.mass": "0.30", "masses.last": "00417"}


def test_a_file_without_the_column(mass_budget, tmp_path):
    (tmp_path / "x.csv").write_text("part\\na\\n")
    with pytest.raises(SourceBroken, match="There is no column 'mass_kg'"):
        mass_budget(tmp_path / "x.csv")


def test_a_number(mass_budget):
    with pytest.raises(TypeError, match="The field 'mass_kg' is of the type float. Write the text that the source has"):
        mass_budget({"part": "a", "mass_kg": 0.3}, facts={"file.stem": "b"})
"""

FAILING = """
def test_rounded(mapping_case):
    mass_budget = mapping_case("config/ingestd.yaml", "mass-budget")
    assert mass_budget({"part": "a", "mass_kg": "0.30"}, facts={"file.stem": "b"}).entries == {"a.mass": "0.3", "b.last": "a"}

def test_unknown(mapping_case):
    mapping_case("config/ingestd.yaml", "mass-bugdet")
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    folder = pytester.mkdir("config")
    (folder / "ingestd.yaml").write_text(CONFIGURATION)
    (folder / "masses.csv").write_text("part,mass_kg\n00417,0.30\n")
    pytester.makeini("[pytest]\n")
    return pytester


def test_the_fixture_maps_records_and_files_without_secrets_and_shows_differences(project: pytest.Pytester) -> None:
    (example,) = blocks(PAGE.read_text(encoding="utf-8"), "python")
    entries = '[{key: "{part_number}.mass", value: "{mass_kg}"}]'
    configuration = (
        CONFIGURATION.partition("    entries:")[0] + f"    entries: {entries}\n    sink: {{workspace: w, label: a}}\n"
    )
    (project.path / "ingestd.yaml").write_text(configuration)
    (project.mkdir("samples") / "mass-budget.csv").write_text("part_number,mass_kg\n00417,0.30\n,1\n")
    project.makepyfile(test_page=example, test_passing=PASSING, test_failing=FAILING)
    # A process of its own: polars can't be imported twice in one.
    result = project.runpytest_subprocess(
        "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:asyncio"
    )
    result.assert_outcomes(passed=7, failed=2)
    result.stdout.fnmatch_lines(["FAILED test_failing.py::test_rounded*", "FAILED test_failing.py::test_unknown*"])
    result.stdout.fnmatch_lines_random(
        [
            "*{'a.mass': '0.30'} != {'a.mass': '0.3'}*",
            "*Did you mean 'mass-budget'*",
        ]
    )


def test_loading_the_plug_in_imports_no_library_of_the_package() -> None:
    """Every project in the environment loads it."""
    script = "import pytest, sys; before = set(sys.modules); import ingestd.pytest_plugin; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {"ingestd", "ingestd.pytest_plugin"}
