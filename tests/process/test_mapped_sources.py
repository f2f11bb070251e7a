"""`ingestd sync` with a real workspace service: mappings of nested records."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon_process import here
from tests.support.entry_writes import writes_by_key
from tests.support.recorded_workspaced import RecordedWorkspaced


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordedWorkspaced]:
    with RecordedWorkspaced(tmp_path_factory.mktemp("workspaced")) as running:
        yield running


@pytest.fixture
def service(shared: RecordedWorkspaced) -> RecordedWorkspaced:
    shared.forget_requests()
    return shared


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return here(folder, *words, "-c", str(folder / "ingestd.yaml"))


def configure(folder: Path, service: RecordedWorkspaced, entries: Any, **source: Any) -> None:
    pipeline = {
        "name": "real",
        "source": {"connector": "directory", "path": "drop", "settle_seconds": 0, **source},
        "entries": entries,
        "sink": {"workspace": service.workspace("Real"), "label": folder.name},
    }
    settings = {
        "service": {"url": service.url, "api_key": service.api_key, "client_id": "test"},
        "state": "ingestd.db",
        "pipelines": [pipeline],
    }
    (folder / "ingestd.yaml").write_text(json.dumps(settings))  # JSON is YAML
    (folder / "drop").mkdir(exist_ok=True)


def drop(folder: Path, name: str, text: str) -> None:
    (folder / "being-written").write_text(text, encoding="utf-8")
    (folder / "being-written").rename(folder / "drop" / name)


def values(service: RecordedWorkspaced, folder: Path) -> dict[str, str | None]:
    return {key: value for key, (value, _) in service.values(folder.name).items()}


CHILDREN = {
    "each": ["parts", "properties"],
    "key": "{parent.parent.id}.{parent.number}.{name}",
    "value": "{value}",
    "values": {"min": "-10"},
}
NESTED = """[
  {"id": "A1", "parts": [
    {"number": "00417", "properties": [{"name": "mass", "value": 0.10}, {"name": "count", "value": 1e2}]},
    {"number": "00418", "properties": [{"name": "mass", "value": -11}, {"name": "count", "value": 3}]},
    {"number": "00419", "properties": "none"}
  ]},
  {"id": "A2"}
]"""


def test_children_are_delivered_and_a_rejected_one_leaves_its_neighbours(
    tmp_path: Path, service: RecordedWorkspaced
) -> None:
    configure(tmp_path, service, CHILDREN)
    drop(tmp_path, "nested.json", NESTED)
    first = run(tmp_path, "sync")
    assert first.returncode == 3, first.stdout + first.stderr
    wanted = {"A1.00417.mass": "0.10", "A1.00417.count": "1e2", "A1.00418.count": "3"}
    assert values(service, tmp_path) == wanted
    listed = run(tmp_path, "rejected", "list").stdout
    assert "nested.json, row 1, at parts[2].properties[1]" in listed
    assert "nested.json, row 1, at parts[3]" in listed
    assert "row 1, at parts[1].properties[2]" in run(tmp_path, "trace", "A1.00417.count").stdout

    service.forget_requests()
    drop(tmp_path, "nested.json", NESTED.replace("-11", "-9").replace('"none"', "[]"))
    second = run(tmp_path, "sync")
    assert second.returncode == 0, second.stdout + second.stderr
    assert writes_by_key(service.writes()) == {"A1.00418.mass": 1}
    assert values(service, tmp_path) == {**wanted, "A1.00418.mass": "-9"}


def test_a_record_with_rejected_children_is_one_row_to_correct(tmp_path: Path, service: RecordedWorkspaced) -> None:
    configure(tmp_path, service, CHILDREN, after="archive", archive="done")
    drop(tmp_path, "nested.json", NESTED)
    assert run(tmp_path, "sync").returncode == 3
    [rejected] = (tmp_path / "done" / "rejected").iterdir()
    [row] = [line for line in rejected.read_text(encoding="utf-8").splitlines() if "00418" in line]
    assert "parts[2].properties[1]: In 'value': '-11' is less than the minimum, -10." in row
    assert "parts[3]: 'properties' is no JSON list, and 'each' needs one; it is 'none'." in row
    drop(tmp_path, rejected.name, row.replace("-11", "-9").replace('\\"none\\"', "[]").replace('"none"', "[]") + "\n")
    rejected.unlink()
    second = run(tmp_path, "sync")
    assert second.returncode == 0, second.stdout + second.stderr + row
    assert values(service, tmp_path)["A1.00418.mass"] == "-9"


def test_a_case_of_the_mapping_names_children(tmp_path: Path, service: RecordedWorkspaced) -> None:
    configure(tmp_path, service, CHILDREN)
    (tmp_path / "nested.json").write_text(NESTED, encoding="utf-8")
    (tmp_path / "cases.yaml").write_text(
        """\
pipeline: real
cases:
  - name: nested
    sample: nested.json
    entries:
      - {key: A1.00417.mass, value: 0.10}
      - {key: A1.00417.count, value: 1e2}
      - {key: A1.00418.count, value: 3}
    rejected:
      - {row: "row 1, at parts[2].properties[1]", reason: minimum}
      - {row: "row 1, at parts[3]", reason: no JSON list}
"""
    )
    tested = run(tmp_path, "test", str(tmp_path / "cases.yaml"))
    assert tested.returncode == 0, tested.stdout + tested.stderr


PREAMBLE = {
    "key": "{file.preamble.Rig}.{part}",
    "where": "file.preamble.State = 'released'",
    "value": "{mass}",
    "values": {"unit": {"from": "{file.preamble.Unit}", "to": "kg"}},
}
RUN = "Rig;north\nState: released\nUnit = g\npart;mass;len\n00417;100;3\n00418;250.0;4\n00419;x;5\n"
CSV = {"format": {"type": "csv", "preamble": True}}


def test_facts_above_the_header_reach_keys_conditions_and_units(tmp_path: Path, service: RecordedWorkspaced) -> None:
    configure(tmp_path, service, PREAMBLE, **CSV, after="archive", archive="done")
    drop(tmp_path, "run.csv", RUN)
    assert run(tmp_path, "sync").returncode == 3
    assert values(service, tmp_path) == {"north.00417": "0.1", "north.00418": "0.25"}

    rejected = tmp_path / "done" / "rejected" / "run.csv.rejected.csv"
    text = rejected.read_text(encoding="utf-8")
    assert text.splitlines()[0] == "part;mass;len;_preamble;_reason;_row;_field;_origin"
    rejected.unlink()
    drop(tmp_path, rejected.name, text.replace("00419;x;", "00419;7;"))
    corrected = run(tmp_path, "sync")
    assert corrected.returncode == 0, corrected.stdout + corrected.stderr
    assert values(service, tmp_path)["north.00419"] == "0.007", "a corrected row has the facts of its file"


def test_a_change_of_only_the_preamble_changes_the_values_that_use_it(
    tmp_path: Path, service: RecordedWorkspaced
) -> None:
    configure(tmp_path, service, PREAMBLE, **CSV)
    drop(tmp_path, "run.csv", RUN.replace("x", "1"))
    assert run(tmp_path, "sync").returncode == 0
    service.forget_requests()
    drop(tmp_path, "run.csv", RUN.replace("x", "1").replace("Unit = g", "Unit = kg\nOperator: K"))
    assert run(tmp_path, "sync").returncode == 0
    assert values(service, tmp_path) == {"north.00417": "100", "north.00418": "250", "north.00419": "1"}
    service.forget_requests()
    drop(tmp_path, "run.csv", RUN.replace("x", "1").replace("Unit = g", "Unit = kg\nOperator: L"))
    assert run(tmp_path, "sync").returncode == 0
    assert service.writes() == [], "no value uses the operator"


def test_a_file_without_a_fact_that_the_mapping_uses_is_rejected(tmp_path: Path, service: RecordedWorkspaced) -> None:
    configure(tmp_path, service, PREAMBLE, **CSV)
    drop(tmp_path, "run.csv", RUN.replace("Unit = g", "Unit ="))
    assert run(tmp_path, "sync").returncode == 3
    assert (
        "The mapping uses {file.preamble.Unit}, but no row above the header of 'run.csv' gives 'Unit' a value; the rows name "
        "'Rig', 'State'."
    ) in " ".join(run(tmp_path, "rejected", "list").stdout.split())
    assert service.writes() == []


def test_a_value_within_the_dead_band_is_not_sent_and_status_and_trace_say_so(
    tmp_path: Path, service: RecordedWorkspaced
) -> None:
    entries = {"key": "{part}.mass", "value": "{mass}", "values": {"decimal": ",", "deadband": "1%"}}
    configure(tmp_path, service, entries)
    drop(tmp_path, "masses.csv", "part;mass\n00417;100,0\n00418;50\n")
    assert run(tmp_path, "sync").returncode == 0
    service.forget_requests()
    drop(tmp_path, "masses.csv", "part;mass\n00417;100,9\n00418;50\n")
    assert run(tmp_path, "sync").returncode == 0
    assert service.writes() == []
    assert "0 updated, 0 removed, 1 unchanged, 0 rejected, 1 within the dead-band of the sent value" in (
        run(tmp_path, "status").stdout
    )
    trace = run(tmp_path, "trace", "00417.mass").stdout
    assert "00417.mass = 100.0 (scalar)" in trace
    assert "last read 100.9, not sent: it is within the dead-band of the value above" in trace

    drop(tmp_path, "masses.csv", "part;mass\n00417;101,1\n00418;50\n")
    assert run(tmp_path, "sync").returncode == 0
    assert writes_by_key(service.writes()) == {"00417.mass": 1}
    assert "dead-band" not in run(tmp_path, "status").stdout + run(tmp_path, "trace", "00417.mass").stdout


def test_a_guarded_run_does_not_count_values_within_the_dead_band(tmp_path: Path, service: RecordedWorkspaced) -> None:
    configure(tmp_path, service, {"key": "{part}", "value": "{mass}", "values": {"deadband": 1}})
    settings = json.loads((tmp_path / "ingestd.yaml").read_text())
    settings["pipelines"][0]["guard"] = {"changed": 20, "minimum": 1}
    (tmp_path / "ingestd.yaml").write_text(json.dumps(settings))
    drop(tmp_path, "masses.csv", "part,mass\n" + "".join(f"P{at},10\n" for at in range(20)))
    assert run(tmp_path, "sync").returncode == 0
    drop(tmp_path, "masses.csv", "part,mass\n" + "".join(f"P{at},10.5\n" for at in range(19)) + "P19,12\n")
    second = run(tmp_path, "sync")
    assert second.returncode == 0, second.stdout + second.stderr
    assert values(service, tmp_path) == {**{f"P{at}": "10" for at in range(19)}, "P19": "12"}
