"""Start, end and rejected start of the real daemon."""

from __future__ import annotations

import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.daemon_process import DEADLINE_SECONDS, here, running_daemon, write_configuration
from tests.support.document_server import Delay, DocumentServer


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_waits_for_the_request_in_flight_and_its_acknowledgement(
    tmp_path: Path, server: DocumentServer, number: int
) -> None:
    config = write_configuration(tmp_path, server.url, {"upto": 1})
    server.fail(Delay(seconds=1.5), when=lambda request: request.writes)
    with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, manager):
        manager.wait_for("READY")
        while not server.writes():
            server.arrived.clear()
            assert server.writes() or server.arrived.wait(DEADLINE_SECONDS)
        assert daemon.stop(number) == 0
        assert (daemon.events[-1]["event"], daemon.events[-1]["pending"]) == ("daemon_stopped", 0)
    assert len(server.writes()) == 1


@pytest.mark.slow
def test_shutdown_waits_for_an_unresponsive_service_until_the_drain_limit(
    tmp_path: Path, server: DocumentServer
) -> None:
    config = write_configuration(tmp_path, server.url, {"upto": 1})
    server.fail(Delay(seconds=600), when=lambda request: request.writes)
    with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, _):
        while not server.writes():
            server.arrived.clear()
            assert server.writes() or server.arrived.wait(DEADLINE_SECONDS)
        began = time.monotonic()
        assert daemon.stop(signal.SIGTERM) == 0
        assert time.monotonic() - began > 1
        # The response never arrived, so the entry is pending. The next start reads what the service has applied.
        assert daemon.wait_for("daemon_stopped")["pending"] == 1
    assert here(tmp_path, "sync").returncode == 0
    assert {key: value for key, (value, _) in server.values("Sink 0").items()} == {"0.0": "0"}


@pytest.mark.slow
def test_a_hanging_source_does_not_delay_the_exit(tmp_path: Path, server: DocumentServer) -> None:
    mark = tmp_path / "mark"
    config = write_configuration(tmp_path, server.url, {"hang": str(mark)}, {"upto": 2})
    with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, _):
        daemon.wait_for("partition_acknowledged", pipeline="p1")
        assert daemon.stop(signal.SIGTERM) == 0
        assert daemon.wait_for("drain_overran")["level"] == "warning"
    assert mark.exists()
    # What it committed is kept, and the state file is unlocked.
    assert "does not run" in here(tmp_path, "status").stdout


def test_a_second_signal_ends_the_daemon_immediately(tmp_path: Path, server: DocumentServer) -> None:
    config = write_configuration(tmp_path, server.url, {"hang": str(tmp_path / "mark")}, {"upto": 2})
    with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, manager):
        daemon.wait_for("partition_acknowledged", pipeline="p1")
        daemon.process.send_signal(signal.SIGTERM)
        manager.wait_for("STOPPING")
        assert daemon.stop(signal.SIGTERM) == 128 + signal.SIGTERM


def test_a_second_daemon_on_the_state_file_is_rejected_with_the_pid_of_the_first(
    tmp_path: Path, server: DocumentServer
) -> None:
    config = write_configuration(tmp_path, server.url, {"upto": 3})
    with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, manager):
        manager.wait_for("READY")
        for verb in ("run", "sync"):
            second = here(tmp_path, verb, "-c", str(config))
            assert second.returncode == 75
            assert f"is in use by process {daemon.process.pid}" in second.stderr
        assert daemon.stop() == 0
    assert here(tmp_path, "sync").returncode == 0


def test_a_wrong_configuration_ends_every_command_with_78_and_all_its_mistakes(tmp_path: Path) -> None:
    config = tmp_path / "ingestd.yaml"
    config.write_text(
        'service: {url: "ftp://x", api_key: k}\nstate: s.db\npipelines:\n'
        "  - {name: A, source: {connector: numbrs}, entries: {key: k, value: v}, sink: {workspace: w, label: l}}\n"
    )
    for verb in ("run", "sync", "check", "status"):
        run = here(tmp_path, verb, "-c", str(config))
        assert run.returncode == 78
        assert len(run.stderr.splitlines()) == 3, run.stderr
        assert f"{config}:1:" in run.stderr
        assert "numbers" in run.stderr


def test_an_invalid_state_file_is_rejected_and_unchanged(tmp_path: Path, server: DocumentServer) -> None:
    config = write_configuration(tmp_path, server.url, {"upto": 3})
    state = tmp_path / "var/ingestd.db"
    state.parent.mkdir()
    state.write_bytes(b"No database, " * 1000)
    run = here(tmp_path, "run", "-c", str(config))
    assert run.returncode == 74
    assert str(state) in run.stderr
    assert "Traceback" not in run.stderr
    assert state.read_bytes() == b"No database, " * 1000


def test_a_run_that_was_missed_while_the_daemon_was_down_happens_at_the_start(
    tmp_path: Path, server: DocumentServer
) -> None:
    config = write_configuration(tmp_path, server.url, {"upto": 3}, {"upto": 3}, schedule="1h")
    assert here(tmp_path, "sync").returncode == 0
    with closing(sqlite3.connect(tmp_path / "var/ingestd.db", isolation_level=None)) as state:
        # Two hours have passed since the first pipeline's last run, and none since the second one's.
        first = "SELECT p.last_run FROM partition p JOIN pipeline l ON l.id = p.pipeline WHERE l.name = 'p0'"
        assert state.execute(f"UPDATE run SET started = started - 7200 WHERE id IN ({first})").rowcount == 1
    config = write_configuration(tmp_path, server.url, {"upto": 5}, {"upto": 5}, schedule="1h")
    with running_daemon(tmp_path, "run", "-c", str(config), "--log-level", "debug") as (daemon, _):
        assert daemon.wait_for("partition_read", pipeline="p0")["created"] == 2
        assert daemon.stop() == 0
        assert [event["pipeline"] for event in daemon.events if event["event"] == "pipeline_due"] == ["p0"]
