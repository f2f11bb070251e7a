"""Intermediaries between a daemon and a service: a TLS endpoint, and a proxy with a password."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Serve: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.contextmanager
def tls_end(port: int, context: ssl.SSLContext) -> Iterator[str]:
    """Listen on ``https://…`` and forward the connections, without TLS, to ``port`` of this machine."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _join(reader, writer, "127.0.0.1", port)

    with _listening(serve, context) as own:
        yield f"https://127.0.0.1:{own}"


@dataclass(slots=True)
class Proxy:
    """A running proxy. ``url``: its URL without user and password; ``targets``: the target of each tunnel."""

    url: str = ""
    targets: list[str] = field(default_factory=list)


@contextlib.contextmanager
def tunnelling_proxy(credentials: str) -> Iterator[Proxy]:
    """Run a proxy that supports only CONNECT and requires the credentials ``user:password``."""
    proxy = Proxy()
    expected = b"proxy-authorization: basic " + base64.b64encode(credentials.encode())

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *fields = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        method, target, _ = first.decode().split(" ")
        if expected.lower() not in [line.lower() for line in fields]:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        elif method != "CONNECT":
            writer.write(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")
        else:
            proxy.targets.append(target)
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            host, _, port = target.rpartition(":")
            await _join(reader, writer, host, int(port))

    with _listening(serve) as own:
        proxy.url = f"http://127.0.0.1:{own}"
        yield proxy


async def _join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int) -> None:
    """Copy bytes in both directions until one side ends."""
    beyond, back = await asyncio.open_connection(host, port)
    pumps = {asyncio.create_task(_pump(reader, back)), asyncio.create_task(_pump(beyond, writer))}
    try:
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        back.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(65_536):
        writer.write(piece)
        await writer.drain()


@contextlib.contextmanager
def _listening(serve: Serve, context: ssl.SSLContext | None = None) -> Iterator[int]:
    """Listen on a port of this machine in a separate thread until the block ends; yield the port."""
    loop = asyncio.new_event_loop()
    serving: set[asyncio.Task[Any]] = set()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None:
            raise AssertionError("called in a task")
        serving.add(task)
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, OSError):
            return
        finally:
            serving.discard(task)
            writer.close()

    async def begin() -> asyncio.Server:
        return await asyncio.start_server(one, "127.0.0.1", 0, ssl=context)

    async def end(listener: asyncio.Server) -> None:
        listener.close()
        for task in list(serving):
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)

    thread = threading.Thread(target=loop.run_forever, name="on the way")
    thread.start()
    try:
        listener = asyncio.run_coroutine_threadsafe(begin(), loop).result(30)
        yield int(listener.sockets[0].getsockname()[1])
        asyncio.run_coroutine_threadsafe(end(listener), loop).result(30)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()
