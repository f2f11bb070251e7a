"""`ingestd status`: the same numbers with and without a daemon, and whether it runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.support.daemon_process import here, running_daemon, write_configuration
from tests.support.document_server import DocumentServer, Refuse


def test_before_the_first_run_status_is_empty_and_creates_no_file(tmp_path: Path) -> None:
    write_configuration(tmp_path, "http://127.0.0.1:9", {"upto": 3})
    run = here(tmp_path, "status")
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.splitlines() == [
        f"The daemon does not run. State file: {tmp_path}/var/ingestd.db, not created yet.",
        "0 pending, 0 rejected.",
        "pipeline p0: waiting (never ran)",
    ]
    assert not (tmp_path / "var").exists()


def test_beside_the_running_daemon_it_shows_its_pid_and_does_not_disturb_it(
    tmp_path: Path, server: DocumentServer
) -> None:
    config = write_configuration(tmp_path, server.url, {"upto": 3}, {"broken": True})
    good = config.read_text()
    with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, _):
        daemon.wait_for("partition_acknowledged")
        assert here(tmp_path, "check").returncode == 5
        found = json.loads(here(tmp_path, "status", "--json").stdout)
        assert found["pid"] == daemon.process.pid
        assert found["pending"] == 0
        assert [sink["entries"] for sink in found["sinks"]] == [3]
        runs = f"The daemon runs (process {daemon.process.pid})."
        text = here(tmp_path, "status").stdout
        assert text.startswith(runs)
        assert "sink Sink 0 in Bench: 3 entries, 0 pending, 0 rejected" in text
        # A mistake in the file does not hide the status, which needs none of the packages that read a state file.
        config.write_text(json.dumps(json.loads(good) | {"unknown": 1}))
        script = (
            "import sys; from ingestd.cli import main\nmain(['status'], standalone_mode=False)\nprint(*sys.modules)"
        )
        run = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert run.stdout.startswith(runs)
        loaded = set(run.stdout.splitlines()[-1].split())
        assert loaded.isdisjoint({"polars", "pydantic", "httpx", "structlog", "asyncio", "sqlite3", "connectors"})
        assert daemon.stop() == 0
    alone = here(tmp_path, "status")
    assert (alone.returncode, "unknown" in alone.stderr) == (78, True)
    config.write_text(good)
    after = json.loads(here(tmp_path, "status", "--json").stdout)
    assert (after["pid"], after["sinks"]) == (None, found["sinks"])


def test_pending_and_rejected_entries_are_shown_with_the_last_response(tmp_path: Path) -> None:
    with DocumentServer() as server:
        server.workspace("Bench")
        write_configuration(tmp_path, server.url, {"upto": 3, "rejects": 2})
        assert here(tmp_path, "sync").returncode == 3
        server.fault_of = lambda request: Refuse(status=503) if request.writes else None
        write_configuration(tmp_path, server.url, {"upto": 5, "rejects": 2})
        assert here(tmp_path, "sync", "--timeout", "1").returncode == 4
    lines = here(tmp_path, "status").stdout.splitlines()
    assert lines[1] == "2 pending, 2 rejected."
    assert lines[2].startswith("pipeline p0: unavailable; last run 20")
    assert "7 records, 2 created" in lines[2]  # the two rejected ones are records too
    assert "2 pending" in lines[3]
    assert "503" in lines[3]
