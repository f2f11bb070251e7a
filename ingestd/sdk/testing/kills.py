"""The suite that kills the daemon while it reads: a real `ingestd run` and a real service, which need ``ingestd[workspaced]``."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import httpx

from ingestd.sdk.testing.child_reader import kill_before_commit
from ingestd.sdk.testing.source_reader import check

_WAIT_SECONDS = 120
_LONGEST_LIFE = 1.5
_PIPELINE = "kit"
_STATE = "kit.db"


class KillRig(ABC):
    """A source that changes between kills of the daemon. ``kills``: the number of kills; ``seed``: determines their times."""

    kills: ClassVar[int] = 6
    seed: ClassVar[int] = 1

    @abstractmethod
    def source(self) -> Mapping[str, Any]:
        """Return the settings of the source, with ``connector``; paths are absolute."""

    @abstractmethod
    def entries(self) -> Mapping[str, Any]:
        """Return the mapping: ``{"key": …, "value": …}``."""

    @abstractmethod
    def step(self, number: int) -> None:
        """Change the source before the ``number``-th start of the daemon, counted from 0."""

    @abstractmethod
    def wanted(self) -> Mapping[str, str]:
        """Return the entries that the sink must have after the last step: the value of each key."""


class KillConformance:
    """Subclass this class in a test module and define a fixture ``rig``; pytest runs the tests."""

    def test_after_any_number_of_kills_the_sink_equals_the_source(self, rig: KillRig, tmp_path: Path) -> None:
        """Every effect follows a commit, so a process can be killed at any instruction without loss."""
        moments = random.Random(rig.seed)  # noqa: S311 - no secret
        with _service(tmp_path) as (url, key):
            _configure(tmp_path, rig, url, key)
            for number in range(rig.kills):
                rig.step(number)
                _run_and_kill(tmp_path, moments.uniform(0.0, _LONGEST_LIFE))
            found = _synced(tmp_path, url, key)
        check(found == dict(rig.wanted()), f"After {rig.kills} kills the sink has {found}, not {dict(rig.wanted())}.")

    def test_a_kill_between_a_batch_and_its_commit_loses_nothing(self, rig: KillRig, tmp_path: Path) -> None:
        """Before the commit, only the source has the batch, so the connector must release nothing before `committed`."""
        with _service(tmp_path) as (url, key):
            _configure(tmp_path, rig, url, key)
            rig.step(0)
            kill_before_commit(rig.source(), tmp_path, kept=tmp_path / f"{_STATE}.connectors" / _PIPELINE)
            found = _synced(tmp_path, url, key)
        check(
            found == dict(rig.wanted()),
            f"After a kill before the commit the sink has {found}, not {dict(rig.wanted())}.",
        )


@contextmanager
def _service(folder: Path) -> Iterator[tuple[str, str]]:
    data = str(folder / "service")
    made = _command("workspaced", "keys", "create", "kit", "--role", "owner", "--data", data, folder=folder)
    check(made.returncode == 0, f"The service is missing: install ingestd[workspaced]. {made.stderr}")
    key = made.stdout.strip()
    service = subprocess.Popen(  # noqa: S603 - a program of this distribution
        [sys.executable, "-m", "workspaced", "serve", "--data", data, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=folder,
    )
    try:
        url = service.stdout.readline().strip() if service.stdout is not None else ""
        httpx.post(f"{url}/v1/workspace", headers={"x-api-key": key}, json={"label": "kit"}).raise_for_status()
        yield url, key
    finally:
        service.terminate()
        service.communicate()


def _configure(folder: Path, rig: KillRig, url: str, key: str) -> None:
    pipeline = {
        "name": _PIPELINE,
        "source": dict(rig.source()),
        "entries": dict(rig.entries()),
        "sink": {"workspace": "kit", "label": "Kit"},
        "schedule": {"every": "1s"},
    }
    settings = {"service": {"url": url, "api_key": key}, "state": _STATE, "pipelines": [pipeline]}
    path = folder / "ingestd.yaml"
    path.write_text(json.dumps(settings), encoding="utf-8")  # JSON is YAML
    path.chmod(0o600)


def _synced(folder: Path, url: str, key: str) -> dict[str, str | None]:
    """Run `ingestd sync` and return the entries of the sink."""
    done = _command("ingestd", "sync", "--timeout", "60", folder=folder)
    check(done.returncode == 0, f"The last `ingestd sync` ends with {done.returncode}: {done.stdout}{done.stderr}")
    return _delivered(url, key)


def _run_and_kill(folder: Path, seconds: float) -> None:
    """Run the daemon; kill it ``seconds`` after its first line."""
    daemon = subprocess.Popen(
        [sys.executable, "-m", "ingestd", "run"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=folder
    )
    try:
        if daemon.stderr is not None:
            daemon.stderr.readline()
            time.sleep(seconds)  # the crash happens at a random time, not at a condition
    finally:
        os.kill(daemon.pid, signal.SIGKILL)
        daemon.communicate()


def _delivered(url: str, key: str) -> dict[str, str | None]:
    with httpx.Client(base_url=url, headers={"x-api-key": key}) as http:
        (workspace,) = http.get("/v1/workspace").raise_for_status().json()
        sinks = f"/v1/workspace/{workspace['id']}/data-sink"
        found = http.get(f"{sinks}/list").raise_for_status().json()
        if not found:
            return {}  # the daemon creates the sink with its first entry
        (sink,) = found
        entries = http.get(f"{sinks}/{sink['id']}").raise_for_status().json()["entries"]
        return {entry["key"]: entry["value"] for entry in entries}


def _command(program: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", program, *arguments]
    return subprocess.run(  # noqa: S603 - a program of this distribution
        command, cwd=folder, capture_output=True, text=True, timeout=_WAIT_SECONDS, check=False
    )
