"""Several worker processes with a parent, and the admin listener."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.postgres_databases import Databases, databases
from tests.support.workspaced_process import DEADLINE_SECONDS, WorkspaceService, new_key, workspaced


@pytest.fixture(scope="module")
def postgres_databases() -> Iterator[Databases]:
    with databases() as made:
        yield made


@pytest.fixture
def postgres(postgres_databases: Databases, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use a PostgreSQL database, because SQLite serves one process only."""
    with postgres_databases.migrated() as url:
        monkeypatch.setenv("WORKSPACED_DATABASE_URL", url)
        yield


on_postgres = pytest.mark.usefixtures("postgres")


@contextmanager
def service_of(data: Path, workers: int, **environment: str) -> Iterator[tuple[WorkspaceService, str]]:
    """Run a service; yield it with the URL of its admin listener."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    words = ("--workers", str(workers), "--admin-port", port)
    with WorkspaceService(data, *words, environment=environment) as service:
        yield service, f"http://127.0.0.1:{port}"


def workers_of(service: WorkspaceService) -> list[psutil.Process]:
    return psutil.Process(service.process.pid).children()


def numbers(admin: str) -> dict[str, float]:
    """Return every sample by its name and labels."""
    response = httpx.get(f"{admin}/metrics", timeout=DEADLINE_SECONDS)
    assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return {
        f"{sample.name}{json.dumps(sample.labels, sort_keys=True) if sample.labels else ''}": sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


def until_ready(admin: str, *, status: int = 200) -> httpx.Response:
    deadline = time.monotonic() + DEADLINE_SECONDS
    with httpx.Client(timeout=DEADLINE_SECONDS) as http:
        while (response := http.get(f"{admin}/readyz")).status_code != status:
            assert time.monotonic() < deadline, response.text
    return response


def sink_of(http: httpx.Client) -> str:
    workspace = http.post("/v1/workspace", json={"label": "w"}).json()["id"]
    return str(http.post(f"/v1/workspace/{workspace}/data-sink", json={"label": "s"}).headers["Location"])


@on_postgres
def test_two_workers_share_the_port_and_their_metrics_are_summed(tmp_path: Path) -> None:
    key = new_key(tmp_path / "data")
    with service_of(tmp_path / "data", 2) as (service, admin):
        assert len(workers_of(service)) == 2
        with service.client(key) as http:
            sink = sink_of(http)
        for number in range(40):  # separate connections, so that the kernel distributes them
            with service.client(key) as http:
                assert http.post(f"{sink}/mass", json={"key": f"k{number}", "value": "v"}).status_code == 200
        with service.client(key) as http:
            assert http.post(f"{sink}/mass", json={"key": "k0", "value": "v"}).status_code == 200
            assert http.get(f"{sink}/none").status_code == 404
            assert http.get(f"{sink}/k1").json()["value"] == "v"
        assert httpx.get(f"{service.url}/v1/workspace", headers={"x-api-key": "edw_wrong"}).status_code == 401
        reported = numbers(admin)
        single = '{"method": "POST", "operation": "data_sinks.mass", "status": "200"}'
        assert reported[f"workspaced_http_requests_total{single}"] == 41
        assert reported['workspaced_http_request_duration_seconds_count{"operation": "data_sinks.mass"}'] == 41
        assert reported['workspaced_entries_written_total{"outcome": "created"}'] == 40
        assert reported['workspaced_entries_written_total{"outcome": "unchanged"}'] == 1
        assert reported['workspaced_http_refusals_total{"code": "entry_not_found"}'] == 1
        assert reported['workspaced_authentication_failures_total{"reason": "malformed"}'] == 1
        assert reported["workspaced_http_requests_in_flight"] == 0
        assert reported["workspaced_commit_group_size_sum"] >= 41
        assert reported['workspaced_workers{"state": "live"}'] == 2
        assert reported["workspaced_database_up"] == 1
        assert reported["workspaced_database_size_bytes"] > 4096
        assert reported['workspaced_webhook_queue_deliveries{"state": "pending"}'] == 0
        assert {name for name in reported if "resident_memory" in name} == {
            f'workspaced_process_resident_memory_bytes{{"worker": "{number}"}}' for number in (0, 1)
        }
        assert key not in service.log


def test_one_worker_is_the_process_itself_and_reports_the_same_metrics(tmp_path: Path) -> None:
    # contract G23
    key = new_key(tmp_path / "data")
    with service_of(tmp_path / "data", 1) as (service, admin):
        assert workers_of(service) == []
        with service.client(key) as http:
            sink_of(http)
        reported = numbers(admin)
        created = '{"method": "POST", "operation": "data_sinks.create", "status": "201"}'
        assert reported[f"workspaced_http_requests_total{created}"] == 1
        assert any(name.startswith("workspaced_build_info") for name in reported)
        refused = httpx.post(f"{admin}/metrics")
        assert (refused.status_code, refused.headers["Allow"]) == (405, "GET, HEAD")
        assert httpx.get(f"{admin}/v1/workspace").status_code == 404
        assert httpx.head(f"{admin}/healthz").content == b""


@on_postgres
def test_a_killed_worker_is_restarted_and_its_metrics_are_kept(tmp_path: Path) -> None:
    key = new_key(tmp_path / "data")
    with service_of(tmp_path / "data", 2) as (service, admin):
        with service.client(key) as http:
            sink_of(http)
        victim = workers_of(service)[0]
        victim.kill()
        deadline = time.monotonic() + DEADLINE_SECONDS
        while numbers(admin).get("workspaced_worker_restarts_total") != 1:
            assert time.monotonic() < deadline
        until_ready(admin)
        assert victim.pid not in {process.pid for process in workers_of(service)}
        with service.client(key) as http:
            sink_of(http)
        created = '{"method": "POST", "operation": "data_sinks.create", "status": "201"}'
        assert numbers(admin)[f"workspaced_http_requests_total{created}"] == 2
        died = service.wait_for_event(event="worker_died")
        assert (died["pid"], died["ended"]) == (victim.pid, "by SIGKILL")
        assert service.stop() == 0


@on_postgres
def test_sigterm_completes_the_requests_in_flight_in_every_worker(tmp_path: Path) -> None:
    # contract P5
    key = new_key(tmp_path / "data")
    body = b'{"label":"late"}'
    with service_of(tmp_path / "data", 2) as (service, admin):
        host, port = service.url.removeprefix("http://").split(":")
        wires = [socket.create_connection((host, int(port)), timeout=DEADLINE_SECONDS) for _ in range(16)]
        for wire in wires:
            wire.sendall(
                f"POST /v1/workspace HTTP/1.1\r\nHost: x\r\nx-api-key: {key}\r\n"
                f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n".encode()
            )
            assert wire.recv(4096).startswith(b"HTTP/1.1 100 ")
        assert {len(process.net_connections()) > 1 for process in workers_of(service)} == {True}, "both have some"
        service.process.send_signal(signal.SIGTERM)
        assert "stopping" in until_ready(admin, status=503).text
        for wire in wires:
            wire.sendall(body)
            assert wire.recv(65_536).startswith(b"HTTP/1.1 201 ")
            wire.close()
        assert service.process.wait(DEADLINE_SECONDS) == 0
        assert service.events[-1]["event"] == "service_stopped"


@on_postgres
def test_ctrl_c_is_forwarded_once_and_does_not_interrupt_requests(tmp_path: Path) -> None:
    with service_of(tmp_path / "data", 2) as (service, _):
        groups = {os.getpgid(process.pid) for process in workers_of(service)}
        assert os.getpgid(service.process.pid) not in groups, "a terminal's Ctrl-C reaches the parent alone"
        assert service.stop(signal.SIGINT) == 0
        assert [line["reason"] for line in service.events if line["event"] == "worker_stopping"] == ["SIGTERM"] * 2


@on_postgres
def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    with service_of(tmp_path / "data", 2) as (service, _):
        workers = workers_of(service)
        service.kill()
        _, alive = psutil.wait_procs(workers, timeout=DEADLINE_SECONDS)
        assert alive == []


@on_postgres
def test_the_parent_notifies_the_service_manager_only_while_all_workers_live(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.settimeout(DEADLINE_SECONDS)
        environment = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "600000"}
        with service_of(tmp_path / "data", 2, **environment) as (service, _):
            ready = manager.recv(4096).decode()
            assert ready.startswith(f"READY=1\nSTATUS=Listening on {service.url} with 2 workers")
            assert f"MAINPID={service.process.pid}" in ready
            assert manager.recv(4096) == b"WATCHDOG=1"
            frozen = workers_of(service)[0]
            frozen.suspend()
            while (message := manager.recv(4096)) == b"WATCHDOG=1":
                pass
            assert message.decode().startswith("STATUS=Worker ")
            frozen.resume()
            while manager.recv(4096) != b"WATCHDOG=1":
                pass
            service.process.send_signal(signal.SIGTERM)
            while not (message := manager.recv(4096)).startswith(b"STOPPING=1"):
                pass
            assert service.process.wait(DEADLINE_SECONDS) == 0


@on_postgres
def test_workers_that_cannot_start_end_the_parent_with_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "blobs").write_text("a file where the service needs a folder")
    refused = workspaced("serve", "--data", str(tmp_path), "--port", "0", "--workers", "2")
    assert (refused.returncode, refused.stdout) == (78, "")
    assert [line for line in refused.stderr.splitlines() if line.startswith("workspaced: ")] == [
        refused.stderr.splitlines()[-1]
    ]


@pytest.mark.parametrize("given", ["--workers", "WORKSPACED_WORKERS"])
def test_several_workers_on_sqlite_are_rejected_before_any_change(tmp_path: Path, given: str) -> None:
    words = ("--workers", "2") if given == "--workers" else ()
    refused = workspaced(
        *("serve", "--data", str(tmp_path / "data"), "--port", "0", *words),
        environment={} if words else {given: "2"},
    )
    assert (refused.returncode, refused.stdout) == (78, "")
    assert "--workers is 2, but with SQLite several processes are not faster" in refused.stderr
    assert "PostgreSQL" in refused.stderr
    assert not (tmp_path / "data").exists()


@on_postgres
def test_ports_in_use_are_named_with_their_option(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for words, option in ((("--port", port), "--port"), (("--port", "0", "--admin-port", port), "--admin-port")):
            refused = workspaced("serve", "--data", str(tmp_path), "--workers", "2", *words)
            assert refused.returncode == 69
            assert f"port {port} (Address already in use)" in refused.stderr
            assert f"set another one with {option}.\n" in refused.stderr


@on_postgres
def test_two_services_cannot_share_a_port_by_mistake(tmp_path: Path) -> None:
    with service_of(tmp_path / "data", 2) as (service, _):
        port = service.url.rpartition(":")[2]
        second = workspaced("serve", "--data", str(tmp_path / "other"), "--workers", "2", "--port", port)
        assert second.returncode == 69


@on_postgres
def test_rates_are_divided_among_the_workers(tmp_path: Path) -> None:
    # contract G20
    key = new_key(tmp_path / "data")
    rates = {"WORKSPACED_REQUESTS_PER_MINUTE": "600", "WORKSPACED_REQUEST_BURST": "9"}
    with service_of(tmp_path / "data", 2, **rates) as (service, _), service.client(key) as http:
        response = http.get("/v1/workspace")
        assert response.headers["RateLimit-Policy"] == '"default";q=300;w=60'
        assert response.headers["RateLimit"].startswith('"default";r=4;')


@on_postgres
def test_writes_from_two_workers_at_once_all_arrive(tmp_path: Path) -> None:
    key = new_key(tmp_path / "data")
    with service_of(tmp_path / "data", 2) as (service, admin):
        with service.client(key) as http:
            sink = sink_of(http)
        begin = threading.Barrier(8)

        def push(client: int) -> None:
            with service.client(key) as http:
                begin.wait(DEADLINE_SECONDS)
                for number in range(25):
                    response = http.post(f"{sink}/mass", json={"key": f"{client}.{number}", "value": "v"})
                    assert response.status_code == 200, response.text

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(push, range(8)))
        with service.client(key) as http:
            assert len(http.get(sink).json()["entries"]) == 200
        assert numbers(admin)['workspaced_entries_written_total{"outcome": "created"}'] == 200
