"""A pipeline with a group stage with real processes: sync, trace, rejections, test cases and mistakes."""

from __future__ import annotations

from pathlib import Path

from tests.support.daemon_process import here
from tests.support.document_server import DocumentServer

_CONFIGURATION = """
service: {url: "URL", api_key: test-key, client_id: test}
state: ingestd.db
pipelines:
  - name: bench
    source: {connector: directory, path: drop, settle_seconds: 0}
    sink: {workspace: Bench, label: Means}
    group:
      by: [part]
      where: "status = 'ok'"
      take:
        mass: {mean: mass_kg}
        samples: count
        latest: {last: mass_kg, order: measured_at, as: instant}
    entries:
      - {key: "{part}.mass", value: "{mass}"}
      - {key: "{part}.samples", value: {expr: "samples * 2"}}
      - {key: "{part}.latest", value: "{latest}"}
"""
_ROWS = """part,measured_at,mass_kg,status
00417,2026-11-07T12:00:00+01:00,0.10,ok
00418,2026-11-07T10:00:00Z,2.5,ok
00417,2026-11-07T11:30:00Z,0.30,ok
00417,2026-11-07T11:45:00Z,9,failed
"""
_CASES = """
pipeline: bench
cases:
  - name: the mean of two samples
    rows:
      - {part: 00417, mass_kg: 0.1, measured_at: 2026-11-07T10:00:00Z, status: ok}
      - {part: 00417, mass_kg: 0.30, measured_at: 2026-11-07T09:00:00Z, status: ok}
      - {part: 00417, mass_kg: 9, measured_at: 2026-11-07T11:00:00Z, status: failed}
    entries:
      - {key: 00417.mass, value: 0.2}
      - {key: 00417.samples, value: 4}
      - {key: 00417.latest, value: 0.1}
  - name: a row that is no number
    rows:
      - {part: 00417, mass_kg: 0.1, measured_at: 2026-11-07T10:00:00Z, status: ok}
      - {part: 00417, mass_kg: n/a, measured_at: 2026-11-07T10:00:00Z, status: ok}
    rejected: [{row: 2, reason: as a number}, {row: rows 1 to 2 (2 rows), reason: "Row 2: 'mass_kg'"}]
  - name: a delivered file
    sample: sample.csv
    partial: true
    entries: [{key: 00418.mass, value: 2.5}]
"""


def prepared(folder: Path, url: str, options: str = "") -> None:
    (folder / "drop").mkdir()
    (folder / "drop" / "runs.csv").write_text(_ROWS)
    config = folder / "ingestd.yaml"
    config.write_text(_CONFIGURATION.replace("URL", url).replace("settle_seconds: 0", f"settle_seconds: 0{options}"))


def test_groups_are_delivered_once_and_traced_to_their_rows(tmp_path: Path, server: DocumentServer) -> None:
    prepared(tmp_path, server.url)
    assert here(tmp_path, "sync").returncode == 0
    expected = {"00417.mass": "0.2", "00417.samples": "4", "00417.latest": "0.30"}
    expected |= {"00418.mass": "2.5", "00418.samples": "2", "00418.latest": "2.5"}
    assert {key: value for key, (value, _) in server.values("Means").items()} == expected
    assert "runs.csv, rows 2 to 4 (2 rows)" in here(tmp_path, "trace", "00417.mass").stdout
    server.forget_requests()
    assert here(tmp_path, "sync").returncode == 0
    assert server.writes() == []


def test_a_rejected_row_and_its_group_are_listed_and_a_corrected_file_delivers_both(
    tmp_path: Path, server: DocumentServer
) -> None:
    prepared(tmp_path, server.url)
    file = tmp_path / "drop" / "runs.csv"
    file.write_text(_ROWS.replace("0.30", "n/a"))
    assert here(tmp_path, "sync").returncode == 3
    listed = here(tmp_path, "rejected", "list").stdout
    assert "runs.csv, row 4" in listed
    assert "runs.csv, rows 2 to 4 (2 rows)" in listed
    assert here(tmp_path, "rejected", "retry", "--all").returncode == 0
    assert here(tmp_path, "rejected", "list").stdout.count("runs.csv, row") == 2
    file.write_text(_ROWS)
    assert here(tmp_path, "sync").returncode == 0
    assert server.values("Means")["00417.mass"][0] == "0.2"


def test_the_file_of_rejected_rows_has_the_row_and_can_not_be_dropped_alone(
    tmp_path: Path, server: DocumentServer
) -> None:
    prepared(tmp_path, server.url, ", after: archive, archive: done")
    (tmp_path / "drop" / "runs.csv").write_text(_ROWS.replace("0.30", "n/a"))
    assert here(tmp_path, "sync").returncode == 3
    name = "runs.csv.rejected.csv"
    text = (tmp_path / "done" / "rejected" / name).read_text()
    assert "00417,2026-11-07T11:30:00Z,n/a,ok," in text
    (tmp_path / "drop" / name).write_text(text.replace("n/a", "0.30"))
    run = here(tmp_path, "sync")
    assert "this pipeline groups records, and a group needs all of its records" in run.stdout + run.stderr
    assert "00417.mass" not in server.values("Means")
    (tmp_path / "drop" / "runs.csv").write_text(_ROWS)
    here(tmp_path, "sync")
    assert server.values("Means")["00417.mass"][0] == "0.2"


def test_cases_see_the_groups(tmp_path: Path) -> None:
    prepared(tmp_path, "http://127.0.0.1:9")
    (tmp_path / "sample.csv").write_text(_ROWS)
    (tmp_path / "tests.yaml").write_text(_CASES)
    run = here(tmp_path, "test")
    assert run.stdout.splitlines()[-1] == "3 cases, 0 failed.", run.stdout
