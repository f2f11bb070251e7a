"""The real daemon and the real service: a log that is written and rotated through kills, a file that is saved in place."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon_process import here, running_daemon
from tests.support.engineering_folder import LABEL, OtherProgram, program_beside_workspaced

DEADLINE_SECONDS = 30.0


@pytest.fixture
def service(tmp_path: Path) -> Iterator[OtherProgram]:
    with program_beside_workspaced(tmp_path / "service") as program:
        yield program


def configure(folder: Path, service: OtherProgram, source: Mapping[str, Any]) -> None:
    pipeline = {
        "name": "rows", "source": source, "entries": {"key": "{n}", "value": "{value}"},
        "sink": {"workspace": "Bench", "label": LABEL},
    }  # fmt: skip
    settings = {
        "service": {"url": service.url, "api_key": service.api_key}, "state": "ingestd.db", "pipelines": [pipeline],
    }  # fmt: skip
    (folder / "ingestd.yaml").write_text(json.dumps(settings))  # JSON is YAML


def wait_for(service: OtherProgram, expected: dict[str, str]) -> None:
    """Wait until the sink has exactly these values."""
    started = time.monotonic()
    while not service.has_sink() or service.values() != expected:
        assert time.monotonic() - started < DEADLINE_SECONDS, (
            f"the sink has not {len(expected)} entries: {service.values()}"
        )


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
def test_every_row_of_a_log_arrives_through_rotation_and_kills(tmp_path: Path, service: OtherProgram) -> None:
    configure(tmp_path, service, {"connector": "log", "path": "bench", "pattern": "bench.csv"})
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
        wait_for(service, bench.rows)
        bench.append(1)
        wait_for(service, bench.rows)
        assert daemon.stop() == 0
        assert "missed" not in "\n".join(daemon.lines)
    again = here(tmp_path, "sync", "-c", str(tmp_path / "ingestd.yaml"))
    assert "0 entries delivered" in again.stdout, again.stdout + again.stderr


def test_a_row_deleted_from_a_saved_file_is_removed_and_a_missing_file_changes_nothing(
    tmp_path: Path, service: OtherProgram
) -> None:
    share = tmp_path / "share"
    share.mkdir()
    path = share / "masses.csv"
    configure(
        tmp_path, service, {"connector": "file", "path": "share/masses.csv", "settle_seconds": 0.2, "deletes": "remove"}
    )

    def save(text: str) -> None:
        waiting = share / "~WRD0001.tmp"
        waiting.write_text(text)
        waiting.rename(path)

    save("n,value\na,1\nb,2\n")
    (share / "~$masses.csv").write_bytes(b"Alice")
    with running_daemon(tmp_path, "run") as (daemon, manager):
        manager.wait_for("READY")
        wait_for(service, {"a": "1", "b": "2"})
        save("n,value\na,1\nc,3\n")
        wait_for(service, {"a": "1", "c": "3"})
        save("n,value\n")
        daemon.wait_for("partition_rejected")
        save("a,1\nc,3\n")
        daemon.wait_for("partition_rejected", nth=2)  # its header is lost
        path.unlink()
        daemon.wait_for("source_away")
        assert service.values() == {"a": "1", "c": "3"}
        save("n,value\na,5\n")
        wait_for(service, {"a": "5"})
        assert path.exists()
        assert daemon.stop() == 0
