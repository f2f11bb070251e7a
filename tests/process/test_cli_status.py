"""`ingestd status`: the same numbers with and without a daemon, and whether it runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.support.daemon_process import ingestd, running_daemon, write_configuration
from tests.support.document_server import DocumentServer, Refuse


def test_before_the_first_run_status_is_empty_and_creates_no_file(tmp_path: Path) -> None:
    config = write_configuration(tmp_path, "http://127.0.0.1:9", {"upto": 3})
    run = ingestd(tmp_path, "status", "-c", str(config))
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.splitlines() == [
        f"The daemon does not run. State file: {tmp_path}/var/ingestd.db, not created yet.",
        "0 pending, 0 rejected.",
        "pipeline p0: never ran",
    ]
    assert not (tmp_path / "var").exists()


def test_beside_the_running_daemon_it_shows_its_pid_and_does_not_disturb_it(tmp_path: Path) -> None:
    with DocumentServer() as server:
        server.workspace("Bench")
        config = write_configuration(tmp_path, server.url, {"upto": 3}, {"broken": True})
        with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, _):
            daemon.wait_for("partition_settled")
            found = json.loads(ingestd(tmp_path, "-c", str(config), "status", "--json").stdout)
            assert found["pid"] == daemon.process.pid
            assert found["pending"] == 0
            assert [sink["entries"] for sink in found["sinks"]] == [3]
            text = ingestd(tmp_path, "status", "-c", str(config)).stdout
            assert text.startswith(f"The daemon runs (process {daemon.process.pid}).")
            assert "sink Sink 0 in Bench: 3 entries, 0 pending, 0 rejected" in text
            assert daemon.stop() == 0
        after = json.loads(ingestd(tmp_path, "status", "-c", str(config), "--json").stdout)
    assert after["pid"] is None
    assert after["sinks"] == found["sinks"]


def test_the_running_daemon_responds_before_the_command_imports_what_reads_a_state_file(tmp_path: Path) -> None:
    script = "import sys; from ingestd.cli import main\nmain(['status'], standalone_mode=False)\nprint(*sys.modules)"
    with DocumentServer() as server:
        server.workspace("Bench")
        config = write_configuration(tmp_path, server.url, {"upto": 3})
        assert config.name == "ingestd.yaml"
        with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, _):
            daemon.wait_for("partition_settled")
            run = subprocess.run(
                [sys.executable, "-c", script], cwd=config.parent, capture_output=True, text=True, check=True
            )
    assert run.stdout.startswith(f"The daemon runs (process {daemon.process.pid}).")
    loaded = set(run.stdout.splitlines()[-1].split())
    assert loaded.isdisjoint({"polars", "pydantic", "httpx", "structlog", "asyncio", "sqlite3", "connectors"})


def test_a_mistake_in_the_file_does_not_hide_the_status_of_the_running_daemon(tmp_path: Path) -> None:
    with DocumentServer() as server:
        server.workspace("Bench")
        config = write_configuration(tmp_path, server.url, {"upto": 3})
        with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, _):
            daemon.wait_for("partition_settled")
            config.write_text(json.dumps(json.loads(config.read_text()) | {"unknown": 1}))
            beside = ingestd(tmp_path, "status", "-c", str(config))
            assert (beside.returncode, beside.stderr) == (0, "")
            assert beside.stdout.startswith(f"The daemon runs (process {daemon.process.pid}).")
        alone = ingestd(tmp_path, "status", "-c", str(config))
    assert alone.returncode == 78
    assert "unknown" in alone.stderr


def test_pending_and_rejected_entries_are_shown_with_the_last_response(tmp_path: Path) -> None:
    with DocumentServer() as server:
        server.workspace("Bench")
        config = write_configuration(tmp_path, server.url, {"upto": 3, "rejects": 2})
        assert ingestd(tmp_path, "sync", "-c", str(config)).returncode == 3
        server.fault_of = lambda request: Refuse(status=503) if request.writes else None
        config = write_configuration(tmp_path, server.url, {"upto": 5, "rejects": 2})
        assert ingestd(tmp_path, "sync", "--timeout", "1", "-c", str(config)).returncode == 4
    lines = ingestd(tmp_path, "status", "-c", str(config)).stdout.splitlines()
    assert lines[1] == "2 pending, 2 rejected."
    assert lines[2].startswith("pipeline p0: last run 20")
    assert "7 records, 2 created" in lines[2]  # the two rejected ones are records too
    assert "2 pending" in lines[3]
    assert "503" in lines[3]
