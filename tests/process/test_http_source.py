"""`ingestd sync` over a REST service and a real workspace service: killed at any moment, it ends with exactly its records."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon_process import environment, here
from tests.support.recorded_workspaced import RecordedWorkspaced
from tests.support.rest_service import RestService, rest_service

KILLS = 4


@pytest.fixture
def rest() -> Iterator[RestService]:
    with rest_service() as running:
        running.paging = "odata"
        running.size = 40
        running.records = [{"id": number, "mass": f"{number}.10"} for number in range(300)]
        yield running


@pytest.fixture
def service(tmp_path: Path) -> Iterator[RecordedWorkspaced]:
    with RecordedWorkspaced(tmp_path / "workspaced") as running:
        yield running


def configure(folder: Path, rest: RestService, service: RecordedWorkspaced) -> None:
    source = {
        "connector": "http", "url": f"{rest.url}/parts", "page": "odata", "key": "id", "deletes": "remove",
        "params": {"apikey": "s3cret-param"},
    }  # fmt: skip
    entries = {"key": "part.{id}.mass", "value": "{mass}"}
    pipeline = {"name": "plm", "source": source, "entries": entries, "schedule": {"every": "1h"}}
    service.write_configuration(folder, pipeline, label="Numbers")


def edit(rng: random.Random, rest: RestService, number: int) -> None:
    """Change, remove and insert records."""
    for record in rng.sample(rest.records, 10):
        record["mass"] = f"{number}.{rng.randrange(100)}0"
    del rest.records[rng.randrange(len(rest.records))]
    rest.records.insert(rng.randrange(len(rest.records)), {"id": 1000 + number, "mass": "1e-7"})


def test_records_edited_while_it_is_killed_are_neither_lost_nor_kept(
    tmp_path: Path, rest: RestService, service: RecordedWorkspaced
) -> None:
    rng = random.Random(15)
    configure(tmp_path, rest, service)
    requests = 0
    kill_at = 0
    child: subprocess.Popen[bytes] | None = None

    def before(_: object) -> None:
        nonlocal requests
        requests += 1
        if requests % 5 == 0:
            edit(rng, rest, requests)
        if child is not None and requests == kill_at:
            child.send_signal(signal.SIGKILL)

    rest.before = before
    killed = 0
    for _ in range(KILLS):
        kill_at = requests + rng.randrange(1, 24)
        child = subprocess.Popen(
            [sys.executable, "-m", "ingestd", "sync"], cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        killed += child.wait(60) == -signal.SIGKILL
    child = None
    rest.before = lambda _: None
    done = here(tmp_path, "sync")
    assert done.returncode == 0, done.stderr
    expected = {f"part.{record['id']}.mass": record["mass"] for record in rest.records}
    assert service.plain_values("Numbers") == expected
    assert killed >= KILLS // 2
    traced = here(tmp_path, "trace", f"part.{rest.records[0]['id']}.mass")
    assert f"id={rest.records[0]['id']}" in traced.stdout
    assert b"s3cret" not in b"".join(file.read_bytes() for file in tmp_path.glob("ingestd.db*"))
    assert "s3cret" not in traced.stdout + done.stderr + done.stdout


def test_check_names_the_service_and_its_fields(tmp_path: Path, rest: RestService, service: RecordedWorkspaced) -> None:
    configure(tmp_path, rest, service)
    done = here(tmp_path, "check")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The first page has 40 records: id, mass." in done.stdout
