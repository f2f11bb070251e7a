"""Clients that send too slowly, too much or nothing, over real connections to a real process."""

from __future__ import annotations

import resource
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.free_port import free_port
from tests.support.workspaced_process import DEADLINE_SECONDS, WorkspaceService, new_key

SHORT = {
    "WORKSPACED_HEAD_SECONDS": "1",
    "WORKSPACED_IDLE_SECONDS": "2",
    "WORKSPACED_STALL_SECONDS": "1",
    "WORKSPACED_CONNECTIONS_PER_ADDRESS": "8",
    "WORKSPACED_CONNECTIONS": "20",
}
MEBIBYTE = 1_048_576
COMPLETE = b"GET /healthz HTTP/1.1\r\nHost: s\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Running:
    service: WorkspaceService
    key: str
    admin: str


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    data = tmp_path_factory.mktemp("limited") / "data"
    key = new_key(data)
    port = free_port()
    with WorkspaceService(data, "--admin-port", str(port), environment=SHORT) as service:
        yield Running(service, key, f"http://127.0.0.1:{port}")


def connect(running: Running, *, source: str = "127.0.0.1") -> socket.socket:
    host, port = running.service.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=DEADLINE_SECONDS, source_address=(source, 0))


def read_response(wire: socket.socket) -> tuple[int, dict[str, str], str]:
    """Return status, headers and text of the response until the service closes; status 0 without a response."""
    received = bytearray()
    while part := wire.recv(65_536):
        received += part
    if not received:
        return 0, {}, ""
    head, _, body = bytes(received).partition(b"\r\n\r\n")
    status, *lines = head.decode("ascii").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    return int(status.split()[1]), headers, body.decode().strip()


def received_until_closed(wire: socket.socket) -> int:
    """Return the number of bytes until the service closes the connection, cleanly or not."""
    received = 0
    try:
        while part := wire.recv(65_536):
            received += len(part)
    except ConnectionResetError:
        return received
    return received


def assert_refused(response: tuple[int, dict[str, str], str], status: int) -> None:
    got, headers, body = response
    assert got == status
    assert headers["content-type"] == "text/plain; charset=utf-8"
    assert headers["connection"] == "close"
    assert body.endswith(".")


def closed(running: Running, reason: str) -> float:
    """Return how often the service closed a connection for this reason, by its metrics."""
    name = f'workspaced_http_connections_closed_total{{reason="{reason}"}} '
    lines = httpx.get(f"{running.admin}/metrics", timeout=DEADLINE_SECONDS).text.splitlines()
    return sum(float(line.removeprefix(name)) for line in lines if line.startswith(name))


def test_an_incomplete_head_gets_408_and_the_connection_is_closed(running: Running) -> None:
    # contract G29
    before = closed(running, "head_timeout")
    with connect(running) as wire:
        wire.sendall(b"GET /healthz HTTP/1.1\r\nHost: s\r\n")
        assert_refused(read_response(wire), 408)
    assert closed(running, "head_timeout") == before + 1


@pytest.mark.parametrize("first", [b"\r\n", COMPLETE])
def test_an_idle_connection_is_closed(running: Running, first: bytes) -> None:
    # contract G30
    with connect(running) as wire:
        wire.sendall(first)
        assert received_until_closed(wire) < 1_000


def test_a_client_that_does_not_read_its_response_is_disconnected(running: Running) -> None:
    # contract G30
    before = closed(running, "not_reading")
    with running.service.client(running.key) as http:
        sink = large_sink(http)
    with connect(running) as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        wire.sendall(f"GET {sink} HTTP/1.1\r\nHost: s\r\nx-api-key: {running.key}\r\n\r\n".encode())
        poll(lambda: closed(running, "not_reading") > before)
        assert received_until_closed(wire) < 24_000_000


def large_sink(http: httpx.Client) -> str:
    """Create a sink with a response larger than the system's buffers of a connection."""
    workspace = http.post("/v1/workspace", json={"label": "w"}).json()["id"]
    sink = str(http.post(f"/v1/workspace/{workspace}/data-sink", json={"label": "s"}).headers["Location"])
    value = "x" * 60_000
    for start in range(0, 400, 200):
        entries = [{"key": f"k{number}", "value": value} for number in range(start, start + 200)]
        response = http.post(f"{sink}/mass", json=entries, headers={"Prefer": "return=minimal"})
        assert response.status_code == 200, response.text
    return sink


def poll(reached: Callable[[], bool]) -> None:
    """Poll until the condition holds; metrics and log of another process give no signal."""
    end = time.monotonic() + DEADLINE_SECONDS
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /healthz?" + b"a" * 8_192 + b" HTTP/1.1\r\nHost: s\r\n\r\n", 414),
        (b"GET /healthz HTTP/1.1\r\nx: " + b"a" * 40_000 + b"\r\n\r\n", 431),
        (b"GET /healthz HTTP/1.1\r\n" + b"x: y\r\n" * 101 + b"\r\n", 431),
        (b"GET /healthz HTTP/1.1\r\n" + b"a" * 40_000, 431),
        (b"NONSENSE\r\n\r\n", 400),
    ],
)
def test_an_invalid_request_is_refused_and_ends_its_connection(
    running: Running, request_bytes: bytes, status: int
) -> None:
    # contract G29
    with connect(running) as wire:
        wire.sendall(request_bytes)
        assert_refused(read_response(wire), status)


def test_the_admin_listener_has_the_same_limits(running: Running) -> None:
    host, port = running.admin.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=DEADLINE_SECONDS) as wire:
        wire.sendall(b"GET /metrics HTTP/1.1\r\n" + b"x: y\r\n" * 101 + b"\r\n")
        assert_refused(read_response(wire), 431)


def test_requests_before_a_rejected_one_get_responses(running: Running) -> None:
    with connect(running) as wire:
        wire.sendall(COMPLETE + COMPLETE + b"NONSENSE\r\n\r\n")
        received = b""
        while part := wire.recv(65_536):
            received += part
    assert received.count(b"HTTP/1.1 200 OK") == 2


def test_a_flood_of_requests_on_one_connection_uses_bounded_memory(running: Running) -> None:
    # contract G31
    before = resident_bytes(running)
    with connect(running) as wire:
        wire.sendall(COMPLETE * 5_000)
        wire.shutdown(socket.SHUT_WR)
        received = b""
        while part := wire.recv(65_536):
            received += part
    assert 1 <= received.count(b"HTTP/1.1 200 OK") <= 5_000
    assert resident_bytes(running) - before < 16 * MEBIBYTE


@pytest.mark.parametrize("ending", [b"0\r\nx: ", b"1;"])
def test_chunk_extensions_and_trailers_are_bounded(running: Running, ending: bytes) -> None:
    with connect(running) as wire:
        head = (
            f"POST /v1/workspace HTTP/1.1\r\nHost: s\r\nx-api-key: {running.key}\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        wire.sendall(head.encode() + b"2\r\n{}\r\n" + ending)
        try:
            for _ in range(64):
                wire.sendall(b"a" * MEBIBYTE)
        except OSError:
            return
    pytest.fail("64 MiB were taken that are no part of the body")


def test_endless_headers_use_bounded_memory(running: Running) -> None:
    before = resident_bytes(running)
    line = b"x-filling: " + b"a" * 1_000 + b"\r\n"
    for _ in range(4):
        with connect(running) as wire:
            wire.sendall(b"GET /healthz HTTP/1.1\r\n")
            try:
                for _ in range(16):
                    wire.sendall(line * 1_000)
            except OSError:
                continue
            pytest.fail("16 MiB of headers were taken")
    assert resident_bytes(running) - before < 16 * MEBIBYTE


def resident_bytes(running: Running) -> int:
    pages = int(Path(f"/proc/{running.service.process.pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def test_an_address_with_too_many_requests_in_flight_is_rejected_and_others_are_not(running: Running) -> None:
    # contract G31
    head = (
        f"POST /v1/workspace HTTP/1.1\r\nHost: s\r\nx-api-key: {running.key}\r\nContent-Length: 500000\r\n\r\n".encode()
    )
    with ExitStack() as stack:
        for _ in range(8):
            wire = stack.enter_context(connect(running, source="127.0.0.3"))
            wire.sendall(head)
            wire.sendall(b" " * 50_000)
        with connect(running, source="127.0.0.3") as wire:
            wire.sendall(COMPLETE)
            assert_refused(read_response(wire), 503)
        with connect(running, source="127.0.0.4") as wire:
            wire.sendall(COMPLETE)
            assert wire.recv(65_536).startswith(b"HTTP/1.1 200 ")


def test_refused_clients_with_a_body_that_does_not_end_keep_no_other_of_their_address_out(running: Running) -> None:
    # contract G31, G33
    with ExitStack() as stack:
        for number in range(24):
            wire = stack.enter_context(connect(running, source="127.0.0.7"))
            wire.sendall(b"POST /v1/workspace HTTP/1.1\r\nHost: s\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n")
            assert wire.recv(12) == b"HTTP/1.1 401", number


def test_an_idle_connection_is_closed_for_a_new_one_of_its_address(running: Running) -> None:
    # contract G31
    before = closed(running, "evicted")
    with ExitStack() as stack:
        for _ in range(8):
            wire = stack.enter_context(connect(running, source="127.0.0.5"))
            wire.sendall(b"GET /healthz HTTP/1.1\r\n")
        with connect(running, source="127.0.0.5") as wire:
            wire.sendall(COMPLETE)
            assert wire.recv(65_536).startswith(b"HTTP/1.1 200 ")
    assert closed(running, "evicted") > before


def test_a_full_listener_disconnects_the_address_with_the_most_connections(running: Running) -> None:
    evicted, lines = closed(running, "evicted"), len(eviction_lines(running))
    with ExitStack() as stack:
        for number in range(24):
            wire = stack.enter_context(connect(running, source=f"127.0.0.{10 + number % 3}"))
            wire.sendall(b"GET /healthz HTTP/1.1\r\n")
        with connect(running, source="127.0.0.6") as wire:
            wire.sendall(COMPLETE)
            assert wire.recv(65_536).startswith(b"HTTP/1.1 200 ")
    assert closed(running, "evicted") >= evicted + 5
    assert len(eviction_lines(running)) <= lines + 1  # one line a minute for each reason


def eviction_lines(running: Running) -> list[dict[str, Any]]:
    """Return the log lines about closed idle connections."""
    return [event for event in running.service.events if event.get("reason") == "evicted"]


def test_a_service_with_few_descriptors_keeps_responding_to_operators(tmp_path: Path) -> None:
    data = tmp_path / "data"
    key = new_key(data)
    port = free_port()
    with WorkspaceService(data, "--admin-port", str(port), open_files=(250, 250)) as service:
        running = Running(service, key, f"http://127.0.0.1:{port}")
        with ExitStack() as stack:
            for number in range(400):
                wire = stack.enter_context(connect(running, source=f"127.0.0.{10 + number % 100}"))
                wire.sendall(b"GET /healthz HTTP/1.1\r\n")
            assert httpx.get(f"{running.admin}/healthz", timeout=DEADLINE_SECONDS).status_code == 200
            assert httpx.get(f"{running.admin}/readyz", timeout=DEADLINE_SECONDS).status_code == 200
            with connect(running) as wire:
                wire.sendall(COMPLETE)
                assert wire.recv(65_536).startswith(b"HTTP/1.1 200 ")


def test_the_limit_of_open_files_is_raised_and_logged(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with WorkspaceService(data, open_files=(512, 1_024)) as service:
        assert resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE)[0] == 1_024
        poll(lambda: "service_listening" in service.log)
        started = next(event for event in service.events if event["event"] == "service_listening")
        assert (started["connections"], started["open_files"]) == (1_024 - 128, 1_024)
