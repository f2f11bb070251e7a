"""One table of requests for the three HTTP servers of the product: what is malformed is refused, and ends the connection.

A proxy and a server that read the same bytes as different requests let a client hide one request in another.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Mapping
from typing import TypeAlias

import pytest

from connectors.push.endpoint import PushEndpoint
from connectors.push.listener import PushListener
from ingestd.process.http_server.server import HttpServer, listening
from ingestd.settings.listen import ListenSettings
from ingestd.web.message import WebRequest, WebResponse, text_response
from ingestd.web.server import WebServer
from tests.support.push_client import free_address
from workspaced.core.asgi import Receive, Scope, Send
from workspaced.server.connections import admin_connections

Address: TypeAlias = tuple[str, int]
Server: TypeAlias = contextlib.AbstractAsyncContextManager[Address]

HOST = b"Connection: close\r\nHost: s\r\n"
POST = b"POST /bench HTTP/1.1\r\n"
HIDDEN = b"POST /hidden HTTP/1.1\r\nHost: s\r\nContent-Length: 0\r\n\r\n"

SERVED = {
    "a length": POST + HOST + b"Content-Length: 2\r\n\r\n{}",
    "no body": POST + HOST + b"Content-Length: 0\r\n\r\n",
    "chunks": POST + HOST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
    "a coding in upper case": POST + HOST + b"Transfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n",
    "a chunk with an extension": POST + HOST + b"Transfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\n\r\n",
    "HTTP/1.0": b"POST /bench HTTP/1.0\r\nHost: s\r\nContent-Length: 2\r\n\r\n{}",
    "an IPv6 host": POST + b"Host: [::1]:8403\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
    "blanks around a value": POST + b"Host: \t s \t\r\nConnection: close\r\nContent-Length: 0 \r\n\r\n",
    "two lines of a list": POST + HOST + b"Accept: a\r\nAccept: b\r\nContent-Length: 0\r\n\r\n",
    "an empty header": POST + HOST + b"X-Empty:\r\nContent-Length: 0\r\n\r\n",
}

MALFORMED = {
    # Lengths
    "a length and chunks": POST + HOST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "chunks and a length": POST + HOST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + HIDDEN,
    "two lengths": POST + HOST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} " + HIDDEN,
    "an equal length twice": POST + HOST + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    "a list of lengths": POST + HOST + b"Content-Length: 2, 2\r\n\r\n{}",
    "a signed length": POST + HOST + b"Content-Length: +2\r\n\r\n{}",
    "a negative length": POST + HOST + b"Content-Length: -2\r\n\r\n{}",
    "a hexadecimal length": POST + HOST + b"Content-Length: 0x2\r\n\r\n{}",
    "a length with a blank": POST + HOST + b"Content-Length: 1 2\r\n\r\n{}",
    "an empty length": POST + HOST + b"Content-Length:\r\n\r\n",
    # Codings
    "another coding": POST + HOST + b"Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n",
    "chunks before another coding": POST + HOST + b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    "chunks after another coding": POST + HOST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunks twice": POST + HOST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and identity": POST + HOST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "a quoted coding": POST + HOST + b'Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n',
    "chunks of HTTP/1.0": b"POST /bench HTTP/1.0\r\nHost: s\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    # Chunks
    "a signed chunk": POST + HOST + b"Transfer-Encoding: chunked\r\n\r\n+2\r\n{}\r\n0\r\n\r\n",
    "a prefixed chunk": POST + HOST + b"Transfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n",
    "an empty size of a chunk": POST + HOST + b"Transfer-Encoding: chunked\r\n\r\n\r\n{}\r\n0\r\n\r\n",
    "a chunk that is longer": POST + HOST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n",
    "LF after the size of a chunk": POST + HOST + b"Transfer-Encoding: chunked\r\n\r\n2\n{}\r\n0\r\n\r\n",
    "LF after a chunk": POST + HOST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\n0\r\n\r\n",
    "LF after the last chunk": POST + HOST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\n" + HIDDEN,
    # Line ends
    "LF after the request line": b"POST /bench HTTP/1.1\nHost: s\r\nContent-Length: 0\r\n\r\n",
    "LF after a header": POST + b"Host: s\nContent-Length: 0\r\n\r\n",
    "LF after the head": POST + HOST + b"Content-Length: 0\r\n\n",
    "LF everywhere": b"POST /bench HTTP/1.1\nHost: s\nContent-Length: 0\n\n",
    "CR in a value": POST + HOST + b"X-A: b\rTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n",
    "a folded line": POST + HOST + b"X-A: b\r\n c\r\nContent-Length: 0\r\n\r\n",
    "a folded first line": POST + b" X-A: b\r\n" + HOST + b"Content-Length: 0\r\n\r\n",
    # Names and values
    "a blank before the colon": POST + HOST + b"Content-Length : 2\r\n\r\n{}",
    "a blank in a name": POST + HOST + b"Content Length: 2\r\n\r\n{}",
    "no colon": POST + HOST + b"Content-Length\r\n\r\n",
    "no name": POST + HOST + b": x\r\nContent-Length: 0\r\n\r\n",
    "NUL in a name": POST + HOST + b"X\0A: b\r\nContent-Length: 0\r\n\r\n",
    "NUL in a value": POST + HOST + b"X-A: b\0c\r\nContent-Length: 0\r\n\r\n",
    "a name that is not ASCII": POST + HOST + b"X-\xc3\xa4: b\r\nContent-Length: 0\r\n\r\n",
    # Host and other headers with one value
    "no host": POST + b"Content-Length: 0\r\n\r\n",
    "two hosts": POST + HOST + b"Host: t\r\nContent-Length: 0\r\n\r\n",
    "an equal host twice": POST + HOST + HOST + b"Content-Length: 0\r\n\r\n",
    "a host with a blank": POST + b"Host: a b\r\nContent-Length: 0\r\n\r\n",
    "a host with a path": POST + b"Host: a/b\r\nContent-Length: 0\r\n\r\n",
    # The request line
    "HTTP/2.0": b"POST /bench HTTP/2.0\r\nHost: s\r\nContent-Length: 0\r\n\r\n",
    "HTTP/0.9": b"POST /bench HTTP/0.9\r\nHost: s\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.2": b"POST /bench HTTP/1.2\r\nHost: s\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.10": b"POST /bench HTTP/1.10\r\nHost: s\r\nContent-Length: 0\r\n\r\n",
    "no version": b"POST /bench\r\nHost: s\r\n\r\n",
    "http in lower case": b"POST /bench http/1.1\r\nHost: s\r\nContent-Length: 0\r\n\r\n",
    "a tab": b"POST\t/bench HTTP/1.1\r\nHost: s\r\nContent-Length: 0\r\n\r\n",
    "a blank in the target": b"POST /a b HTTP/1.1\r\nHost: s\r\nContent-Length: 0\r\n\r\n",
    "a target that is not ASCII": b"POST /\xc3\xa4 HTTP/1.1\r\nHost: s\r\nContent-Length: 0\r\n\r\n",
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32),
}


@contextlib.asynccontextmanager
async def daemons_page() -> AsyncIterator[Address]:
    opened: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def respond(_: WebRequest) -> WebResponse:
        return text_response(200, "served")

    server = WebServer(
        ListenSettings(address="127.0.0.1:0"),
        respond=respond,
        emit=lambda event: opened.set_result(event.address),  # type: ignore[attr-defined]
    )
    running = asyncio.create_task(server.run())
    try:
        host, _, port = (await opened).removeprefix("http://").partition(":")
        yield host, int(port)
    finally:
        running.cancel()
        await asyncio.wait([running])


class _Endpoint(PushEndpoint):
    """An endpoint that accepts every request."""

    def __init__(self) -> None:
        self.max_body = 1_000

    def check(self, headers: Mapping[str, str]) -> None:
        """Accept the request."""

    async def store(self, headers: Mapping[str, str], body: bytes) -> str:  # noqa: ARG002 - the signature is given
        """Accept the body."""
        return ""


@contextlib.asynccontextmanager
async def push() -> AsyncIterator[Address]:
    address, endpoint = free_address(), _Endpoint()
    listener = await asyncio.to_thread(PushListener.attach, address, "/bench", endpoint)
    try:
        host, _, port = address.partition(":")
        yield host, int(port)
    finally:
        await asyncio.to_thread(listener.detach, "/bench", endpoint)


@contextlib.asynccontextmanager
async def service() -> AsyncIterator[Address]:
    async def app(_scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            continue
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with listening(HttpServer(app, admin_connections()), listener):
            host, port = listener.getsockname()
            yield host, port


async def exchange(address: Address, request: bytes) -> list[int]:
    """Return the statuses of all responses until the server closes the connection.

    The empty lines after the request complete a head for a server that still waits for its end.
    """
    reader, writer = await asyncio.open_connection(*address)
    writer.write(request + b"\r\n\r\n")
    received = b""
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(30):
            while part := await reader.read(65_536):
                received += part
    writer.transport.abort()
    return [int(line.split(b" ")[1]) for line in received.split(b"\r\n") if line.startswith(b"HTTP/1.")]


@pytest.mark.parametrize("server", [daemons_page, push, service], ids=lambda one: str(one.__name__))
async def test_a_malformed_request_is_refused_and_nothing_after_it_is_read(server: type[Server]) -> None:
    # contract G29
    accepted: list[tuple[str, list[int]]] = []
    async with server() as address:
        for name, request in MALFORMED.items():
            statuses = await exchange(address, request)
            if len(statuses) > 1 or any(not 400 <= status < 600 for status in statuses):
                accepted.append((name, statuses))
    assert accepted == []


@pytest.mark.parametrize("server", [daemons_page, push, service], ids=lambda one: str(one.__name__))
async def test_a_request_that_only_looks_unusual_is_served(server: type[Server]) -> None:
    refused: list[tuple[str, list[int]]] = []
    async with server() as address:
        for name, request in SERVED.items():
            statuses = await exchange(address, request)
            if len(statuses) != 1 or not 200 <= statuses[0] < 300:
                refused.append((name, statuses))
    assert refused == []
