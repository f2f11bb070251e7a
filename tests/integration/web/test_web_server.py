"""The HTTP server of the listener in this process: limits of time and number, and handlers that fail."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from ingestd.settings.listen import ListenSettings
from ingestd.telemetry import Event
from ingestd.telemetry.catalogue.daemon import ListenerOpened
from ingestd.web.message import WebRequest, WebResponse, text_response
from ingestd.web.server import WebServer

Respond = Callable[[WebRequest], Awaitable[WebResponse]]


@contextlib.asynccontextmanager
async def serving(respond: Respond, **limits: Any) -> AsyncIterator[str]:
    """Run a server, and yield its address."""
    opened: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def emit(event: Event) -> None:
        assert isinstance(event, ListenerOpened)
        opened.set_result(event.address)

    server = WebServer(ListenSettings(address="127.0.0.1:0"), respond=respond, emit=emit, **limits)
    running = asyncio.create_task(server.run())
    try:
        yield await opened
    finally:
        running.cancel()
        await asyncio.wait([running])


async def hello(_: WebRequest) -> WebResponse:
    return text_response(200, "hello")


async def connect(address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    parts = urlsplit(address)
    return await asyncio.open_connection(parts.hostname, parts.port)


async def _abort(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def test_a_handler_that_fails_is_reported_once_and_gets_a_status() -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))

    async def fail(_: WebRequest) -> WebResponse:
        raise RuntimeError("a secret detail")

    async with serving(fail) as address, httpx.AsyncClient() as client:
        response = await client.get(address)
    assert response.status_code == 500
    assert "secret" not in response.text
    assert [str(one["exception"]) for one in reported] == ["a secret detail"]


async def test_a_client_that_is_slow_to_send_its_request_gets_408() -> None:
    async with serving(hello, request_seconds=0.1) as address:
        reader, writer = await connect(address)
        writer.write(b"GET / HTTP/1.1\r\nHost: local")
        assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
        writer.close()


async def test_a_new_connection_closes_the_oldest_one_without_a_request() -> None:
    async with serving(hello, max_connections=2) as address:
        first, second = await connect(address), await connect(address)
        async with httpx.AsyncClient() as client:
            assert (await client.get(address)).text == "hello\n"
        with contextlib.suppress(ConnectionError):
            assert await first[0].read() == b""
        second[1].write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert (await second[0].read()).startswith(b"HTTP/1.1 200 ")
        for _, writer in (first, second):
            writer.close()


@pytest.mark.parametrize(
    ("request_head", "status"),
    [
        (b"PUT / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", b"405"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"200"),
    ],
    ids=["refused, with a body that does not end", "not reading"],
)
async def test_clients_that_have_got_their_response_or_do_not_read_it_keep_no_other_out(
    request_head: bytes, status: bytes
) -> None:
    async def large(_: WebRequest) -> WebResponse:
        return WebResponse(body=bytes(32 << 20))

    async with serving(large, max_connections=2) as address, contextlib.AsyncExitStack() as stack:
        for _ in range(5):
            reader, writer = await connect(address)
            stack.push_async_callback(_abort, writer)
            writer.write(request_head)
            assert await reader.readexactly(13) == b"HTTP/1.1 " + status + b" "
            writer.transport.pause_reading()  # type: ignore[attr-defined]
        async with httpx.AsyncClient(timeout=30) as client:
            assert len((await client.get(address)).content) == 32 << 20


async def test_a_new_connection_is_refused_while_all_others_are_served() -> None:
    entered, release = asyncio.Semaphore(0), asyncio.Event()

    async def wait(_: WebRequest) -> WebResponse:
        entered.release()
        await release.wait()
        return text_response(200, "late")

    async with serving(wait, max_connections=2) as address, httpx.AsyncClient() as client:
        served = [asyncio.create_task(client.get(address)) for _ in range(2)]
        for _ in served:
            await entered.acquire()
        reader, writer = await connect(address)
        assert (await reader.read()).startswith(b"HTTP/1.1 503 ")
        writer.close()
        release.set()
        assert [(await task).text for task in served] == ["late\n", "late\n"]


async def test_a_stream_ends_when_its_client_reads_nothing() -> None:
    ended = asyncio.Event()

    async def chunks() -> AsyncGenerator[bytes, None]:
        try:
            while True:
                yield bytes(1 << 20)
        finally:
            ended.set()

    async def stream(_: WebRequest) -> WebResponse:
        return WebResponse(stream=chunks)

    async with serving(stream, stall_seconds=0.2) as address:
        reader, writer = await connect(address)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readexactly(1)
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        async with asyncio.timeout(30):
            await ended.wait()
        writer.transport.abort()


async def test_a_stream_ends_when_its_client_leaves_although_nothing_is_sent() -> None:
    ended = asyncio.Event()

    async def chunks() -> AsyncGenerator[bytes, None]:
        try:
            yield b"first"
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def stream(_: WebRequest) -> WebResponse:
        return WebResponse(stream=chunks)

    async with serving(stream) as address:
        reader, writer = await connect(address)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readuntil(b"first")
        writer.close()
        async with asyncio.timeout(30):
            await ended.wait()
