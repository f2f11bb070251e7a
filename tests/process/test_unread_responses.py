"""Clients that request large responses and do not read them block no other client."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack
from pathlib import Path

import httpx

from tests.support.workspaced_process import DEADLINE_SECONDS, WorkspaceService, new_key

CLIENTS = 12
ENTRIES = 2_000


def test_other_clients_read_long_responses_while_more_clients_than_streams_do_not_read(tmp_path: Path) -> None:
    data = tmp_path / "data"
    owner = new_key(data)
    few = {"WORKSPACED_STREAMS": "2", "WORKSPACED_STREAMS_PER_KEY": "2", "WORKSPACED_STALL_SECONDS": "600"}
    with WorkspaceService(data, environment=few) as service, service.client(owner) as http, ExitStack() as stack:
        workspaces = [str(http.post("/v1/workspace", json={"label": label}).json()["id"]) for label in "ab"]
        sinks = [large_sink(http, workspace) for workspace in workspaces]
        reader = new_key_of(http, workspaces[0])
        host, port = service.url.removeprefix("http://").split(":")
        for _ in range(CLIENTS):
            wire = stack.enter_context(socket.socket())
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            wire.connect((host, int(port)))
            wire.sendall(f"GET {sinks[0]} HTTP/1.1\r\nHost: s\r\nx-api-key: {reader}\r\n\r\n".encode())
        await_deleted_files(service)  # unread responses are stored in files
        for _ in range(3):
            assert len(http.get(sinks[1]).json()["entries"]) == ENTRIES
            assert len(http.get(f"/v1/workspace/{workspaces[1]}/data-sink").json()[0]["entries"]) == ENTRIES
            assert http.get(f"/v1/workspace/{workspaces[0]}/data-sink/list").status_code == 200


def large_sink(http: httpx.Client, workspace: str) -> str:
    sink = str(http.post(f"/v1/workspace/{workspace}/data-sink", json={"label": "s"}).headers["Location"])
    for start in range(0, ENTRIES, 1_000):
        entries = [{"key": f"k{number}", "value": "x" * 4_000} for number in range(start, start + 1_000)]
        response = http.post(f"{sink}/mass", json=entries, headers={"Prefer": "return=minimal"})
        assert response.status_code == 200, response.text
    return sink


def new_key_of(http: httpx.Client, workspace: str) -> str:
    response = http.post("/v1/api-keys", json={"name": "svc:reader", "role": "reader", "workspaceId": workspace})
    assert response.status_code == 201, response.text
    return str(response.json()["key"])


def await_deleted_files(service: WorkspaceService) -> None:
    """Poll until the process has open deleted files, because it gives no signal of them."""
    end = time.monotonic() + DEADLINE_SECONDS
    while not any("(deleted)" in target for target in open_files(service)):
        assert time.monotonic() < end
        time.sleep(0.05)


def open_files(service: WorkspaceService) -> list[str]:
    found: list[str] = []
    for entry in Path(f"/proc/{service.process.pid}/fd").iterdir():
        try:
            found.append(str(entry.readlink()))
        except FileNotFoundError:  # closed in the meantime
            continue
    return found
