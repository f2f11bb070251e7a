"""The real daemon and the real service: a request that arrives after a newer one never wins."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.daemon_process import Daemon, environment
from tests.support.keeping_relay import KeepingRelay
from tests.support.postgres_databases import databases
from tests.support.workspaced_process import WorkspaceService, new_key

ROUNDS = int(os.environ.get("INGESTD_LATE_ROUNDS", "6"))
"""`INGESTD_LATE_ROUNDS=200` runs more."""


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make several hosts use one PostgreSQL database."""
    with databases() as made, made.migrated() as url:
        monkeypatch.setenv("WORKSPACED_DATABASE_URL", url)
        yield


ARCHIVE = {"after": "archive", "archive": "done"}


def configure(folder: Path, url: str, key: str, after: Mapping[str, str] = ARCHIVE) -> None:
    """Write a configuration with one drop folder; requests time out soon."""
    (folder / "drop").mkdir()
    pipeline = {
        "name": "parts",
        "source": {"connector": "directory", "path": "drop", "pattern": "*.csv", "settle_seconds": 0, **after},
        "entries": {"key": "{part}", "value": "{mass}"},
        "sink": {"workspace": "Bench", "label": "Parts"},
    }
    service = {"url": url, "api_key": key, "read_timeout_seconds": 0.5}
    settings = {"service": service, "state": "ingestd.db", "pipelines": [pipeline]}
    (folder / "ingestd.yaml").write_text(json.dumps(settings))  # JSON is valid YAML.


def drop(folder: Path, file: str, value: str, part: str = "k") -> None:
    written = folder / "being-written"
    written.write_text(f"part,mass\n{part},{value}\n")
    written.rename(folder / "drop" / file)


def delivered(daemon: Daemon, file: str) -> None:
    daemon.wait_for("partition_acknowledged", partition=file)


@contextmanager
def running(folder: Path) -> Iterator[Daemon]:
    """Run a daemon without a service manager: a test that reads no messages would fill its socket."""
    with closing(Daemon(["ingestd", "run"], env=environment(folder), cwd=folder)) as daemon:
        yield daemon


class Bench:
    """The workspace, seen through one host."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http
        made = http.post("/v1/workspace", json={"label": "Bench"})
        self._sinks = f"/v1/workspace/{made.json()['id']}/data-sink"

    def value(self) -> str:
        sink = self._sink()
        return str(next(entry["value"] for entry in sink["entries"] if entry["key"] == "k"))

    def _sink(self) -> Any:
        (sink,) = self._http.get(self._sinks).json()
        return sink

    def write(self, value: str, headers: Mapping[str, str]) -> None:
        path = f"{self._sinks}/{self._sink()['id']}/k"
        self._http.patch(path, json={"value": value}, headers=headers).raise_for_status()


@contextmanager
def frozen(service: WorkspaceService) -> Iterator[None]:
    service.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        service.process.send_signal(signal.SIGCONT)


def delays(daemon: Daemon) -> int:
    return sum(event.get("event") == "delivery_delayed" for event in daemon.events)


@pytest.mark.usefixtures("database")
def test_a_request_in_a_frozen_host_changes_nothing_after_a_newer_one(tmp_path: Path) -> None:
    # contract M11
    key = new_key(tmp_path / "service")
    with (
        WorkspaceService(tmp_path / "service") as first,
        WorkspaceService(tmp_path / "service") as second,
        first.client(key) as http,
        KeepingRelay(first.url) as relay,
    ):
        bench = Bench(http)
        configure(tmp_path, relay.url, key)
        with running(tmp_path) as daemon:
            drop(tmp_path, "first.csv", "first")
            delivered(daemon, "first.csv")
            for number in range(ROUNDS):
                ice, other = (first, second) if number % 2 else (second, first)
                relay.route_to(ice.url)
                with frozen(ice):
                    before = delays(daemon)
                    drop(tmp_path, f"old-{number}.csv", f"old {number}")
                    daemon.wait_for("delivery_delayed", nth=before + 1)
                    relay.route_to(other.url)
                    drop(tmp_path, f"new-{number}.csv", f"new {number}")
                    delivered(daemon, f"new-{number}.csv")
                assert set(relay.late_statuses()) == {409}, f"round {number}"
                assert bench.value() == f"new {number}"
            assert daemon.stop() == 0


def test_a_request_of_a_killed_daemon_changes_nothing_after_it_has_started_again(tmp_path: Path) -> None:
    # contract M11
    key = new_key(tmp_path / "service")
    with (
        WorkspaceService(tmp_path / "service") as service,
        service.client(key) as http,
        KeepingRelay(service.url) as relay,
    ):
        bench = Bench(http)
        configure(tmp_path, relay.url, key)
        with running(tmp_path) as daemon:
            drop(tmp_path, "first.csv", "first")
            delivered(daemon, "first.csv")
            relay.hold_writes()
            drop(tmp_path, "next.csv", "old")
            relay.wait_for_held()
            daemon.stop(signal.SIGKILL)
        drop(tmp_path, "next.csv", "new")
        with running(tmp_path) as daemon:
            delivered(daemon, "next.csv")
            relay.pass_on()
            assert set(relay.late_statuses()) == {409}
            assert bench.value() == "new"
            assert daemon.stop() == 0


def test_a_state_file_that_is_behind_the_service_says_so_and_is_compared_with_it(tmp_path: Path) -> None:
    # contract M11
    key = new_key(tmp_path / "service")
    with WorkspaceService(tmp_path / "service") as service, service.client(key) as http:
        bench = Bench(http)
        configure(tmp_path, service.url, key, after={"after": "keep"})
        with running(tmp_path) as daemon:
            drop(tmp_path, "first.csv", "first")
            delivered(daemon, "first.csv")
            assert daemon.stop() == 0
        # A later copy of the state file has written on a machine with a clock that is ahead.
        name = json.loads((tmp_path / ".ingestd.db.sequence").read_text().split("\n", 1)[1])["writer"]
        bench.write("later", {"X-Writer": f"{name};1;{10**17}"})
        with running(tmp_path) as daemon:
            drop(tmp_path, "second.csv", "second", part="m")
            doubted = daemon.wait_for("state_doubted")
            assert (doubted["sinks"], "older copy" in doubted["sentence"]) == (1, True)
            delivered(daemon, "second.csv")
            daemon.wait_for("drift_repaired")
            assert daemon.stop() == 0
        assert bench.value() == "first"
