"""A daemon with twenty sinks is killed repeatedly during network faults; everything arrives, and no lane waits.

``INGESTD_KILL_ROUNDS`` is the number of kills; `make kill-test ROUNDS=200` runs more.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.daemon_process import Daemon, environment, here
from tests.support.faulty_proxy import KINDS, FaultyProxy
from tests.support.many_pipelines import PIPELINES, configure, drop, drop_folder, label, name
from tests.support.workspaced_process import WorkspaceService, new_key

ROUNDS = int(os.environ.get("INGESTD_KILL_ROUNDS", "3"))
SHARE = 0.05
LONGEST_SECONDS = 150.0
"""An attempt makes several requests, so ten of a lane may fail in a row. The pauses between them add up to half a minute."""
SEED = int(os.environ.get("INGESTD_KILL_SEED", "10"))


class Scene:
    """Drop folders, the daemon that reads them, and the expected content of its sinks."""

    def __init__(self, folder: Path, url: str, key: str) -> None:
        self._folder = folder
        self._random_numbers = random.Random(SEED)
        self._files = 0
        self.wanted: dict[int, dict[str, str]] = defaultdict(dict)
        configure(folder, url, key)

    def start(self) -> Daemon:
        return Daemon(["ingestd", "run"], env=environment(self._folder), cwd=self._folder)

    def drop(self) -> None:
        """Write a file for about half of the pipelines, each with some of its keys."""
        for number in range(PIPELINES):
            if self._random_numbers.random() < 0.5:
                self._files += 1
                rows = {f"P-{self._random_numbers.randrange(8)}": f"{self._files}.0" for _ in range(4)}
                self.wanted[number].update(rows)
                drop(self._folder, number, f"{self._files:06}.csv", rows)

    def waiting(self) -> list[tuple[str, str]]:
        """Return the files that are not archived, each with its pipeline; hidden files are not data."""
        return [
            (name(number), file.name)
            for number in range(PIPELINES)
            for file in sorted(drop_folder(self._folder, number).glob("[!.]*"))
        ]

    def kill_after(self, daemon: Daemon) -> None:
        """Send SIGKILL at a random moment: while it starts, reads or delivers. It must have run until then."""
        draw = self._random_numbers.random()
        if draw < 0.6:
            daemon.wait_for("partition_acknowledged" if draw < 0.4 else "daemon_ready")
        time.sleep(self._random_numbers.uniform(0, 0.5))  # the moment of the crash; no condition is waited for
        assert daemon.process.poll() is None, "it ended by itself:\n" + "\n".join(daemon.lines[-30:])
        assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL
        daemon.close()


def held(client: httpx.Client) -> dict[str, dict[str, str]]:
    """Return the content of every sink by its unique label."""
    (workspace,) = client.get("/v1/workspace").raise_for_status().json()
    sinks: list[dict[str, Any]] = client.get(f"/v1/workspace/{workspace['id']}/data-sink").raise_for_status().json()
    assert len({sink["label"] for sink in sinks}) == len(sinks), "a sink was created twice"
    return {sink["label"]: {entry["key"]: entry["value"] for entry in sink["entries"]} for sink in sinks}


@pytest.mark.slow
@pytest.mark.timeout(300 + 30 * ROUNDS)
def test_kills_during_faults_end_in_the_exact_state_with_no_waiting_lane(tmp_path: Path) -> None:
    data = tmp_path / "service"
    key = new_key(data)
    with (
        WorkspaceService(data) as service,
        service.client(key) as client,
        FaultyProxy(service.url, share=SHARE, seed=SEED) as proxy,
    ):
        client.post("/v1/workspace", json={"label": "Bench"}).raise_for_status()
        scene = Scene(tmp_path, proxy.url, key)
        for _ in range(ROUNDS):
            daemon = scene.start()
            try:
                scene.drop()
                scene.kill_after(daemon)
            finally:
                daemon.close()
        last = scene.waiting()
        daemon = scene.start()
        try:
            # The faults continue. The daemon delivers everything without help: lanes wait only for their next attempt.
            for pipeline, file in last:
                daemon.wait_for(
                    "partition_acknowledged", within_seconds=LONGEST_SECONDS, pipeline=pipeline, partition=file
                )
            scene.drop()
            for pipeline, file in scene.waiting():
                daemon.wait_for(
                    "partition_acknowledged", within_seconds=LONGEST_SECONDS, pipeline=pipeline, partition=file
                )
            assert daemon.stop() == 0
        finally:
            daemon.close()
        assert scene.waiting() == []
        assert held(client) == {label(number): wanted for number, wanted in scene.wanted.items()}
        again = here(tmp_path, "sync")
        assert "0 entries delivered" in again.stdout, again.stdout + again.stderr
        assert ROUNDS < 50 or set(KINDS) < set(proxy.met)
