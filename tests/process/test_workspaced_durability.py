"""Several processes on one database, and a process that is killed."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.postgres_databases import Databases
from tests.support.workspaced_process import WorkspaceService, new_key


@pytest.fixture(params=["sqlite", "postgres"], autouse=True)
def _database(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Configure a SQLite file in the data folder, or one PostgreSQL database, for all processes of a test."""
    if request.param == "sqlite":
        yield
        return
    made: Databases = request.getfixturevalue("postgres_databases")
    with made.migrated() as url:
        monkeypatch.setenv("WORKSPACED_DATABASE_URL", url)
        monkeypatch.setenv("WORKSPACED_STREAMS", "2")  # so that the server permits the connections of eight processes
        yield


def _sink(http: httpx.Client) -> str:
    workspace = http.post("/v1/workspace", json={"label": "w"}).json()["id"]
    return str(http.post(f"/v1/workspace/{workspace}/data-sink", json={"label": "s"}).headers["Location"])


@pytest.mark.slow
def test_eight_processes_that_create_50_sinks_each_give_400_serials_without_gap_or_duplicate(tmp_path: Path) -> None:
    # contract P1, S4
    data = tmp_path / "data"
    key = new_key(data)
    with ExitStack() as stack:
        with ThreadPoolExecutor(8) as starting:
            opened = [starting.submit(WorkspaceService, data) for _ in range(8)]
        services = [stack.enter_context(future.result()) for future in opened]
        clients = [stack.enter_context(service.client(key)) for service in services]

        def create(http: httpx.Client, path: str) -> Any:
            # On a slow machine the file may be locked for longer than a request waits: 503, and nothing is stored.
            while (response := http.post(path, json={"label": "w"})).status_code == 503:
                continue
            assert response.status_code == 201, response.text
            return response.json()

        path = f"/v1/workspace/{create(clients[0], '/v1/workspace')['id']}/data-sink"
        with ThreadPoolExecutor(8) as pool:
            parts = pool.map(lambda http: [create(http, path)["serial"] for _ in range(50)], clients)
            made = [serial for part in parts for serial in part]
    assert sorted(made) == list(range(1, 401))


def test_two_processes_that_write_the_same_keys_in_opposite_order_do_not_deadlock(tmp_path: Path) -> None:
    # contract M4
    data = tmp_path / "data"
    key = new_key(data)
    with ExitStack() as stack:
        clients = [stack.enter_context(stack.enter_context(WorkspaceService(data)).client(key)) for _ in range(2)]
        sinks = [_sink(clients[0]) for _ in range(2)]
        keys = [f"k{number:03}" for number in range(500)]

        def push(worker: int) -> list[int]:
            """Send bulks of all keys to both sinks, and single writes between them; one process ascending, the other
            descending.
            """
            http, step = clients[worker], 1 if worker == 0 else -1
            statuses: list[int] = []
            for turn in range(6):
                for sink in sinks[::step]:
                    bulk = [{"key": name, "value": f"{worker}.{turn}"} for name in keys[::step]]
                    bodies: list[object] = [bulk, *bulk[::100]]
                    responses = [
                        http.post(f"{sink}/mass", json=body, headers={"Prefer": "return=minimal"}) for body in bodies
                    ]
                    statuses.extend(response.status_code for response in responses)
            return statuses

        with ThreadPoolExecutor(2) as pool:
            statuses = [status for part in pool.map(push, range(2)) for status in part]
        assert set(statuses) == {200}
        for sink in sinks:
            entries = clients[1].get(sink).json()["entries"]
            assert sorted(entry["key"] for entry in entries) == keys
            assert {entry["value"] for entry in entries} <= {"0.5", "1.5"}


def test_a_bulk_update_interrupted_by_sigkill_is_applied_completely_or_not_at_all_and_acknowledged_ones_stay(
    tmp_path: Path,
) -> None:
    # contract M7
    data = tmp_path / "data"
    key = new_key(data)
    dice = random.Random(7)
    size = 2_000
    acknowledged, sink = -1, ""
    for number in range(7):
        # The service that starts after a kill shows what the former one stored, and is killed next.
        with WorkspaceService(data) as service, service.client(key) as http:
            sink = sink or _sink(http)
            entries = http.get(sink).json()["entries"]
            values = {int(entry["value"]) for entry in entries}
            assert len(entries) in {0, size}
            assert len(values) <= 1, "a bulk was written partly"
            assert max(values, default=-1) in {acknowledged, acknowledged + 1}
            acknowledged = max(values, default=-1)
            if number == 6:
                break
            killer = threading.Timer(dice.uniform(0.05, 0.4), service.process.kill)
            acknowledged = _send_bulks_until_the_end(http, sink, size, acknowledged, after_the_first=killer.start)
            killer.join()
            service.process.wait()
    assert acknowledged > 0


def _send_bulks_until_the_end(
    http: httpx.Client, sink: str, size: int, last: int, *, after_the_first: Callable[[], None]
) -> int:
    """Send bulks that set all keys to the bulk's number; return the number of the last acknowledged one."""
    first = last + 1
    while True:
        items = [{"key": f"k{number}", "value": str(last + 1)} for number in range(size)]
        try:
            response = http.post(f"{sink}/mass", json=items, headers={"Prefer": "return=minimal"})
        except httpx.TransportError:
            return last
        assert response.status_code == 200
        last += 1
        if last == first:
            after_the_first()


def test_acknowledged_single_writes_survive_sigkill_with_any_grouping_of_commits(
    tmp_path: Path,
) -> None:
    # contract M7
    data = tmp_path / "data"
    key = new_key(data)
    acknowledged: dict[str, str] = {}
    enough = threading.Event()
    with WorkspaceService(data) as service:
        with service.client(key) as http:
            sink = _sink(http)

        def push(worker: int) -> None:
            with service.client(key) as http:
                for number in range(100_000):
                    try:
                        response = http.post(f"{sink}/mass", json={"key": f"{worker}.{number}", "value": str(number)})
                    except httpx.TransportError:
                        return
                    assert response.status_code == 200
                    acknowledged[f"{worker}.{number}"] = str(number)
                    if len(acknowledged) >= 400:
                        enough.set()

        with ThreadPoolExecutor(8) as pool:
            pushing = [pool.submit(push, worker) for worker in range(8)]
            assert enough.wait(60)
            service.kill()
        for future in pushing:
            future.result()
    with WorkspaceService(data) as service, service.client(key) as http:
        stored = {entry["key"]: entry["value"] for entry in http.get(sink).json()["entries"]}
    assert acknowledged.items() <= stored.items()
    assert len(stored) <= len(acknowledged) + 8
