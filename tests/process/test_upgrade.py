"""State files and service folders of former schemas: today's programs lose nothing, and send only what was pending.

The archives were recorded by scripts/record_state_files.py. INGESTD_UPGRADE=all opens every one of them (`make package-test`);
else only the first and the last.
"""

from __future__ import annotations

import json
import os
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from ingestd.client import Client
from scripts.record_state_files import ADDRESS, RECORDED
from tests.support.daemon_process import ingestd
from tests.support.workspaced_process import WorkspaceService, new_key

ROOT = Path(__file__).parents[2]
ARCHIVES = ROOT / "tests" / "golden" / "upgrade"
CHOSEN = list(RECORDED) if os.environ.get("INGESTD_UPGRADE") == "all" else [next(iter(RECORDED)), list(RECORDED)[-1]]
CONFIRMED = {"00417.mass": "0.10", "00418.mass": "2.50", "00419.mass": "7", "00420.mass": "1e3"}
DESIRED = {**CONFIRMED, "00418.mass": "2.75", "00421.mass": "12"}
PENDING = DESIRED.keys() - CONFIRMED.keys() | {"00418.mass"}


def test_every_schema_of_both_programs_is_recorded_or_came_with_a_later_one() -> None:
    assert {path.name.removesuffix(".tar.xz") for path in ARCHIVES.iterdir()} == set(RECORDED)
    for program, folder in ((1, "ingestd/mirror/sqlite/migrations"), (3, "workspaced/storage/migrations/sqlite")):
        newest = max(int(path.name[:4]) for path in (ROOT / folder).glob("*.sql"))
        recorded = max(int(name.split("-")[program]) for name in RECORDED)
        assert recorded in {newest, newest - 1}, (
            f"record the last commit without {folder}/{newest:04} before it is released"
        )


@pytest.fixture(params=CHOSEN)
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    with tarfile.open(ARCHIVES / f"{request.param}.tar.xz") as opened:
        opened.extractall(tmp_path, filter="data")
    _, state, _, service = str(request.param).split("-")
    assert (schema(tmp_path / "ingestd.db"), schema(tmp_path / "service" / "workspaced.db")) == (
        int(state),
        int(service),
    )
    return tmp_path


def schema(path: Path) -> int:
    with closing(sqlite3.connect(path)) as opened:
        return int(opened.execute("PRAGMA user_version").fetchone()[0])


def entries(url: str, key: str) -> dict[str, tuple[str | None, object]]:
    """Return value and time of the last change by key."""
    with Client(url, api_key=key) as client:
        (workspace,) = client.list_workspaces()
        (sink,) = client.list_sinks(workspace.id)
        return {entry.key: (entry.value, entry.updated_at) for entry in client.get_sink(workspace.id, sink.id).entries}


def test_an_older_state_loses_nothing_and_only_what_was_pending_is_sent(
    scene: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = new_key(scene / "service")
    monkeypatch.setenv("INGESTD_API_KEY", key)
    config = scene / "ingestd.yaml"
    with WorkspaceService(scene / "service") as service:
        config.write_text(config.read_text(encoding="utf-8").replace(ADDRESS, service.url), encoding="utf-8")
        before = entries(service.url, key)
        assert {name: value for name, (value, _) in before.items()} == CONFIRMED
        first = ingestd(scene, "sync", "-c", str(config))
        assert first.stdout.splitlines()[-1] == f"{len(PENDING)} entries delivered, 0 pending, 1 rejected.", (
            first.stderr
        )
        after = entries(service.url, key)
        assert {name: value for name, (value, _) in after.items()} == DESIRED
        assert {name for name in after if after[name] != before.get(name)} == PENDING
        second = ingestd(scene, "sync", "-c", str(config))
        assert second.stdout.splitlines()[-1] == "0 entries delivered, 0 pending, 1 rejected.", second.stderr
        assert entries(service.url, key) == after
    (rejection,) = map(json.loads, ingestd(scene, "rejected", "list", "--json", "-c", str(config)).stdout.splitlines())
    assert rejection["position"] == 5
    assert rejection["reason"].startswith("'part' is empty")
    assert rejection["record"] == {"part": "", "mass": "9.99"}
    (trace,) = json.loads(ingestd(scene, "trace", "00417.mass", "--json", "-c", str(config)).stdout)
    assert (trace["value"], trace["position"], trace["facts"]["file.name"]) == ("0.10", 2, "parts.csv")
