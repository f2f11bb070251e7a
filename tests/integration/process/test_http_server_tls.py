"""TLS of a listener: the bounds of its clients hold from the first byte of the handshake."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ingestd.process.http_server.asgi import ASGIApp, Receive, Scope, Send
from ingestd.process.http_server.limits import ConnectionLimits
from ingestd.process.http_server.messages import read_body
from ingestd.process.http_server.registry import Connections
from ingestd.process.http_server.server import HttpServer, listening
from tests.support.certificates import self_signed

SECONDS = 30.0
GET = b"GET / HTTP/1.1\r\nHost: s\r\n\r\n"
GET_LARGE = b"GET /large HTTP/1.1\r\nHost: s\r\n\r\n"
GET_HUGE = b"GET /huge HTTP/1.1\r\nHost: s\r\n\r\n"
LARGE = 8 * 1_048_576
SIZES = {b"/large": LARGE, b"/huge": 4 * LARGE}
"""The bytes of a response by its path. The kernel's buffers take a large one, but never a huge one."""


@dataclass
class Listener:
    """A listener with TLS; ``closed`` has the reason of each connection that it closed."""

    address: tuple[str, int]
    client: ssl.SSLContext
    closed: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    open: int = 0

    async def connect(self, **more: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(*self.address, ssl=self.client, **more)

    async def connect_plain(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(*self.address)


@contextlib.asynccontextmanager
async def served(app: ASGIApp, folder: Path, **limits: Any) -> AsyncIterator[Listener]:
    certificate, key = self_signed(folder, "server")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as sock:
        found = Listener(sock.getsockname(), ssl.create_default_context(cafile=certificate))

        def count(change: int) -> None:
            found.open += change

        connections = Connections(
            ConnectionLimits(**{"connections": 8, **limits}),
            on_closed=lambda reason, _: found.closed.put_nowait(reason),
            on_count=count,
        )
        server = HttpServer(app, connections, tls=lambda: context, drain_seconds=1)
        async with listening(server, sock), asyncio.timeout(SECONDS):
            yield found
    assert not found.open


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Respond with scheme and size of the request, or with the bytes of `SIZES`."""
    body = await read_body(scope, receive, most=LARGE)
    text = b"x" * SIZES.get(scope["raw_path"], 0) or b"%s %d" % (scope["scheme"].encode(), len(body))
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(text))]})
    await send({"type": "http.response.body", "body": text})


async def test_requests_and_responses_of_any_size_pass(tmp_path: Path) -> None:
    async with served(echo, tmp_path) as listener:
        reader, writer = await listener.connect()
        head = b"POST / HTTP/1.1\r\nHost: s\r\nContent-Length: %d\r\n\r\n" % LARGE
        writer.write(GET + head + b"x" * LARGE + GET_LARGE)
        await reader.readuntil(b"https 0")
        await reader.readuntil(b"https %d" % LARGE)
        await reader.readuntil(b"\r\n\r\n")
        assert await reader.readexactly(LARGE) == b"x" * LARGE
        writer.close()
        await writer.wait_closed()
    assert listener.closed.empty()


async def test_a_handshake_that_stalls_is_closed_and_counted(tmp_path: Path) -> None:
    async with served(echo, tmp_path, head_seconds=0.2) as listener:
        reader, writer = await listener.connect_plain()
        writer.write(b"\x16\x03\x01\x02\x00")  # the beginning of a record
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
        assert await listener.closed.get() == "head_timeout"
        writer.close()


async def test_handshakes_that_stall_keep_no_other_client_out(tmp_path: Path) -> None:
    async with served(echo, tmp_path, connections=2) as listener:
        stalled = [await listener.connect_plain() for _ in range(6)]
        reader, writer = await listener.connect()
        writer.write(GET)
        assert await reader.readuntil(b"https 0")
        assert listener.open <= 2
        assert await listener.closed.get() == "evicted"
        for _, one in (*stalled, (reader, writer)):
            one.transport.abort()


@pytest.mark.parametrize("sent", [GET, b"\x16\x03\x01\x00\x05nonsense"])
async def test_a_client_without_tls_is_closed_and_counted(tmp_path: Path, sent: bytes) -> None:
    async with served(echo, tmp_path) as listener:
        reader, writer = await listener.connect_plain()
        writer.write(sent)
        with contextlib.suppress(ConnectionResetError):
            assert b"HTTP" not in await reader.read()
        assert await listener.closed.get() == "tls_failed"
        writer.close()


async def test_a_head_that_is_not_complete_in_time_gets_408(tmp_path: Path) -> None:
    async with served(echo, tmp_path, head_seconds=0.5) as listener:
        reader, writer = await listener.connect()
        writer.write(b"GET / HTTP/1.1\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 408 ")
        assert await listener.closed.get() == "head_timeout"
        writer.transport.abort()


async def test_a_refused_client_gets_the_reason(tmp_path: Path) -> None:
    # contract G31
    async with served(echo, tmp_path, connections=0) as listener:
        reader, writer = await listener.connect()
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 503 ")
        writer.transport.abort()
        assert await listener.closed.get() == "too_many_connections"


async def test_a_client_that_does_not_read_is_closed(tmp_path: Path) -> None:
    async with served(echo, tmp_path, stall_seconds=0.4) as listener:
        _, writer = await listener.connect(limit=4_096)
        writer.write(GET_HUGE)
        assert await listener.closed.get() == "not_reading"
        writer.transport.abort()


async def test_a_client_that_does_not_confirm_the_end_is_closed(tmp_path: Path) -> None:
    async with served(echo, tmp_path, idle_seconds=0.2, head_seconds=0.4) as listener:
        loop = asyncio.get_running_loop()
        with socket.create_connection(listener.address) as wire:
            ours, theirs = ssl.MemoryBIO(), ssl.MemoryBIO()
            session = listener.client.wrap_bio(theirs, ours, server_hostname="127.0.0.1")
            wire.setblocking(False)
            with contextlib.suppress(ssl.SSLWantReadError):
                session.do_handshake()
            await loop.sock_sendall(wire, ours.read())
            while True:
                theirs.write(await loop.sock_recv(wire, 65_536))
                with contextlib.suppress(ssl.SSLWantReadError):
                    session.do_handshake()
                    break
            session.write(GET)
            await loop.sock_sendall(wire, ours.read())
            while await loop.sock_recv(wire, 65_536):
                pass
    assert listener.closed.empty()
