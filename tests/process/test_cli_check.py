"""`ingestd check`: the result of every step, and the exit codes for systemd and users."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.support.daemon_process import here, write_configuration
from tests.support.document_server import DocumentServer

UNREACHABLE = "http://127.0.0.1:9"


def test_every_step_is_a_line_and_the_service_is_skipped_on_request(tmp_path: Path) -> None:
    config = write_configuration(tmp_path, UNREACHABLE, {"upto": 3}, {"upto": 4})
    run = here(tmp_path, "check", "--offline")
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.splitlines() == [
        f"passed  configuration · read: {config} has no mistake: 2 pipelines.",
        f"passed  state · usable: {tmp_path / 'var/ingestd.db'} does not exist yet; the first run can create it.",
        "passed  p0 · counting: One, two, three.",
        "passed  p1 · counting: One, two, three.",
    ]
    assert not (tmp_path / "var").exists()


def test_a_failed_step_is_5_and_the_other_steps_run(tmp_path: Path) -> None:
    write_configuration(tmp_path, UNREACHABLE, {"broken": True}, {"upto": 4})
    run = here(tmp_path, "check", "--offline")
    assert run.returncode == 5
    assert [line.split()[0] for line in run.stdout.splitlines()] == ["passed", "passed", "failed", "passed"]
    only = here(tmp_path, "check", "--configuration-only")
    assert (only.returncode, len(only.stdout.splitlines())) == (0, 1)


def test_every_failed_step_of_a_source_is_reported(tmp_path: Path) -> None:
    (tmp_path / "drop").mkdir()
    (tmp_path / "drop" / "a.csv").write_text("part\n1\n")
    (tmp_path / "file").touch()
    (tmp_path / "ingestd.yaml").write_text(f"""
service: {{url: {UNREACHABLE}, api_key: k}}
state: var/ingestd.db
pipelines:
  - name: files
    source: {{connector: directory, path: drop, after: archive, archive: file/archive, failed: file/failed}}
    entries: {{key: "{{number}}", value: "{{mass}}"}}
    sink: {{workspace: w, label: a}}
""")
    run = here(tmp_path, "check", "--offline")
    assert run.returncode == 5
    lines = [line for line in run.stdout.splitlines() if " files · " in line]
    assert [line.split()[3] for line in lines if line.startswith("failed")] == ["archive:", "quarantine:", "failed:"], (
        run.stdout
    )
    assert lines[-1].startswith("passed  files · files: Matching"), run.stdout


def test_an_empty_state_file_is_a_notice_because_the_next_start_creates_its_tables(tmp_path: Path) -> None:
    write_configuration(tmp_path, UNREACHABLE, {"upto": 3})
    state = tmp_path / "var/ingestd.db"
    state.parent.mkdir()
    state.touch()
    run = here(tmp_path, "check", "--offline")
    assert run.returncode == 0
    (line,) = [line for line in run.stdout.splitlines() if " state · " in line]
    assert line.startswith(f"skipped state · usable: {state} is empty; the next 'ingestd run'")


def test_the_real_connectors_are_verified_without_side_effects(tmp_path: Path) -> None:
    (tmp_path / "drop").mkdir()
    with closing(sqlite3.connect(tmp_path / "pdm.db")) as database:
        database.execute("CREATE TABLE part (number TEXT PRIMARY KEY)")
    config = tmp_path / "ingestd.yaml"
    config.write_text(f"""
service: {{url: {UNREACHABLE}, api_key: k}}
state: var/ingestd.db
pipelines:
  - name: files
    source: {{connector: directory, path: drop, pattern: "*.csv"}}
    entries: {{key: "{{k}}", value: "{{v}}"}}
    sink: {{workspace: w, label: a}}
  - name: away
    source: {{connector: directory, path: nowhere, pattern: "*.csv"}}
    entries: {{key: "{{k}}", value: "{{v}}"}}
    sink: {{workspace: w, label: b}}
  - name: pdm
    source: {{connector: database, url: "sqlite:///pdm.db", query: "SELECT number FROM part", mode: snapshot}}
    entries: {{key: "{{number}}", value: "{{number}}"}}
    sink: {{workspace: w, label: c}}
    schedule: {{every: 1h}}
""")
    before = sorted(path.name for path in tmp_path.iterdir())
    run = here(tmp_path, "check")
    assert run.returncode == 5
    outcome_of = {tuple(line.split(" · ")[0].split()[::-1]) for line in run.stdout.splitlines()}
    assert {("files", "passed"), ("away", "failed"), ("pdm", "passed")} <= outcome_of
    assert {("files", "failed"), ("pdm", "failed")}.isdisjoint(outcome_of)
    assert sorted({path.name for path in tmp_path.iterdir()} - {"plug-ins"}) == before


def test_the_service_is_checked_for_the_key_and_every_workspace(tmp_path: Path) -> None:
    with DocumentServer() as server:
        server.workspace("Bench")
        write_configuration(tmp_path, server.url, {"upto": 3})
        good = here(tmp_path, "check")
        assert good.returncode == 0
        assert "service · reachable" in good.stdout
        assert "The key can read the workspace Bench." in good.stdout
        write_configuration(tmp_path, server.url, {"upto": 3}, workspace="Banch")
        unknown = here(tmp_path, "check")
        assert unknown.returncode == 5
        assert "The key can read no workspace 'Banch'." in unknown.stdout
        server.workspace("Bench")
        write_configuration(tmp_path, server.url, {"upto": 3})
        twice = here(tmp_path, "check")
        assert twice.returncode == 5
        assert "2 workspaces have the label 'Bench'" in twice.stdout
        server.api_key = "another"
        refused = here(tmp_path, "check")
        assert refused.returncode == 5
        assert "failed  service · reachable" in refused.stdout
        assert "test-key" not in refused.stdout + refused.stderr
    away = here(tmp_path, "check")
    assert away.returncode == 5


def test_a_value_without_a_field_is_reported(tmp_path: Path) -> None:
    config = tmp_path / "ingestd.yaml"
    config.write_text(f"""
service: {{url: {UNREACHABLE}, api_key: k}}
state: var/ingestd.db
pipelines:
  - name: masses
    source: {{connector: directory, path: drop}}
    entries:
      - {{key: "{{part}}.mass", value: mass_g / 1000}}
      - {{key: "{{part}}.name", value: "{{name}}"}}
    sink: {{workspace: w, label: a}}
""")
    run = here(tmp_path, "check", "--configuration-only")
    assert run.returncode == 0
    [line] = run.stdout.splitlines()[1:]
    assert line.startswith(
        "skipped masses · values: The entries {part}.mass all get the same value, the text 'mass_g / 1000',"
    )
    assert line.endswith("Write value: {expr: 'mass_g / 1000'} if it is an expression.")


def test_a_field_that_the_sample_lacks_is_5_with_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "drop").mkdir()
    (tmp_path / "drop" / "a.json").write_text('[{"part": "1", "mas": 2}]')
    (tmp_path / "drop" / "b.csv").write_text("part,mass\n1,2\n")
    (tmp_path / "drop" / "c.ndjson").write_text('{"part": "1", "list": [{"weight": 1}]}\n{"part": "2", "mass": 1}\n')
    with closing(sqlite3.connect(tmp_path / "pdm.db")) as database:
        database.execute("CREATE TABLE part (number TEXT PRIMARY KEY, mass_kg TEXT)")
    (tmp_path / "ingestd.yaml").write_text(f"""
service: {{url: {UNREACHABLE}, api_key: k}}
state: var/ingestd.db
pipelines:
  - name: files
    source: {{connector: directory, path: drop, settle_seconds: 0}}
    entries: {{key: "{{part}}", value: "{{mass}}"}}
    sink: {{workspace: w, label: a}}
  - name: table
    source: {{connector: database, url: "sqlite:///pdm.db", table: part, key: number, mode: snapshot}}
    entries: {{key: "{{number}}", value: "{{mass}}"}}
    sink: {{workspace: w, label: b}}
    schedule: {{every: 1h}}
  - name: groups
    source: {{connector: database, url: "sqlite:///pdm.db", table: part, key: number, mode: snapshot}}
    group: {{by: [number], take: {{mass: {{sum: mass}}}}, optional: [mass]}}
    entries: {{key: "{{number}}", value: "{{mass}}"}}
    sink: {{workspace: w, label: c}}
    schedule: {{every: 1h}}
""")
    run = here(tmp_path, "check", "--offline")
    assert run.returncode == 5
    found = [line for line in run.stdout.splitlines() if " · fields: " in line]
    assert [line.partition(". ")[0].removesuffix(".") for line in found] == [
        "failed  files · fields: a.json: No record has a field 'mass'; the fields are 'part', 'mas'",
        "passed  files · fields: b.csv has the fields that the mapping names",
        "passed  files · fields: c.ndjson has the fields that the mapping names",
        "failed  table · fields: There is no column 'mass'; the columns are 'number', 'mass_kg'",
        "passed  groups · fields: The source has the fields that the mapping names",
    ]
    assert "Did you mean 'mas'?" in found[0]
    assert "Did you mean 'mass_kg'?" in found[3]
    assert sorted(one.name for one in (tmp_path / "drop").iterdir()) == ["a.json", "b.csv", "c.ndjson"]


def test_a_sample_without_a_field_of_children_is_5(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"parts": [{"number": "1", "weight": 2}]}]')
    (tmp_path / "ingestd.yaml").write_text(f"""
service: {{url: {UNREACHABLE}, api_key: k}}
state: var/ingestd.db
pipelines:
  - name: file
    source: {{connector: file, path: a.json, settle_seconds: 0.1}}
    entries: {{each: parts, key: "{{number}}", value: "{{mass}}"}}
    sink: {{workspace: w, label: a}}
""")
    run = here(tmp_path, "check", "--offline")
    assert run.returncode == 5
    assert "failed  file · fields: a.json: No item of 'parts' has a field 'mass'" in run.stdout
