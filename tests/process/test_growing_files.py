"""The real daemon and the real service: a log that is written and rotated through kills, a file that is saved in place."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon_process import ingestd, running_daemon
from tests.support.workspaced_process import WorkspaceService, new_key

DEADLINE_SECONDS = 30.0


class Sink:
    """A service with a workspace, and a daemon's configuration with one pipeline into its only sink."""

    def __init__(self, folder: Path, service: WorkspaceService, key: str, source: Mapping[str, Any]) -> None:
        self._http = service.client(key)
        self._http.post("/v1/workspace", json={"label": "Bench"}).raise_for_status()
        pipeline = {
            "name": "rows", "source": source, "entries": {"key": "{n}", "value": "{value}"},
            "sink": {"workspace": "Bench", "label": "Rows"},
        }  # fmt: skip
        settings = {"service": {"url": service.url, "api_key": key}, "state": "ingestd.db", "pipelines": [pipeline]}
        (folder / "ingestd.yaml").write_text(json.dumps(settings))  # JSON is YAML

    def values(self) -> dict[str, str]:
        (workspace,) = self._http.get("/v1/workspace").raise_for_status().json()
        sinks = self._http.get(f"/v1/workspace/{workspace['id']}/data-sink").raise_for_status().json()
        return {entry["key"]: entry["value"] for sink in sinks for entry in sink["entries"]}

    def wait_for(self, expected: dict[str, str]) -> float:
        """Wait until the sink has exactly these values; return the seconds."""
        started, held = time.monotonic(), self.values()
        while held != expected:
            if time.monotonic() - started > DEADLINE_SECONDS:
                raise AssertionError(f"the sink has {len(held)} entries, not {len(expected)}: {held}")
            held = self.values()
        return time.monotonic() - started

    def close(self) -> None:
        self._http.close()


@pytest.fixture
def sink_of(tmp_path: Path) -> Iterator[Callable[[Mapping[str, Any]], Sink]]:
    key = new_key(tmp_path / "service")
    made: list[Sink] = []
    with WorkspaceService(tmp_path / "service") as service:

        def make(source: Mapping[str, Any]) -> Sink:
            made.append(Sink(tmp_path, service, key, source))
            return made[-1]

        yield make
        for sink in made:
            sink.close()


class Bench:
    """Appends rows and rotates, by renaming or by copying, and compresses older files."""

    def __init__(self, folder: Path, seed: int) -> None:
        folder.mkdir()
        self._log = folder / "bench.csv"
        self._folder = folder
        self._random = random.Random(seed)
        self.rows: dict[str, str] = {}

    def append(self, count: int) -> None:
        with self._log.open("a") as log:
            if not log.tell():
                log.write("n,value\n")
            for _ in range(count):
                row = str(len(self.rows))
                self.rows[row] = f"{self._random.random():.6f}"
                log.write(f"{row},{self.rows[row]}\n")
                log.flush()

    def rotate(self) -> None:
        older = sorted(self._folder.glob("bench.csv.*"), key=lambda path: -int(path.name.split(".")[2]))
        for path in older:
            name, end, number, *packed = path.name.split(".")
            path = path.rename(self._folder / ".".join([name, end, str(int(number) + 1), *packed]))  # noqa: PLW2901
            if not packed:
                status = path.stat()
                target = path.with_name(f"{path.name}.gz")
                target.write_bytes(gzip.compress(path.read_bytes()))
                os.utime(target, ns=(status.st_mtime_ns, status.st_mtime_ns))
                path.unlink()
        rotated = self._folder / "bench.csv.1"
        if self._random.random() < 0.5:
            self._log.rename(rotated)
        else:
            rotated.write_bytes(self._log.read_bytes())
            os.truncate(self._log, 0)


@pytest.mark.slow
def test_every_row_of_a_log_arrives_through_rotation_and_kills(
    tmp_path: Path, sink_of: Callable[[Mapping[str, Any]], Sink]
) -> None:
    sink = sink_of({"connector": "log", "path": "bench", "pattern": "bench.csv"})
    bench, rng = Bench(tmp_path / "bench", seed=5), random.Random(6)
    for _ in range(3):
        bench.append(20)
        with running_daemon(tmp_path, "run") as (daemon, manager):
            manager.wait_for("READY")
            for _ in range(rng.randrange(3)):
                bench.append(rng.randrange(1, 200))
                bench.rotate()
            bench.append(10)
            assert daemon.process.poll() is None, "\n".join(daemon.lines[-20:])
            daemon.stop(signal.SIGKILL)
        bench.append(5)
        if rng.random() < 0.5:
            bench.rotate()
    with running_daemon(tmp_path, "run") as (daemon, manager):
        manager.wait_for("READY")
        sink.wait_for(bench.rows)
        bench.append(1)
        sink.wait_for(bench.rows)
        assert daemon.stop() == 0
        assert "missed" not in "\n".join(daemon.lines)
    again = ingestd(tmp_path, "sync")
    assert "0 entries delivered" in again.stdout, again.stdout + again.stderr


def test_a_row_deleted_from_a_saved_file_is_removed_and_a_missing_file_changes_nothing(
    tmp_path: Path, sink_of: Callable[[Mapping[str, Any]], Sink]
) -> None:
    share = tmp_path / "share"
    share.mkdir()
    path = share / "masses.csv"
    sink = sink_of({"connector": "file", "path": "share/masses.csv", "settle_seconds": 0.2, "deletes": "remove"})

    def save(text: str) -> None:
        waiting = share / "~WRD0001.tmp"
        waiting.write_text(text)
        waiting.rename(path)

    save("n,value\na,1\nb,2\n")
    (share / "~$masses.csv").write_bytes(b"Alice")
    with running_daemon(tmp_path, "run") as (daemon, manager):
        manager.wait_for("READY")
        sink.wait_for({"a": "1", "b": "2"})
        save("n,value\na,1\nc,3\n")
        sink.wait_for({"a": "1", "c": "3"})
        save("n,value\n")
        daemon.wait_for("partition_parked")
        save("a,1\nc,3\n")
        daemon.wait_for("partition_parked", nth=2)  # its header is lost
        path.unlink()
        daemon.wait_for("source_away")
        assert sink.values() == {"a": "1", "c": "3"}
        save("n,value\na,5\n")
        sink.wait_for({"a": "5"})
        assert path.exists()
        assert daemon.stop() == 0
