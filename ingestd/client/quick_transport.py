"""HTTP/1.1 for many small requests: httptools on asyncio, behind httpx's own seam.

The default transport of httpx takes longer for a request of one entry than a service takes to answer it (`bench single`
measures this one beside it). This one does what single entries need and nothing else: no proxies, no HTTP/2, no compressed
answers (none is asked for), answers that fit into memory. TLS is asyncio's; the parser is llhttp. Whoever sends bounds how
many requests are in flight; each has a connection of its own, which is kept for the next.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from typing import NamedTuple

import httpx

from ingestd.client.quick_connection import Patience, QuickAnswer, QuickConnection


class Origin(NamedTuple):
    """Where a connection leads."""

    scheme: str
    host: str
    port: int


def origin_of(url: httpx.URL) -> Origin:
    """The origin of an address."""
    return Origin(url.scheme, url.host, url.port or (443 if url.scheme == "https" else 80))


class WholeResponse(httpx.Response):
    """An answer that has been read already; httpx would take longer to read it from memory than to make it."""

    def __init__(self, answer: QuickAnswer) -> None:
        super().__init__(answer.status, headers=answer.headers, stream=_NOTHING_LEFT)
        self._content = answer.body
        self.is_closed = self.is_stream_consumed = True


class _NothingLeft(httpx.AsyncByteStream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        no_more: tuple[bytes, ...] = ()
        for piece in no_more:
            yield piece


_NOTHING_LEFT = _NothingLeft()


class QuickTransport(httpx.AsyncBaseTransport):
    """``verify`` as httpx takes it: True for the usual authorities, or a context. Times come from each request's extension."""

    def __init__(self, *, verify: ssl.SSLContext | bool = True, keepalive_seconds: float = 3.0) -> None:
        self._verify = verify
        self._keepalive_seconds = keepalive_seconds
        self._idle: dict[Origin, list[QuickConnection]] = {}
        self._context: ssl.SSLContext | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """See `httpx.AsyncBaseTransport.handle_async_request`; the request's body is held in memory."""
        stream = request.stream
        body = b"".join(stream) if isinstance(stream, httpx.ByteStream) else await request.aread()
        timeout = request.extensions.get("timeout", {})
        lines = [b"%b %b HTTP/1.1" % (request.method.encode("ascii"), request.url.raw_path)]
        lines += [b"%b: %b" % field for field in request.headers.raw]
        answer = await self.ask(
            origin_of(request.url),
            b"\r\n".join([*lines, b"", body]),
            patience=Patience(write=timeout.get("write"), read=timeout.get("read")),
            connect_seconds=timeout.get("connect"),
        )
        response = WholeResponse(answer)
        response.request = request
        return response

    async def ask(
        self, origin: Origin, message: bytes, *, patience: Patience, connect_seconds: float | None
    ) -> QuickAnswer:
        """Send a request as it stands; for who makes thousands of requests that differ in little.

        Raises:
            httpx.TransportError: there was no whole answer.
        """
        connection = self._kept(origin) or await self._connect(origin, connect_seconds)
        try:
            answer = await connection.ask(message, patience)
        except BaseException:
            connection.close()
            raise
        if connection.usable:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.setdefault(origin, []).append(connection)
        else:
            connection.close()
        return answer

    async def aclose(self) -> None:
        """Close the connections that nobody uses; one in use is closed by its user."""
        for connections in self._idle.values():
            for connection in connections:
                connection.close()
        self._idle.clear()

    def _kept(self, origin: Origin) -> QuickConnection | None:
        """The connection that was used last; those that waited for too long are closed, for the service may be closing them."""
        kept = self._idle.get(origin)
        if not kept:
            return None
        eldest = asyncio.get_running_loop().time() - self._keepalive_seconds
        while kept:
            connection = kept.pop()
            if connection.usable and connection.idle_since >= eldest:
                return connection
            connection.close()
        return None

    async def _connect(self, origin: Origin, seconds: float | None) -> QuickConnection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(seconds):
                _, connection = await loop.create_connection(
                    QuickConnection, origin.host, origin.port, ssl=self._tls() if origin.scheme == "https" else None
                )
        except TimeoutError as error:
            raise httpx.ConnectTimeout("no connection in time") from error
        except (
            OSError
        ) as error:  # ssl.SSLError and socket.gaierror are OSErrors, and tell themselves apart as the cause
            raise httpx.ConnectError("no connection") from error
        return connection

    def _tls(self) -> ssl.SSLContext:
        if self._context is None:
            made = (
                self._verify if isinstance(self._verify, ssl.SSLContext) else httpx.create_ssl_context(trust_env=False)
            )
            self._context = made
        return self._context
