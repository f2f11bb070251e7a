"""The real daemon and the real service are killed repeatedly while their sources change, and end in the exact state."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.busy_sources import STABLE_SECONDS, BusySources
from tests.support.daemon_process import Daemon, environment, here
from tests.support.workspaced_process import new_key

ROUNDS = int(os.environ.get("INGESTD_KILL_ROUNDS", "3"))
"""`make kill-test ROUNDS=200` runs more."""
SEED = 20


class Child:
    """A process that can be killed and restarted."""

    def __init__(self, folder: Path, ready: str, *command: str) -> None:
        self._folder = folder
        self._ready = ready
        self._command = command
        self.process: Daemon | None = None

    def start(self) -> None:
        settings = environment(self._folder, WORKSPACED_REQUESTS_PER_MINUTE="0")
        self.process = Daemon(self._command, env=settings, cwd=self._folder)

    def wait_until_ready(self) -> None:
        assert self.process is not None
        self.process.wait_for(self._ready)

    def kill(self) -> None:
        """Send SIGKILL; the process must have run until then."""
        assert self.process is not None
        assert self.process.process.poll() is None, "it ended by itself:\n" + "\n".join(self.process.lines[-30:])
        assert self.process.stop(signal.SIGKILL) == -signal.SIGKILL
        self.forget()

    def stop(self) -> None:
        """Send SIGTERM and wait for a clean end."""
        assert self.process is not None
        assert self.process.stop(signal.SIGTERM, seconds=30) == 0, "\n".join(self.process.lines[-30:])
        self.forget()

    def forget(self) -> None:
        """Kill the process in any state."""
        if self.process is None:
            return
        if self.process.process.poll() is None:
            os.kill(self.process.process.pid, signal.SIGKILL)
        self.process.ended()
        if self.process.process.stdout is not None:
            self.process.process.stdout.close()
        self.process = None


class Scene:
    """A service with one workspace, a daemon with two pipelines, and a client that reads from the service."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.key = new_key(folder / "workspace")
        serve = ["workspaced", "serve", "--data", "workspace", "--port", str(port), "--admin-port", "0"]
        self.service = Child(folder, "service_listening", *serve)
        self.daemon = Child(folder, "daemon_ready", "ingestd", "run")

    def ask(self, method: str, path: str, **more: Any) -> Any:
        headers = {"x-api-key": self.key, "ClientId": "test"}
        with httpx.Client(base_url=self.url, headers=headers, timeout=30, verify=False) as client:
            return client.request(method, path, **more).raise_for_status().json()

    def configure(self) -> None:
        workspace = self.ask("POST", "/v1/workspace", json={"label": "Bench"})["id"]
        folder = {
            "name": "files",
            "source": {
                "connector": "directory", "path": "drop", "pattern": "*.csv", "settle_seconds": STABLE_SECONDS,
                "after": "archive", "archive": "done", "rescan_seconds": 5,
            },
            "entries": {"key": "{part}", "value": "{mass}"},
            "sink": {"workspace": workspace, "label": "Files"},
        }  # fmt: skip
        table = {
            "name": "table",
            "source": {"connector": "database", "url": "sqlite:///pdm.db", "table": "part", "deletes": "remove"},
            "entries": {"key": "{number}", "value": "{mass}"},
            "sink": {"workspace": workspace, "label": "Table"},
            "schedule": {"every": "1s"},
        }
        settings = {
            "service": {"url": self.url, "api_key": self.key, "client_id": "bench-3"},
            "state": "ingestd.db",
            "pipelines": [folder, table],
        }
        (self.folder / "ingestd.yaml").write_text(json.dumps(settings))  # JSON is YAML

    def held(self, label: str) -> dict[str, str]:
        """Return what the only sink with this label holds."""
        (workspace,) = self.ask("GET", "/v1/workspace")
        path = f"/v1/workspace/{workspace['id']}/data-sink"
        (sink,) = [sink for sink in self.ask("GET", path) if sink["label"] == label]
        return {entry["key"]: entry["value"] for entry in sink["entries"]}


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    try:
        yield scene
    finally:
        scene.daemon.forget()
        scene.service.forget()


@pytest.mark.slow
@pytest.mark.timeout(600 + 10 * ROUNDS)
def test_kills_at_random_moments_end_in_the_exact_state(scene: Scene) -> None:
    rng = random.Random(SEED)
    # Each of them, in a random order: three rounds kill as many kinds as ten that draw.
    victims_of_rounds = [[scene.daemon], [scene.service], [scene.daemon, scene.service]]
    scene.service.start()
    scene.service.wait_until_ready()
    scene.configure()
    with BusySources(scene.folder / "drop", scene.folder / "pdm.db", seed=SEED) as sources:
        scene.daemon.start()
        for number in range(ROUNDS):
            if number % len(victims_of_rounds) == 0:
                rng.shuffle(victims_of_rounds)
            victims = victims_of_rounds[number % len(victims_of_rounds)]
            # mostly during work, sometimes during the start
            if rng.random() < 0.8:
                scene.service.wait_until_ready()
                scene.daemon.wait_until_ready()
            time.sleep(rng.uniform(0, 1))  # the moment of the crash; no condition is waited for
            for child in victims:
                child.kill()
            for child in reversed(victims):
                child.start()
    scene.daemon.wait_until_ready()
    scene.service.wait_until_ready()
    scene.daemon.stop()
    last = here(scene.folder, "sync")
    assert last.returncode == 0, last.stdout + last.stderr
    assert " 0 pending, 0 rejected." in last.stdout
    assert len(sources.files) > ROUNDS

    assert scene.held("Files") == sources.entries
    assert scene.held("Table") == sources.rows
    done = {path.name: path.read_bytes() for path in (scene.folder / "done").iterdir()}
    receipts = {name for name in done if name.endswith(".receipt.json")}
    assert {name: content for name, content in done.items() if name not in receipts} == sources.files
    assert receipts == {f"{name}.receipt.json" for name in sources.files}
    assert list((scene.folder / "drop").glob("[!.]*")) == []
    again = here(scene.folder, "sync")
    assert "0 entries delivered" in again.stdout
    scene.service.stop()
