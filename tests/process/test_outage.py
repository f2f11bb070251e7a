"""Twenty pipelines and a service that is killed and restarted: every lane delivers again, and so does every later file."""

from __future__ import annotations

from pathlib import Path

from tests.support.daemon_process import Daemon, running_daemon
from tests.support.free_port import free_port
from tests.support.many_pipelines import PIPELINES, configure, drop, name
from tests.support.workspaced_process import WorkspaceService, new_key


def drop_for_all(folder: Path, round_number: int) -> None:
    for number in range(PIPELINES):
        drop(folder, number, f"round-{round_number}.csv", {"a": str(round_number)})


def wait_until_archived(daemon: Daemon, round_number: int) -> None:
    for number in range(PIPELINES):
        daemon.wait_for("partition_acknowledged", pipeline=name(number), partition=f"round-{round_number}.csv")


def test_every_lane_delivers_again_after_an_outage(tmp_path: Path) -> None:
    data = tmp_path / "service"
    key = new_key(data)
    port = str(free_port())
    with WorkspaceService(data, "--port", port) as service:
        with service.client(key) as client:
            client.post("/v1/workspace", json={"label": "Bench"}).raise_for_status()
        configure(tmp_path, service.url, key)
        with running_daemon(tmp_path, "run") as (daemon, _):
            daemon.wait_for("daemon_ready")
            drop_for_all(tmp_path, 1)
            wait_until_archived(daemon, 1)
            service.kill()
            drop_for_all(tmp_path, 2)
            # The lanes have noticed the outage and have probed the service several times.
            daemon.wait_for("service_away", nth=4)
            with WorkspaceService(data, "--port", port):
                daemon.wait_for("service_back")
                wait_until_archived(daemon, 2)
                drop_for_all(tmp_path, 3)
                wait_until_archived(daemon, 3)
                assert daemon.stop() == 0
