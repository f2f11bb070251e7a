"""The egress guard with real sockets: the client connects to the checked address."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Coroutine, Sequence
from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from workspaced.security.egress.client import Bounds, EgressClient, ReceiverUnreachable, system_resolver
from workspaced.security.egress.rules import Address, EgressRules

OPEN = EgressRules(allow_http=True, allowed_networks=(ip_network("127.0.0.0/8"),))
CLOSED = EgressRules(allow_http=True)


class Receiver:
    """A raw HTTP server on loopback that records requests and sends one response."""

    def __init__(self) -> None:
        self.connections = 0
        self.requests: list[bytes] = []
        self.response = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        self.silent = False
        self._gone = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line[16:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length: ")
            )
            self.requests.append(head + await reader.readexactly(length))
            if self.silent:
                await reader.read()
            writer.write(self.response)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()


@pytest.fixture
async def receiver() -> AsyncIterator[tuple[Receiver, int]]:
    receiver = Receiver()
    async with await asyncio.start_server(receiver.serve, "127.0.0.1", 0) as server:
        yield receiver, server.sockets[0].getsockname()[1]


class Resolver:
    """Returns one result after the other, and repeats the last one."""

    def __init__(self, *responses: Sequence[str]) -> None:
        self.asked = 0
        self._responses = responses

    async def __call__(self, _host: str, _port: int) -> Sequence[Address]:
        response = self._responses[min(self.asked, len(self._responses) - 1)]
        self.asked += 1
        return tuple(ip_address(text) for text in response)


async def test_the_host_header_has_the_name_and_the_body_is_unchanged(
    receiver: tuple[Receiver, int],
) -> None:
    server, port = receiver
    async with EgressClient(OPEN, bounds=Bounds(), resolve=Resolver(["127.0.0.1"])) as client:
        response = await client.post(f"http://hooks.example:{port}/in?x=1", headers=(("X-One", "1"),), body=b"{}")
    assert (response.status, response.body) == (200, b"ok")
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /in?x=1 HTTP/1.1\r\n")
    assert f"Host: hooks.example:{port}".encode() in head.split(b"\r\n")
    assert b"X-One: 1" in head.split(b"\r\n")
    assert body == b"{}"


async def test_a_name_that_resolves_to_loopback_after_the_check_is_never_connected_to(
    receiver: tuple[Receiver, int],
) -> None:
    server, port = receiver
    harmless = EgressRules(allow_http=True, allowed_networks=(ip_network("127.0.0.2/32"),))  # no server listens there
    resolver = Resolver(["127.0.0.2"], ["127.0.0.1"])
    async with EgressClient(harmless, bounds=Bounds(), resolve=resolver) as client:
        url = f"http://rebinding.example:{port}/"
        assert await _failure(client.post(url, headers=(), body=b"")) == "connection_failed"
        assert resolver.asked == 1, "the client connects to the checked address"
        assert await _failure(client.post(url, headers=(), body=b"")) == "unsafe_url"
    assert server.connections == 0


async def test_one_unsafe_address_among_several_is_sufficient_to_reject(receiver: tuple[Receiver, int]) -> None:
    # contract H15
    server, port = receiver
    async with EgressClient(CLOSED, bounds=Bounds(), resolve=Resolver(["1.1.1.1", "127.0.0.1"])) as client:
        with pytest.raises(ReceiverUnreachable, match=r"mixed\.example"):
            await client.post(f"http://mixed.example:{port}/", headers=(), body=b"")
    assert server.connections == 0


async def test_the_next_address_is_tried_if_one_does_not_respond(receiver: tuple[Receiver, int]) -> None:
    server, port = receiver
    async with EgressClient(OPEN, bounds=Bounds(), resolve=Resolver(["127.0.0.2", "127.0.0.1"])) as client:
        assert (await client.post(f"http://two.example:{port}/", headers=(), body=b"")).status == 200
    assert server.connections == 1


async def test_a_redirect_is_a_response_and_is_not_followed(receiver: tuple[Receiver, int]) -> None:
    server, port = receiver
    server.response = b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n"
    async with EgressClient(OPEN, bounds=Bounds()) as client:
        response = await client.post(f"http://127.0.0.1:{port}/", headers=(), body=b"")
    assert (response.status, server.connections) == (302, 1)


async def test_a_silent_receiver_is_abandoned_at_the_timeout(receiver: tuple[Receiver, int]) -> None:
    server, port = receiver
    server.silent = True
    async with EgressClient(OPEN, bounds=Bounds(total_seconds=0.3)) as client:
        assert await _failure(client.post(f"http://127.0.0.1:{port}/", headers=(), body=b"")) == "timeout"


async def test_a_response_is_read_up_to_the_limit_only(receiver: tuple[Receiver, int]) -> None:
    server, port = receiver
    server.response = b"HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n" + b"x" * 10_000_000
    async with EgressClient(OPEN, bounds=Bounds(response_bytes=1_000)) as client:
        response = await client.post(f"http://127.0.0.1:{port}/", headers=(), body=b"")
    assert response.body == b"x" * 1_000


@pytest.mark.parametrize("response", [b"nonsense\r\n\r\n", b""])
async def test_a_response_that_is_not_http_is_reported(receiver: tuple[Receiver, int], response: bytes) -> None:
    server, port = receiver
    server.response = response
    async with EgressClient(OPEN, bounds=Bounds()) as client:
        assert await _failure(client.post(f"http://127.0.0.1:{port}/", headers=(), body=b"")) == "bad_response"


async def test_an_unknown_name_and_a_closed_port_are_failures() -> None:
    async def unknown(host: str, port: int) -> Sequence[Address]:
        raise OSError("no such name")

    async with EgressClient(OPEN, bounds=Bounds(), resolve=unknown) as client:
        assert await _failure(client.post("https://unknown.example/", headers=(), body=b"")) == "connection_failed"


async def test_a_proxy_in_the_environment_is_not_used(
    receiver: tuple[Receiver, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, port = receiver
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    async with EgressClient(OPEN, bounds=Bounds()) as client:
        assert (await client.post(f"http://127.0.0.1:{port}/", headers=(), body=b"")).status == 200


async def test_names_are_resolved_by_the_system_and_its_failures_are_reported() -> None:
    assert ip_address("127.0.0.1") in await system_resolver("localhost", 80)
    with pytest.raises(OSError, match="label"):
        await system_resolver("x" * 64 + ".example", 80)


async def test_a_hanging_name_server_delays_neither_others_nor_the_attempt(
    receiver: tuple[Receiver, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    released = threading.Event()
    ask = socket.getaddrinfo

    def hanging(host: str, *rest: Any, **more: Any) -> Any:
        if host == "slow.example":
            released.wait(30)
        return ask("127.0.0.1", *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", hanging)
    _, port = receiver
    async with EgressClient(OPEN, bounds=Bounds(connect_seconds=2)) as client, asyncio.TaskGroup() as tasks:
        slow = [
            tasks.create_task(_failure(client.post(f"http://slow.example:{port}/", headers=(), body=b"")))
            for _ in range(40)
        ]
        assert (await client.post(f"http://fast.example:{port}/", headers=(), body=b"")).status == 200
        assert {await task for task in slow} == {"timeout"}
        released.set()


async def _failure(attempt: Coroutine[Any, Any, object]) -> str:
    with pytest.raises(ReceiverUnreachable) as refused:
        await attempt
    return refused.value.code
