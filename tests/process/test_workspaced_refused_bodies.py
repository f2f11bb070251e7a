"""A request that is rejected before its body has arrived: a client on a real connection can read the response."""

from __future__ import annotations

import http.client
import socket
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from ingestd.client import AsyncClient, errors
from tests.support.workspaced_process import DEADLINE_SECONDS, WorkspaceService, new_key

MEBIBYTE = 1_048_576


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[WorkspaceService, str]]:
    data = tmp_path_factory.mktemp("service") / "data"
    key = new_key(data)
    with WorkspaceService(data) as running:
        yield running, key


@pytest.mark.parametrize("size", [MEBIBYTE + 1, 2 * MEBIBYTE, 24 * MEBIBYTE])
async def test_a_body_over_the_limit_gets_413_with_and_without_a_declared_length(
    service: tuple[WorkspaceService, str], size: int
) -> None:
    # contract G9
    running, key = service
    async with httpx.AsyncClient(base_url=running.url, headers={"x-api-key": key}, timeout=DEADLINE_SECONDS) as caller:
        for body in (b" " * size, _pieces(size)):
            response = await caller.post("/v1/workspace", content=body)
            assert (response.status_code, response.json()["code"]) == (413, "too_large")
            assert response.headers["Connection"] == "close"


async def test_the_typed_client_raises_the_reason_of_the_rejection(service: tuple[WorkspaceService, str]) -> None:
    running, key = service
    async with AsyncClient(running.url, api_key=key) as client:
        workspace = await client.create_workspace("Rover")
        for _ in range(5):
            with pytest.raises(errors.TooLarge):
                await client.create_block(workspace.id, label="x" * (2 * MEBIBYTE))


@pytest.mark.parametrize("size", [1_000, 64 * MEBIBYTE])
def test_a_client_that_is_rejected_early_gets_the_response_before_it_has_sent_all(
    service: tuple[WorkspaceService, str], size: int
) -> None:
    # contract G33
    running, _ = service
    with _connected(running) as wire:
        wire.sendall(f"POST /v1/workspace HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n".encode())
        assert _status(wire) == 401
        if size < 65_536:
            wire.sendall(b" " * size + b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert _status(wire) == 200
        else:
            with pytest.raises(ConnectionError):
                wire.sendall(b" " * (64 * MEBIBYTE))


def _connected(running: WorkspaceService) -> socket.socket:
    host, port = running.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=DEADLINE_SECONDS)


def _status(wire: socket.socket) -> int:
    """Read the next response to its end and return its status."""
    response = http.client.HTTPResponse(wire)
    response.begin()
    response.read()
    return response.status


async def _pieces(size: int) -> AsyncIterator[bytes]:
    for start in range(0, size, 65_536):
        yield b" " * min(65_536, size - start)
