"""`ingestd trace` and `ingestd status` on real files: the origin of a value, and the reason of a missing one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon_process import ingestd
from tests.support.document_server import DocumentServer


@pytest.fixture
def synced(tmp_path: Path) -> Iterator[str]:
    """Deliver a folder with a file that has a bad row, and a file of which no column matches."""
    (tmp_path / "drop").mkdir()
    good = "part_number,mass_kg\n00417,0.10\n00418\n00419,1e-7\n"
    (tmp_path / "drop" / "budget.csv").write_text(good, encoding="utf-8")
    (tmp_path / "drop" / "strange.csv").write_text("part,mass_kg\n1,2\n", encoding="utf-8")
    with DocumentServer() as server:
        server.workspace("Bench")
        config = tmp_path / "ingestd.yaml"
        config.write_text(
            f"service: {{url: '{server.url}', api_key: '{server.api_key}'}}\nstate: var/ingestd.db\npipelines:\n"
            "  - {name: budget, source: {connector: directory, path: drop}, sink: {workspace: Bench, label: Budget},\n"
            '     entries: {key: "{part_number}.mass", value: "{mass_kg}"}}\n',
            encoding="utf-8",
        )
        run = ingestd(tmp_path, "sync", "-c", str(config))
        assert run.returncode == 3, "a bad row and a bad file are rejections, not a failed source"
        assert "There is no column 'part_number'; the columns are 'part', 'mass_kg'." in run.stderr
        yield str(config)


def test_a_value_is_traced_to_its_file_and_row(tmp_path: Path, synced: str) -> None:
    run = ingestd(tmp_path, "trace", "00419.mass", "-c", synced)
    assert run.returncode == 0
    assert run.stdout.splitlines()[0] == "00419.mass = 1e-7 (scalar)"
    assert "  source    budget.csv, row 4" in run.stdout.splitlines()
    assert "  sink      Budget in Bench, delivered" in run.stdout.splitlines()


def test_a_trace_as_json_has_the_facts_of_the_file(tmp_path: Path, synced: str) -> None:
    run = ingestd(tmp_path, "trace", "00417.mass", "--json", "-c", synced)
    (origin,) = json.loads(run.stdout)
    assert (origin["value"], origin["position"], origin["pipeline"]) == ("0.10", 2, "budget")
    assert len(origin["facts"]["file.sha256"]) == 64


def test_an_unknown_key_is_reported(tmp_path: Path, synced: str) -> None:
    run = ingestd(tmp_path, "trace", "00417.MASS", "-c", synced)
    assert run.returncode == 1
    assert "No sink should contain '00417.MASS'" in run.stderr


def test_status_shows_rejections_with_their_reasons(tmp_path: Path, synced: str) -> None:
    lines = ingestd(tmp_path, "status", "-c", synced).stdout.splitlines()
    assert "rejected budget · budget.csv, row 3: The row has 1 field but the header names 2." in lines
    assert any(line.startswith("rejected budget · strange.csv: There is no column 'part_number'") for line in lines)
