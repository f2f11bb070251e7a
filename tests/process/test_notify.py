"""Both daemons report to a real notify socket, as systemd provides it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import httpx
import pytest

from tests.support.daemon_process import Manager, running_daemon, write_configuration
from tests.support.document_server import DocumentServer

WATCHDOG_USEC = "600000"


def test_the_daemon_reports_readiness_status_watchdog_and_stop(tmp_path: Path) -> None:
    with DocumentServer() as server:
        server.workspace("Bench")
        config = write_configuration(tmp_path, server.url, {"upto": 3}, {"upto": 4})
        with running_daemon(tmp_path, "run", "-c", str(config), WATCHDOG_USEC=WATCHDOG_USEC) as (daemon, manager):
            ready = manager.wait_for("READY", "1")
            assert int(ready["MAINPID"]) == daemon.process.pid
            assert ready["STATUS"].startswith("2 pipelines,")
            daemon.wait_for("partition_acknowledged", pipeline="p0")
            daemon.wait_for("partition_acknowledged", pipeline="p1")
            # Not the status of READY: the numbers have changed since.
            manager.wait_for("STATUS", "2 pipelines, 0 pending, 0 rejected.", after=manager.messages.index(ready) + 1)
            seen = len(manager.messages)
            manager.wait_for("WATCHDOG", "1", after=seen)
            assert daemon.stop(signal.SIGTERM) == 0
            assert manager.wait_for("STOPPING", "1")["STATUS"].startswith("Draining")


def test_the_status_names_a_blocked_sink_and_its_blocker(tmp_path: Path) -> None:
    with DocumentServer(api_key="another") as server:
        server.workspace("Bench")
        config = write_configuration(tmp_path, server.url, {"upto": 3})
        with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, manager):
            status = manager.wait_for("STATUS", "3 pending")["STATUS"]
            if "paused" not in status:
                status = manager.wait_for("STATUS", "paused")["STATUS"]
            assert "Sink 0 in Bench" in status
            assert daemon.stop() == 0


def test_a_hanging_daemon_stops_pinging_the_watchdog(tmp_path: Path) -> None:
    with DocumentServer() as server:
        server.workspace("Bench")
        config = write_configuration(tmp_path, server.url, {"upto": 3})
        with running_daemon(tmp_path, "run", "-c", str(config), WATCHDOG_USEC=WATCHDOG_USEC) as (daemon, manager):
            manager.wait_for("WATCHDOG")
            os.kill(daemon.process.pid, signal.SIGSTOP)
            manager.drain()
            began = time.monotonic()
            with pytest.raises(AssertionError, match="no WATCHDOG"):
                manager.wait_for("WATCHDOG", after=len(manager.messages), seconds=2 * int(WATCHDOG_USEC) / 1e6)
            assert time.monotonic() - began >= 1
            os.kill(daemon.process.pid, signal.SIGCONT)
            manager.wait_for("WATCHDOG", after=len(manager.messages))
            assert daemon.stop() == 0


def test_the_daemon_runs_without_a_service_manager(tmp_path: Path) -> None:
    with DocumentServer() as server:
        server.workspace("Bench")
        config = write_configuration(tmp_path, server.url, {"upto": 3})
        with running_daemon(tmp_path, "run", "-c", str(config), NOTIFY_SOCKET="") as (daemon, _):
            daemon.wait_for("partition_acknowledged")
            assert daemon.stop() == 0


def test_a_missing_service_manager_is_reported_once_and_does_not_stop_the_daemon(tmp_path: Path) -> None:
    with DocumentServer() as server:
        server.workspace("Bench")
        config = write_configuration(tmp_path, server.url, {"upto": 3})
        nowhere = str(tmp_path / "no-server-here")
        with running_daemon(tmp_path, "run", "-c", str(config), NOTIFY_SOCKET=nowhere, WATCHDOG_USEC="30000") as (
            daemon,
            _,
        ):
            daemon.wait_for("partition_acknowledged")
            assert daemon.stop() == 0
            reported = [event for event in daemon.events if event["event"] == "manager_unreachable"]
            assert len(reported) == 1
            assert nowhere in reported[0]["reason"]


def test_a_manager_that_does_not_read_its_socket_delays_nothing(tmp_path: Path) -> None:
    with DocumentServer() as server, Manager() as manager:
        server.workspace("Bench")
        config = write_configuration(tmp_path, server.url, {"upto": 3})
        manager.fill()
        with running_daemon(tmp_path, "run", "-c", str(config), NOTIFY_SOCKET=manager.address) as (daemon, _):
            daemon.wait_for("partition_acknowledged")
            reported = daemon.wait_for("manager_unreachable")
            assert "does not read" in reported["reason"]
            assert int(manager.wait_for("READY", "1")["MAINPID"]) == daemon.process.pid
            manager.wait_for("STATUS", "1 pipeline, 0 pending, 0 rejected.")
            assert daemon.stop() == 0


def test_the_service_serves_while_its_manager_does_not_read(tmp_path: Path) -> None:
    with Manager() as manager:
        manager.fill()
        with running_daemon(
            tmp_path, "serve", "--data", str(tmp_path / "data"), "--port", "0",
            module="workspaced", NOTIFY_SOCKET=manager.address,
        ) as (service, _):  # fmt: skip
            url = service.wait_for("service_listening")["url"]
            assert httpx.get(f"{url}/healthz").status_code == 200
            assert "does not read" in service.wait_for("manager_unreachable")["reason"]
            assert int(manager.wait_for("READY", "1")["MAINPID"]) == service.process.pid
            assert service.stop(signal.SIGTERM) == 0


def test_the_service_runs_without_its_manager(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "no-manager-here")
    with running_daemon(
        tmp_path, "serve", "--data", str(tmp_path / "data"), "--port", "0",
        module="workspaced", NOTIFY_SOCKET=nowhere, WATCHDOG_USEC="30000",
    ) as (service, _):  # fmt: skip
        url = service.wait_for("service_listening")["url"]
        assert httpx.get(f"{url}/healthz").status_code == 200
        assert service.stop(signal.SIGTERM) == 0
        (reported,) = [event for event in service.events if event["event"] == "manager_unreachable"]
        assert nowhere in reported["reason"]


def test_the_service_reports_readiness_watchdog_and_stop(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with running_daemon(
        tmp_path, "serve", "--data", data, "--port", "0", module="workspaced", WATCHDOG_USEC=WATCHDOG_USEC
    ) as (service, manager):
        ready = manager.wait_for("READY", "1")
        assert int(ready["MAINPID"]) == service.process.pid
        assert ready["STATUS"]
        seen = len(manager.messages)
        manager.wait_for("WATCHDOG", "1", after=seen)
        assert service.stop(signal.SIGTERM) == 0
        manager.wait_for("STOPPING", "1")
