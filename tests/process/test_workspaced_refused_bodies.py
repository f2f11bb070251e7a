"""A refusal that is given before its request's body has come: over a real connection its answer can be read all the same."""

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
async def test_a_body_over_the_limit_is_answered_with_413_whether_its_length_is_told_or_not(
    service: tuple[WorkspaceService, str], size: int
) -> None:
    # contract G9
    running, key = service
    async with httpx.AsyncClient(base_url=running.url, headers={"x-api-key": key}, timeout=DEADLINE_SECONDS) as caller:
        for body in (b" " * size, _pieces(size)):
            answer = await caller.post("/v1/workspace", content=body)
            assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
            assert answer.headers["Connection"] == "close"


async def test_the_typed_client_is_told_what_was_wrong(service: tuple[WorkspaceService, str]) -> None:
    running, key = service
    async with AsyncClient(running.url, api_key=key) as client:
        workspace = await client.create_workspace("Rover")
        for _ in range(5):
            with pytest.raises(errors.TooLarge):
                await client.create_block(workspace.id, label="x" * (2 * MEBIBYTE))


@pytest.mark.parametrize("more", ["", "Connection: close\r\n"])
def test_who_is_refused_before_his_body_is_read_gets_the_answer_before_he_has_sent_it_all(
    service: tuple[WorkspaceService, str], more: str
) -> None:
    # contract G33
    running, _ = service
    host, port = running.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=DEADLINE_SECONDS) as wire:
        wire.sendall(f"POST /v1/workspace HTTP/1.1\r\nHost: x\r\n{more}Content-Length: {8 * MEBIBYTE}\r\n\r\n".encode())
        assert _status(wire) == 401
        wire.sendall(b" " * (8 * MEBIBYTE))
        if more:
            assert wire.recv(65_536) == b""  # closed in order, not reset
        else:
            wire.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert _status(wire) == 200


def _status(wire: socket.socket) -> int:
    """Of the next answer, which is read to its end."""
    answer = http.client.HTTPResponse(wire)
    answer.begin()
    answer.read()
    return answer.status


async def _pieces(size: int) -> AsyncIterator[bytes]:
    for start in range(0, size, 65_536):
        yield b" " * min(65_536, size - start)
