"""The server of every listener, over real connections: one request at a time, heads without trailers, ends of responses."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from ingestd.process.http_server.asgi import ASGIApp, Message, Receive, Scope, Send
from ingestd.process.http_server.limits import KNOWN_CALLER, ConnectionLimits
from ingestd.process.http_server.registry import Connections
from ingestd.process.http_server.server import HttpServer, listening

HEAD = b"POST /a HTTP/1.1\r\nHost: s\r\n"
GET = b"GET /%d HTTP/1.1\r\nHost: s\r\n\r\n"
SECONDS = 30.0


@dataclass
class Recorder:
    """An application that records its requests. ``refuses``: it responds before it reads the body."""

    refuses: bool = False
    is_known: bool = False
    scopes: list[Scope] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    in_progress: int = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.in_progress += 1
        assert self.in_progress == 1
        self.scopes.append(scope)
        if self.is_known:
            scope["state"][KNOWN_CALLER] = True
        body = b""
        message: Message = {"more_body": not self.refuses}
        while message.get("more_body"):
            message = await receive()
            body += message.get("body", b"")
        self.bodies.append(body)
        text = scope["raw_path"]
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(text))]})
        await asyncio.sleep(0)
        self.in_progress -= 1
        await send({"type": "http.response.body", "body": text})


@contextlib.asynccontextmanager
async def served(app: ASGIApp, **limits: Any) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Serve an application, and yield a connection to it."""
    connections = Connections(ConnectionLimits(connections=8, **limits))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with listening(HttpServer(app, connections, drain_seconds=1), listener), asyncio.timeout(SECONDS):
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            try:
                yield reader, writer
            finally:
                writer.transport.abort()


async def test_requests_of_one_connection_are_handled_one_after_the_other() -> None:
    # contract G31
    app = Recorder()
    async with served(app) as (reader, writer):
        post = HEAD + b"Content-Length: 70000\r\n\r\n" + b"x" * 70_000
        writer.write(b"".join(GET % number for number in range(50)) + post + GET % 50)
        received = b""
        while not received.endswith(b"/50"):
            received += await reader.read(65_536)
    assert [scope["raw_path"] for scope in app.scopes] == [*(b"/%d" % n for n in range(50)), b"/a", b"/50"]
    assert [response[-3:].strip() for response in received.split(b"HTTP/1.1 200 OK")[1:]][-2:] == [b"/a", b"/50"]
    assert app.bodies[50] == b"x" * 70_000


@pytest.mark.parametrize("size", [1, 7, 100_000])
async def test_a_request_may_arrive_in_pieces_of_any_size(size: int) -> None:
    app = Recorder()
    async with served(app) as (reader, writer):
        sent = b"\r\n" + GET % 1 + HEAD + b"Content-Length: 5\r\n\r\nabcde" + GET % 2
        for start in range(0, len(sent), size):
            writer.write(sent[start : start + size])
            await writer.drain()
            await asyncio.sleep(0)
        await reader.readuntil(b"/2")
    assert app.bodies == [b"", b"abcde", b""]


async def test_trailers_are_no_headers_and_a_chunked_request_ends_its_connection() -> None:
    app = Recorder()
    async with served(app) as (reader, writer):
        chunks = b"2\r\n{}\r\n0\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n"
        writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + HEAD + b"Content-Length: 0\r\n\r\n")
        received = await reader.read()
    assert received.count(b"HTTP/1.1 ") == 1
    assert b"connection: close" in received
    assert app.bodies == [b"{}"]
    assert app.scopes[0]["headers"] == [(b"host", b"s"), (b"transfer-encoding", b"chunked")]


async def test_a_length_with_many_zeros_is_one_and_a_length_beyond_64_bits_is_refused() -> None:
    app = Recorder()
    async with served(app) as (reader, writer):
        writer.write(HEAD + b"Content-Length: " + b"0" * 30 + b"2\r\n\r\n{}" + GET % 2)
        await reader.readuntil(b"/2")
        writer.write(HEAD + b"Content-Length: " + b"9" * 21 + b"\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
    assert app.bodies == [b"{}", b""]


async def test_a_large_chunked_body_arrives_whole_although_the_application_is_slower() -> None:
    app = Recorder()
    async with served(app) as (reader, writer):
        writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"186a0\r\n%b\r\n" % (b"x" * 100_000) * 20)
        writer.write(b"0\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
    assert app.bodies == [b"x" * 2_000_000]


@pytest.mark.parametrize("head", [b"Content-Length: 100000000", b"Transfer-Encoding: chunked"])
async def test_a_body_that_the_application_does_not_read_yet_is_not_kept(head: bytes) -> None:
    begun, release = asyncio.Event(), asyncio.Event()

    async def app(_scope: Scope, receive: Receive, _send: Send) -> None:
        begun.set()
        await release.wait()
        await receive()

    async with served(app) as (_, writer):
        writer.write(HEAD + head + b"\r\n\r\n" + b"2000000\r\n" + b"x" * 32 * 1_048_576)
        await begun.wait()
        drained = asyncio.create_task(writer.drain())
        done, _ = await asyncio.wait([drained], timeout=0.5)
        assert not done, "32 MiB were taken"
        release.set()
        drained.cancel()
        await asyncio.wait([drained])


async def test_an_upgrade_is_ignored_and_ends_the_connection() -> None:
    app = Recorder()
    async with served(app) as (reader, writer):
        writer.write(b"GET /1 HTTP/1.1\r\nHost: s\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n" + GET % 2)
        received = await reader.read()
    assert received.count(b"HTTP/1.1 200 OK") == 1
    assert [scope["raw_path"] for scope in app.scopes] == [b"/1"]


@pytest.mark.parametrize(("size", "is_known"), [(1_000, False), (1_000_000, True)])
async def test_a_body_that_is_not_read_is_dropped_and_the_next_request_is_served(size: int, *, is_known: bool) -> None:
    # contract G33
    app = Recorder(refuses=True, is_known=is_known)
    async with served(app) as (reader, writer):
        writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % size)
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        writer.write(b"x" * size + GET % 2)
        await reader.readuntil(b"/2")


@pytest.mark.parametrize("more", [b"Content-Length: 1000", b"Content-Length: 100000", b"Transfer-Encoding: chunked"])
async def test_a_body_that_never_ends_is_given_up(more: bytes) -> None:
    # contract G33
    async with served(Recorder(refuses=True)) as (reader, writer):
        writer.write(HEAD + more + b"\r\n\r\n")
        received = await reader.read()
    assert received.startswith(b"HTTP/1.1 200 ")
    assert received.endswith(b"/a")
    assert (b"connection: close" in received) == (more != b"Content-Length: 1000")


async def test_a_client_that_asked_first_and_is_refused_need_not_send_its_body() -> None:
    async with served(Recorder(refuses=True)) as (reader, writer):
        writer.write(HEAD + b"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n")
        received = await reader.read()
    assert received.startswith(b"HTTP/1.1 200 ")


async def test_a_client_that_asked_first_gets_its_permission() -> None:
    app = Recorder()
    async with served(app) as (reader, writer):
        writer.write(HEAD + b"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
        writer.write(b"abcde")
        assert (await reader.readuntil(b"/a")).startswith(b"HTTP/1.1 200 ")
    assert app.bodies == [b"abcde"]


async def test_a_slow_body_gets_408_although_single_bytes_arrive() -> None:
    # contract G30
    async with served(Recorder(), stall_seconds=0.4) as (reader, writer):
        writer.write(HEAD + b"Content-Length: 5000\r\n\r\n")
        response = asyncio.create_task(reader.read())
        while not response.done():
            writer.write(b"x")
            await asyncio.wait([response], timeout=0.05)
        assert response.result().startswith(b"HTTP/1.1 408 ")


async def test_everything_is_sent_before_the_connection_ends() -> None:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"connection", b"close")]})
        for _ in range(3):
            await send({"type": "http.response.body", "body": b"x" * 1_000_000, "more_body": True})
        await send({"type": "http.response.body", "body": b"end"})

    async with served(app) as (reader, writer):
        writer.write(GET % 1)
        received = await reader.read()
    assert received.count(b"x") >= 3_000_000
    assert received.endswith(b"end\r\n0\r\n\r\n")


async def test_a_request_that_the_end_of_the_listener_interrupts_is_to_be_sent_again() -> None:
    arrived = asyncio.Event()

    async def wait(scope: Scope, receive: Receive, send: Send) -> None:
        arrived.set()
        await asyncio.Event().wait()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = HttpServer(wait, Connections(ConnectionLimits(connections=8)), drain_seconds=0)
        async with listening(server, listener), asyncio.timeout(SECONDS):
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            writer.write(GET % 1)
            await arrived.wait()
        response = await reader.read()
        writer.close()
    assert response.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 5" in response


async def test_the_connections_are_closed_although_the_task_of_the_server_was_cancelled() -> None:
    """The thread of a source cancels all tasks of its loop, in any order."""
    server = HttpServer(Recorder(), Connections(ConnectionLimits(connections=8)), drain_seconds=1)
    with socket.create_server(("127.0.0.1", 0)) as listener, contextlib.suppress(asyncio.CancelledError):
        async with listening(server, listener) as serving:
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            writer.write(GET % 1)
            await reader.readuntil(b"/1")
            serving.cancel()
            await serving
    with contextlib.suppress(ConnectionResetError):
        assert await asyncio.wait_for(reader.read(), SECONDS) == b""
    writer.transport.abort()
