"""`ingestd logs`: the log of a real daemon, from a file to which its standard error is redirected."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.daemon_process import environment
from tests.support.document_server import DocumentServer
from tests.support.engineering_folder import Folder


def test_the_log_of_the_daemon_is_shown_and_followed_until_ctrl_c(tmp_path: Path) -> None:
    with DocumentServer() as server:
        server.workspace("Bench")
        folder = Folder(tmp_path, server, top="log: {file: daemon.log}")
        missing = folder.here("logs")
        assert (missing.returncode, missing.stdout) == (1, "")
        assert f"There is no log file {tmp_path / 'daemon.log'}" in missing.stderr
        command = [sys.executable, "-m", "ingestd", "run", "-c", str(folder.config)]
        with (
            (tmp_path / "daemon.log").open("ab") as log,
            subprocess.Popen(command, cwd=tmp_path, env=environment(tmp_path), stderr=log) as daemon,
        ):
            follower = folder.start("logs", "--follow", "--json", "--pipeline", "budget")
            assert follower.stdout is not None
            folder.write("part,mass\n00417,0.10\n")
            events = (json.loads(line) for line in follower.stdout)
            assert next(one for one in events if one["event"] == "partition_settled")["partition"] == "budget.csv"
            follower.send_signal(signal.SIGINT)
            _, errors = follower.communicate(timeout=30)
            assert (follower.returncode, errors) == (130, "")
            daemon.send_signal(signal.SIGTERM)
            assert daemon.wait(30) == 0
        shown = folder.here("logs", "--pipeline", "budget", "--level", "info")
        assert shown.returncode == 0
        assert "partition_read" in shown.stdout
        assert all(" pipeline=budget" in line for line in shown.stdout.splitlines())
        assert folder.here("logs", "-n", "1").stdout.count("\n") == 1
        none = folder.here("logs", "--level", "error")
        assert (none.returncode, none.stdout, none.stderr) == (0, "", "The log has no such lines.\n")
        assert folder.here("logs", "--since", "yesterday").returncode == 2


def test_a_rotated_file_that_is_incomplete_is_reported(tmp_path: Path) -> None:
    with DocumentServer() as server:
        folder = Folder(tmp_path, server, top="log: {file: daemon.log}")
        (tmp_path / "daemon.log.1.gz").write_bytes(b"\x1f\x8b")
        run = folder.here("logs")
        assert (run.returncode, run.stdout) == (1, "")
        assert "incomplete" in run.stderr
