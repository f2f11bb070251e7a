"""The disk of the state file is full: the daemon keeps running, delivers what it has, and reads again when space is freed."""

from __future__ import annotations

import html
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.daemon_process import Daemon, here, running_daemon
from tests.support.small_disk import Disk, LimitedFiles, MountedDisk, small_disk
from tests.support.workspaced_process import WorkspaceService, new_key

ROWS = 4000


@pytest.fixture
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    with small_disk(tmp_path / "state", mounted=getattr(request, "param", "mounted") == "mounted") as made:
        yield made


class Site:
    """A folder with a configuration and a real service, which can be stopped temporarily."""

    def __init__(self, base: Path, service: WorkspaceService, key: str, state: Path) -> None:
        self.base = base
        self.service = service
        self.config = base / "ingestd.yaml"
        self._client = service.client(key)
        made = self._client.post("/v1/workspace", json={"label": "Bench"}, headers={"Idempotency-Key": "w"})
        self._workspace = made.json()["id"]
        (base / "drop").mkdir()
        pipeline = {
            "name": "runs",
            "source": {"connector": "directory", "path": "drop", "settle_seconds": 0},
            "entries": {"key": "{id}", "value": "{value}"},
            "sink": {"workspace": "Bench", "label": "Runs"},
        }
        settings = {
            "service": {"url": service.url, "api_key": key, "client_id": "test"},
            "state": str(state / "ingestd.db"),
            "listen": {"address": "127.0.0.1:0"},
            "pipelines": [pipeline],
        }
        self.config.write_text(json.dumps(settings))

    def drop(self, name: str) -> dict[str, str]:
        """Write a file of many rows; return its entries."""
        said = {f"{name}-{number:06}": f"{number}.0" for number in range(ROWS)}
        hidden = self.base / "drop" / f".{name}"
        hidden.write_text("id,value\n" + "".join(f"{key},{value}\n" for key, value in said.items()))
        hidden.rename(self.base / "drop" / f"{name}.csv")
        return said

    def pause(self) -> None:
        """Stop the service temporarily."""
        self.service.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.service.process.send_signal(signal.SIGCONT)

    def values(self) -> dict[str, Any]:
        sinks = self._client.get(f"/v1/workspace/{self._workspace}/data-sink").json()
        if not sinks:
            return {}
        held = self._client.get(f"/v1/workspace/{self._workspace}/data-sink/{sinks[0]['id']}").json()
        return {entry["key"]: entry["value"] for entry in held["entries"]}

    def wait_for(self, expected: dict[str, str], daemon: Daemon) -> None:
        """Wait until the sink has these values; checked after each delivery."""
        while True:
            seen = [event["event"] for event in daemon.events].count("entries_delivered")
            if self.values() == expected:
                return
            daemon.wait_for("entries_delivered", nth=seen + 1)

    def close(self) -> None:
        self._client.close()


@pytest.fixture
def site(tmp_path: Path, disk: Disk) -> Iterator[Site]:
    key = new_key(tmp_path / "service")
    with WorkspaceService(tmp_path / "service") as service:
        made = Site(tmp_path, service, key, disk.folder)
        try:
            yield made
        finally:
            made.go_on()
            made.close()


def test_a_disk_that_fills_during_delivery_pauses_only_reading_and_everything_arrives_without_a_restart(
    tmp_path: Path, site: Site, disk: Disk
) -> None:
    with running_daemon(tmp_path, "run", "--log-level", "debug", "-c", str(site.config)) as (daemon, _):
        expected = site.drop("first")
        daemon.wait_for("partition_acknowledged")
        pid = daemon.process.pid
        # Entries that are read now wait for the service.
        site.pause()
        expected |= site.drop("second")
        daemon.wait_for("partition_read", nth=2)
        disk.fill(pid)
        third = site.drop("third")
        daemon.wait_for("intake_paused")
        assert any("state" in event["sentence"] for event in daemon.events if event["event"] == "state_unwritable")
        # The status and the page report it.
        sentence = daemon.wait_for("state_unwritable")["sentence"]
        address = daemon.wait_for("listener_opened")["address"]
        shown = {
            "status": here(tmp_path, "status", "-c", str(site.config)).stdout,
            "page": httpx.get(address).text,
            "why": here(tmp_path, "why", str(tmp_path / "drop" / "third.csv"), "-c", str(site.config)).stdout,
        }
        assert [name for name, text in shown.items() if sentence not in html.unescape(text)] == []
        assert "being read" not in shown["why"]
        assert sentence in httpx.get(f"{address}/readyz").json()["reasons"]
        # Delivery continues, although nothing can be recorded.
        site.go_on()
        site.wait_for(expected, daemon)
        # Every other command reports a sentence, too.
        status = here(tmp_path, "status", "-c", str(site.config))
        assert "Traceback" not in status.stderr
        disk.free(pid)
        daemon.wait_for("intake_resumed")
        assert sentence not in here(tmp_path, "status", "-c", str(site.config)).stdout
        site.wait_for(expected | third, daemon)
        daemon.wait_for("partition_acknowledged", partition="third.csv")
        assert daemon.process.pid == pid
        assert daemon.process.poll() is None
        assert daemon.stop() == 0
        assert [event["event"] for event in daemon.events].count("daemon_ready") == 1
        assert not [event for event in daemon.events if "Traceback" in json.dumps(event)]
    assert "0 pending" in here(tmp_path, "status", "-c", str(site.config)).stdout


@pytest.mark.parametrize("disk", ["mounted", "limited"], indirect=True)
def test_a_daemon_that_is_stopped_on_a_full_disk_ends_cleanly_and_loses_nothing(
    tmp_path: Path, site: Site, disk: Disk
) -> None:
    with running_daemon(tmp_path, "run", "--log-level", "debug", "-c", str(site.config)) as (daemon, _):
        expected = site.drop("first")
        daemon.wait_for("partition_acknowledged")
        disk.fill(daemon.process.pid)
        expected |= site.drop("second")
        daemon.wait_for("intake_paused")
        assert daemon.stop() == 0
        pid = os.getpid()
        if isinstance(disk, MountedDisk):
            disk.free(pid)
    assert here(tmp_path, "sync", "-c", str(site.config)).returncode == 0
    assert site.values() == expected


def test_a_daemon_that_starts_on_a_full_disk_reports_it_and_waits_for_space(tmp_path: Path) -> None:
    with small_disk(tmp_path / "state") as disk:
        key = new_key(tmp_path / "service")
        with WorkspaceService(tmp_path / "service") as service:
            site = Site(tmp_path, service, key, disk.folder)
            expected = site.drop("first")
            # If nothing can be mounted, the processes inherit the file size limit of this one.
            disk.fill(os.getpid())
            verbs = (["sync"], ["status"], ["check"], ["trace", "a"], ["rejected", "list"], ["why", "a"], ["drift"])
            for verb in verbs:
                run = here(tmp_path, *verb, "-c", str(site.config))
                assert "Traceback" not in run.stderr, run.stderr
                assert "mistake in ingestd" not in run.stderr
                if verb == ["sync"]:
                    assert run.returncode == 75
                    assert str(disk.folder / "ingestd.db") in run.stderr
            with running_daemon(tmp_path, "run", "--log-level", "debug", "-c", str(site.config)) as (daemon, manager):
                assert str(disk.folder / "ingestd.db") in daemon.wait_for("start_delayed")["sentence"]
                manager.wait_for("STATUS", "Waiting")
                if isinstance(disk, LimitedFiles):
                    disk.free(os.getpid())
                disk.free(daemon.process.pid)
                daemon.wait_for("daemon_ready")
                site.wait_for(expected, daemon)
                assert daemon.stop() == 0
            site.close()
