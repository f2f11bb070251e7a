"""The transport of single entries, with servers that send arbitrary bytes."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import resource
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import httpx
import pytest

from ingestd.client import Client, Timeouts
from ingestd.client.errors import Unreachable
from ingestd.client.fast_connection import FastResponse
from ingestd.client.fast_transport import FastTransport, ServerAddress
from ingestd.client.outcome_parser import fault_of
from ingestd.client.response import MAX_BODY_BYTES
from ingestd.core.outcome import Fault

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
READ_SECONDS = 0.3


class Server:
    """Responds to each request with the next of ``responses``, as bytes, in pieces; None closes the connection instead."""

    def __init__(self, *responses: bytes | None, pieces: int = 1_000_000) -> None:
        self.responses = list(responses)
        self.pieces = pieces
        self.connections = 0
        self.requests: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while self.responses:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0] or 0)
            self.requests.append(head + await reader.readexactly(length))
            response = self.responses.pop(0)
            if response is None:
                break
            for at in range(0, len(response), self.pieces):
                writer.write(response[at : at + self.pieces])
                await writer.drain()
            if b"close" in response or b"Content-Length: 99" in response:
                break


Serve: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(serve: Serve, context: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Yield the address; close every connection at the end, so that none outlives its test."""
    serving: list[asyncio.Task[Any] | None] = []

    async def serve_to_the_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.append(asyncio.current_task())
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    listener = await asyncio.start_server(serve_to_the_end, "127.0.0.1", 0, ssl=context)
    async with listener:
        port = listener.sockets[0].getsockname()[1]
        yield f"{'https' if context else 'http'}://127.0.0.1:{port}"
    async with asyncio.timeout(30):
        await asyncio.gather(*[task for task in serving if task is not None])


def transport_to(url: str, **options: Any) -> FastTransport:
    timeouts = Timeouts(write_seconds=1.0, read_seconds=READ_SECONDS, connect_seconds=60.0)
    return FastTransport(ServerAddress.of(url), timeouts, **options)


async def ask(transport: FastTransport, body: bytes = b'{"key":"a"}') -> FastResponse:
    return await transport.send(b"POST /v1/x%%2Fy HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))


async def fault(server: Server) -> Fault:
    async with listening(server.serve) as url:
        transport = transport_to(url)
        with pytest.raises(httpx.HTTPError) as raised:
            await ask(transport)
        transport.close()
    return fault_of(raised.value)


@pytest.mark.parametrize("pieces", [1, 7, 1_000_000])
@pytest.mark.parametrize(
    ("response", "body"),
    [
        (OK, b"{}"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, b"{}"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n", b"{}"),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{}", b"{}"),
        (b"HTTP/1.0 200 OK\r\nConnection: close\r\n\r\n{}", b"{}"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    ],
    ids=["length", "continue", "chunked", "until it closes", "HTTP/1.0", "no content"],
)
async def test_every_framing_is_read_with_any_split(response: bytes, body: bytes, pieces: int) -> None:
    server = Server(response, pieces=pieces)
    async with listening(server.serve) as url:
        transport = transport_to(url)
        assert (await ask(transport)).body == body
        transport.close()
    assert server.requests[0].startswith(b"POST /v1/x%2Fy HTTP/1.1\r\n")
    assert server.requests[0].endswith(b'\r\n\r\n{"key":"a"}')


async def test_a_connection_is_reused_unless_the_service_closes_it() -> None:
    server = Server(OK, OK, b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}", OK)
    async with listening(server.serve) as url:
        transport = transport_to(url)
        for _ in range(4):
            assert (await ask(transport)).status == 200
        transport.close()
    assert server.connections == 2


async def test_a_connection_that_was_idle_too_long_is_not_reused() -> None:
    server = Server(OK, OK)
    async with listening(server.serve) as url:
        transport = transport_to(url, keepalive_seconds=-1)
        await ask(transport)
        await ask(transport)
        transport.close()
    assert server.connections == 2


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (None, Fault.BROKEN),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}", Fault.BROKEN),
        (b"SSH-2.0-OpenSSH_9\r\n\r\n", Fault.PROTOCOL),
        (b"", Fault.READ_TIMEOUT),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{", Fault.READ_TIMEOUT),
    ],
    ids=["closed", "cut off", "another protocol", "silent", "silent midway"],
)
async def test_an_incomplete_response_is_a_specific_fault(response: bytes | None, expected: Fault) -> None:
    assert await fault(Server(response, OK)) is expected


async def test_an_endless_response_is_aborted() -> None:
    endless = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"100000\r\n" + bytes(0x100000) + b"\r\n"
    assert await fault(Server(endless + chunk * (MAX_BODY_BYTES // 0x100000 + 1))) is Fault.BROKEN


@pytest.mark.parametrize(
    "endless",
    [
        b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 100_000,
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 1_000_000,
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 20_000,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n" + b"x: y\r\n" * 100_000,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;" + b"x" * 1_000_000,
    ],
    ids=["headers", "a header", "interim responses", "trailers", "a chunk extension"],
)
async def test_an_endless_head_is_aborted(endless: bytes) -> None:
    assert await fault(Server(endless)) is Fault.PROTOCOL


async def test_small_chunks_do_not_count_as_a_head() -> None:
    chunks = b"1\r\nx\r\n" * 100_000
    server = Server(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")
    async with listening(server.serve) as url:
        response = await ask(transport := transport_to(url))
        transport.close()
    assert response.body == b"x" * 100_000


async def test_a_request_may_expect_a_longer_response() -> None:
    body = bytes(MAX_BODY_BYTES + 1)
    server = Server(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    async with listening(server.serve) as url:
        transport = transport_to(url)
        response = await transport.send(b"GET /v1/x HTTP/1.1\r\n\r\n", len(body))
        transport.close()
    assert response.body == body


async def test_no_server_and_an_unknown_host_are_distinguished() -> None:
    async with listening(Server().serve) as url:
        pass
    for address, expected in ((url, Fault.REFUSED), ("http://no-such-host.invalid/", Fault.UNRESOLVED)):
        with pytest.raises(httpx.ConnectError) as raised:
            await ask(transport_to(address))
        assert fault_of(raised.value) is expected


async def test_out_of_descriptors_is_not_taken_for_a_service_that_does_not_run() -> None:
    async with listening(Server().serve) as url:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        with open(os.devnull) as lowest:  # noqa: ASYNC230, PTH123 - the number of its descriptor matters
            free = lowest.fileno()
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
        try:
            with pytest.raises(httpx.ConnectError) as fast:
                await ask(transport_to(url))
            with Client(url) as client, pytest.raises(Unreachable) as ordinary:
                client.list_workspaces()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert fault_of(fast.value) is ordinary.value.fault is Fault.NO_DESCRIPTORS
    assert not ordinary.value.may_have_happened


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.ECONNREFUSED, Fault.REFUSED),
        (errno.EHOSTUNREACH, Fault.NO_ROUTE),
        (errno.ENETUNREACH, Fault.NO_ROUTE),
        (errno.EPERM, Fault.NOT_PERMITTED),
        (errno.ENFILE, Fault.NO_DESCRIPTORS),
    ],
)
def test_a_connection_that_fails_on_this_machine_says_why(number: int, expected: Fault) -> None:
    error = httpx.ConnectError("no connection")
    error.__cause__ = OSError(number, "")
    assert fault_of(error) is expected


async def test_a_service_that_does_not_read_is_waited_for_until_the_write_timeout() -> None:
    over = asyncio.Event()

    async def taken_and_left(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        await over.wait()

    async with listening(taken_and_left) as url:
        transport = transport_to(url)
        with pytest.raises(httpx.WriteTimeout):
            # More than the buffers of the system accept.
            await ask(transport, bytes(64 * 1024 * 1024))
        over.set()
        transport.close()


async def test_a_slow_response_is_not_aborted_while_it_arrives() -> None:
    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for at in range(0, len(OK), 8):
            writer.write(OK[at : at + 8])
            await asyncio.sleep(READ_SECONDS / 3)

    async with listening(slow) as url:
        transport = transport_to(url)
        assert (await ask(transport)).body == b"{}"
        transport.close()


async def test_the_timeout_of_a_reused_connection_starts_with_each_request() -> None:
    server = Server(OK, OK, b"", OK)
    async with listening(server.serve) as url:
        transport = transport_to(url)
        for _ in range(2):
            assert (await ask(transport)).body == b"{}"
        with pytest.raises(httpx.ReadTimeout):
            await ask(transport)
        transport.close()
    assert server.connections == 1


async def test_a_cancelled_request_closes_its_connection() -> None:
    server = Server(b"", OK)
    async with listening(server.serve) as url:
        transport = transport_to(url)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await ask(transport)
        server.responses = [OK]
        assert (await ask(transport)).status == 200
        transport.close()
    assert server.connections == 2


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a self-signed certificate for 127.0.0.1, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    files = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
            "-addext", "subjectAltName=IP:127.0.0.1", "-out", str(files[0]), "-keyout", str(files[1]),
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    return files


@pytest.mark.parametrize("trusted", [True, False])
async def test_a_certificate_is_trusted_only_if_configured(certificate: tuple[Path, Path], trusted: bool) -> None:
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(*certificate)
    verify: ssl.SSLContext | bool = ssl.create_default_context(cafile=certificate[0]) if trusted else True
    async with listening(Server(OK).serve, served) as url:
        transport = transport_to(url, verify=verify)
        if trusted:
            assert (await ask(transport)).body == b"{}"
        else:
            with pytest.raises(httpx.ConnectError) as raised:
                await ask(transport)
            assert fault_of(raised.value) is Fault.TLS
        transport.close()
