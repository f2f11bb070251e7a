"""Start, end and rejected start of the real service."""

from __future__ import annotations

import signal
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.free_port import free_port
from tests.support.workspaced_process import DEADLINE_SECONDS, WorkspaceService, new_key, workspaced


def test_ctrl_c_ends_it_cleanly_with_exit_code_0(tmp_path: Path) -> None:
    with WorkspaceService(tmp_path / "data") as service:
        assert httpx.get(f"{service.url}/readyz").status_code == 200
        assert service.stop(signal.SIGINT) == 0
        assert [event["event"] for event in service.events] == [
            "service_listening",
            "service_stopping",
            "service_stopped",
        ]
        assert service.events[0]["url"] == service.url


@pytest.mark.parametrize("signals", [1, 2])
def test_a_request_in_flight_gets_its_response_before_the_exit_unless_a_second_signal_comes(
    tmp_path: Path, signals: int
) -> None:
    # contract P5
    key = new_key(tmp_path / "data")
    body = b'{"label":"late"}'
    with WorkspaceService(tmp_path / "data", environment={"WORKSPACED_STALL_SECONDS": "600"}) as service:
        host, port = service.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=DEADLINE_SECONDS) as wire:
            wire.sendall(
                f"POST /v1/workspace HTTP/1.1\r\nHost: x\r\nx-api-key: {key}\r\n"
                f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n".encode()
            )
            assert wire.recv(4096).startswith(b"HTTP/1.1 100 ")  # so the request is in flight
            service.process.send_signal(signal.SIGTERM)
            wait_until_refused(host, int(port))
            if signals == 2:
                service.process.send_signal(signal.SIGTERM)
                with suppress(ConnectionResetError):
                    assert wire.recv(65_536) == b""
            else:
                wire.sendall(body)
                assert wire.recv(65_536).startswith(b"HTTP/1.1 201 ")
        assert service.process.wait(DEADLINE_SECONDS) == 0


def test_a_draining_service_is_not_ready_but_serves_until_its_time_is_over_or_a_second_signal(tmp_path: Path) -> None:
    # contract P5
    key = new_key(tmp_path / "data")
    with WorkspaceService(tmp_path / "data", environment={"WORKSPACED_DRAIN_SECONDS": "600"}) as service:
        service.process.send_signal(signal.SIGTERM)
        service.wait_for_event(event="service_stopping")
        refused = httpx.get(f"{service.url}/readyz")
        assert (refused.status_code, refused.json()["code"]) == (503, "stopping")
        with service.client(key) as http:
            assert http.post("/v1/workspace", json={"label": "w"}).status_code == 201
            assert service.stop() == 0
    with WorkspaceService(tmp_path / "data", environment={"WORKSPACED_DRAIN_SECONDS": "0.1"}) as service:
        assert service.stop() == 0


def wait_until_refused(host: str, port: int) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        try:
            socket.create_connection((host, port), timeout=DEADLINE_SECONDS).close()
        except ConnectionRefusedError:
            return
        except ConnectionResetError:  # accepted by the system while the listener was being closed
            continue
    raise AssertionError("the service still takes connections")


def test_it_notifies_the_service_manager_of_readiness_watchdog_and_stop(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.settimeout(DEADLINE_SECONDS)
        environment = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "300000"}
        with WorkspaceService(tmp_path / "data", environment=environment) as service:
            ready = manager.recv(4096).decode()
            assert ready.startswith(f"READY=1\nSTATUS=Listening on {service.url}")
            assert [manager.recv(4096) for _ in range(3)] == [b"WATCHDOG=1"] * 3
            service.process.send_signal(signal.SIGTERM)
            while (message := manager.recv(4096)) == b"WATCHDOG=1":
                pass
            assert message.startswith(b"STOPPING=1")
            assert service.process.wait(DEADLINE_SECONDS) == 0


def test_the_admin_listener_reports_metrics_and_health_and_nothing_else(tmp_path: Path) -> None:
    # contract G23
    key, port = new_key(tmp_path / "data"), str(free_port())
    admin = f"http://127.0.0.1:{port}"
    with WorkspaceService(tmp_path / "data", "--admin-port", port) as service:
        with service.client(key) as http:
            workspace = http.post("/v1/workspace", json={"label": "w"}).json()["id"]
            sink = http.post(f"/v1/workspace/{workspace}/data-sink", json={"label": "s"}).headers["Location"]
            for value in ("1", "1"):
                assert http.post(f"{sink}/mass", json={"key": "k", "value": value}).status_code == 200
            assert http.get(f"{sink}/none").status_code == 404
        assert httpx.get(f"{service.url}/v1/workspace", headers={"x-api-key": "edw_wrong"}).status_code == 401
        reported = httpx.get(f"{admin}/metrics", timeout=DEADLINE_SECONDS)
        assert reported.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        samples = {
            (sample.name, *sorted(sample.labels.values())): sample.value
            for family in text_string_to_metric_families(reported.text)
            for sample in family.samples
        }
        assert samples["workspaced_http_requests_total", "200", "POST", "data_sinks.mass"] == 2
        assert samples["workspaced_entries_written_total", "created"] == 1
        assert samples["workspaced_entries_written_total", "unchanged"] == 1
        assert samples["workspaced_http_refusals_total", "entry_not_found"] == 1
        assert samples["workspaced_authentication_failures_total", "malformed"] == 1
        assert samples["workspaced_http_requests_in_flight",] == 0
        assert samples["workspaced_database_up",] == 1
        assert samples["workspaced_process_resident_memory_bytes",] > 1_000_000
        assert any(name == "workspaced_build_info" for name, *_ in samples)
        refused = httpx.post(f"{admin}/metrics")
        assert (refused.status_code, refused.headers["Allow"]) == (405, "GET, HEAD")
        assert httpx.get(f"{admin}/v1/workspace").status_code == 404
        assert httpx.head(f"{admin}/healthz").content == b""
        assert key not in service.log


@pytest.mark.parametrize(("option", "other"), [("--port", "--admin-port"), ("--admin-port", "--port")])
def test_a_port_in_use_is_reported_in_one_sentence(tmp_path: Path, option: str, other: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused = workspaced("serve", "--data", str(tmp_path / "data"), option, port, other, "0")
    assert refused.returncode == 69
    assert refused.stdout == ""
    assert refused.stderr == (
        f"workspaced: The service can't listen on 127.0.0.1 port {port} (Address already in use). "
        f"Stop the program that uses it, or set another port with {option}.\n"
    )


@pytest.mark.parametrize("option", ["--host", "--admin-host"])
@pytest.mark.parametrize(
    ("host", "sentence"),
    [
        ("", "is empty. Give an address of this machine, or 0.0.0.0 for all."),
        ("[::1]", "(no address is known for this name). Give an address of this machine, such as 127.0.0.1 or ::1."),
        ("192.0.2.1", "(Cannot assign requested address). Give an address of this machine, such as 127.0.0.1 or ::1."),
    ],
)
def test_an_address_that_is_not_of_this_machine_is_reported(
    tmp_path: Path, option: str, host: str, sentence: str
) -> None:
    refused = workspaced("serve", "--data", str(tmp_path / "data"), "--admin-port", "40000", option, host)
    assert (refused.returncode, refused.stdout) == (69, "")
    assert refused.stderr.endswith(f"{sentence}\n")
    assert not (tmp_path / "data").exists()


def test_an_unwritable_folder_is_reported_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refused = workspaced("serve", "--data", str(tmp_path / "file" / "data"), "--port", "0")
    assert refused.returncode == 78
    assert refused.stderr == (
        f"workspaced: The folder {tmp_path}/file/data/blobs can't be used (Not a directory). "
        "Give a folder that this user may write to.\n"
    )


def test_a_database_of_a_newer_version_is_rejected_and_unchanged(tmp_path: Path) -> None:
    # contract P3
    new_key(tmp_path)
    database = sqlite3.connect(tmp_path / "workspaced.db")
    database.execute("INSERT INTO schema_step (number, oldest_program, at) VALUES (9999, 9999, 0)")
    database.commit()
    refused = workspaced("serve", "--data", str(tmp_path), "--port", "0")
    assert refused.returncode == 78
    assert "was written by a newer workspaced: it has schema 9999" in refused.stderr
    assert database.execute("SELECT max(number) FROM schema_step").fetchone() == (9999,)
    database.close()


def test_a_file_that_is_no_database_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "workspaced.db").write_bytes(b"not a database" * 1000)
    refused = workspaced("serve", "--data", str(tmp_path), "--port", "0")
    assert (refused.returncode, len(refused.stderr.splitlines())) == (78, 1)


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a service with a limit from the environment."""
    data = tmp_path_factory.mktemp("limited") / "data"
    key = new_key(data)
    with WorkspaceService(data, environment={"WORKSPACED_BULK_ITEMS": "2"}) as service, service.client(key) as client:
        yield client


def test_a_limit_from_the_environment_is_announced_and_enforced(http: httpx.Client) -> None:
    workspace = http.post("/v1/workspace", json={"label": "limited"}).json()["id"]
    created = http.post(f"/v1/workspace/{workspace}/data-sink", json={"label": "s"})
    assert created.headers["X-Bulk-Mass"] == "max-items=2, max-bytes=16777216"
    items = [{"key": key, "value": "v"} for key in "abc"]
    assert http.post(f"{created.headers['Location']}/mass", json=items).status_code == 400
    assert http.post(f"{created.headers['Location']}/mass", json=items[:2]).status_code == 200


def test_a_204_response_has_no_body_and_no_content_length(http: httpx.Client) -> None:
    # contract G11
    workspace = http.post("/v1/workspace", json={"label": "w"}).json()["id"]
    sink = http.post(f"/v1/workspace/{workspace}/data-sink", json={"label": "s"}).headers["Location"]
    head = http.head(sink)
    assert (head.status_code, head.content, head.headers["Content-Type"]) == (200, b"", "application/json")
    assert "Transfer-Encoding" not in head.headers
    http.post(f"{sink}/mass", json={"key": "k", "value": "v"})
    for method, path in (("PATCH", sink), ("DELETE", f"{sink}/k"), ("DELETE", sink)):
        response = http.request(method, path, json={"label": "x"})
        assert (response.status_code, response.headers["Content-Length"], response.content) == (200, "0", b"")
        assert "Content-Type" not in response.headers
