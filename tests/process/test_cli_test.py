"""`ingestd test`: cases through the real mapping, without state file, service and secrets."""

from __future__ import annotations

from pathlib import Path

from tests.support.daemon_process import here
from tests.support.golden_texts import check_command_output

CONFIGURATION = """
service: {url: "http://127.0.0.1:9", api_key: "${env:NOT_SET}"}
state: var/ingestd.db
pipelines:
  - name: mass-budget
    source: {connector: directory, path: drop, pattern: "*.csv"}
    entries:
      - {key: "{part}.mass", value: "{mass_kg}"}
      - {key: "{part}.{column}", columns: [length_mm, width_mm], type: text}
      - {key: "{file.stem}.rows", value: "{part}"}
    sink: {workspace: w, label: a}
  - name: pdm
    source: {connector: database, url: "${env:NOT_SET_EITHER}", query: "SELECT 1", mode: snapshot}
    entries: {key: "{number}", value: "{name}"}
    sink: {workspace: w, label: b}
    schedule: {every: 1h}
"""

PASSING = """
pipeline: mass-budget
cases:
  - name: exact digits
    rows: [{part: 00417, mass_kg: 0.30, length_mm: 12}]
    facts: {file.stem: budget}
    entries:
      - {key: 00417.mass, value: 0.30, type: scalar}
      - {key: 00417.length_mm, value: 12, type: text}
      - {key: budget.rows, value: 00417}
  - name: a record without a part
    rows: [{part: ~, mass_kg: 1}]
    facts: {file.stem: budget}
    rejected: [{row: 1, reason: no 'part'}]
  - name: a header without the column
    columns: [part]
    rows: [{part: a}]
    facts: {file.stem: budget}
    broken: There is no column 'mass_kg'
  - name: a delivered file
    sample: sample.csv
    partial: true
    entries: [{key: sample.rows, value: b}]
    rejected: [{row: 3}]
  - pipeline: pdm
    rows: [{number: "1", name: Bolt}]
    entries: [{key: "1", value: Bolt}]
"""

FAILING = """
cases:
  - name: rounded
    pipeline: mass-budget
    rows: [{part: a, mass_kg: 0.30}]
    facts: {file.stem: budget}
    entries:
      - {key: a.mass, value: 0.3}
      - {key: a.width_mm}
    rejected: [{reason: empty}]
  - name: a sample of a database
    pipeline: pdm
    sample: sample.csv
    entries: [{key: "1", value: Bolt}]
"""


def prepared(folder: Path, cases: str) -> Path:
    (folder / "sample.csv").write_text("part,mass_kg,length_mm,width_mm\na,1,2,3\n,1,2,3\nb,4,5,6\n")
    (folder / "tests.yaml").write_text(cases)
    config = folder / "ingestd.yaml"
    config.write_text(CONFIGURATION)
    return config


def test_cases_pass_without_secrets_and_untested_columns_are_listed(tmp_path: Path) -> None:
    prepared(tmp_path, PASSING)
    run = here(tmp_path, "test")
    assert (run.returncode, run.stderr) == (0, "")
    check_command_output("test-passed", run.stdout)
    assert not (tmp_path / "var").exists()


def test_a_difference_is_1_with_file_and_line(tmp_path: Path) -> None:
    prepared(tmp_path, FAILING)
    run = here(tmp_path, "test")
    assert (run.returncode, run.stderr) == (1, "")
    check_command_output("test-failed", run.stdout.replace(str(tmp_path), "FOLDER"))
    only = here(tmp_path, "test", "--pipeline", "pdm", str(tmp_path / "tests.yaml"))
    assert only.returncode == 1
    assert "mass-budget" not in only.stdout


def test_a_mistake_in_the_file_is_78_with_its_location(tmp_path: Path) -> None:
    prepared(tmp_path, "cases:\n  - pipelin: pdm\n    rows: []\n")
    run = here(tmp_path, "test")
    assert run.returncode == 78
    assert run.stderr.startswith(f"{tmp_path}/tests.yaml:2:5")
    assert "Did you mean 'pipeline'?" in run.stderr
    (tmp_path / "tests.yaml").unlink()
    assert here(tmp_path, "test").returncode == 78
