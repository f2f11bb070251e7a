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
from typing import cast

import httptools
import httpx

MOST_BODY_BYTES = 4 * 1024 * 1024
"""An answer about one entry that is larger than this is none."""

_Origin = tuple[str, str, int]


class _Answer:
    """What was received of an answer so far; the parser calls its methods."""

    __slots__ = ("body", "complete", "framed", "headers", "heads", "size")

    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.body: list[bytes] = []
        self.size = 0
        self.heads = 0
        self.framed = False
        self.complete = False


class _WholeResponse(httpx.Response):
    """An answer that has been read already; httpx would take longer to read it from memory than to make it."""

    def __init__(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        super().__init__(status, headers=headers, stream=_NOTHING_LEFT)
        self._content = body
        self.is_closed = self.is_stream_consumed = True


class _NothingLeft(httpx.AsyncByteStream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        no_more: tuple[bytes, ...] = ()
        for piece in no_more:
            yield piece


_NOTHING_LEFT = _NothingLeft()


class _Connection(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._answer = _Answer()
        self._waiting: asyncio.Future[httpx.Response] | None = None
        self._transport: asyncio.WriteTransport | None = None
        self.usable = False
        self.idle_since = 0.0

    # ---------------------------------------------------------------------------------------------- of asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)  # uvloop's is none by class
        self.usable = True

    def data_received(self, data: bytes) -> None:
        if self._waiting is None:
            # Nobody asked: the service closes with words (a 408), or speaks another protocol.
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._fail(httpx.RemoteProtocolError("what came is no HTTP answer") if self._answer.heads else _no_http())

    def connection_lost(self, exc: Exception | None) -> None:
        self.usable = False
        answer = self._answer
        if self._waiting is None:
            return
        if exc is None and answer.heads and not answer.framed:
            # Neither a length nor chunks: the end of the connection is the end of the body.
            self._done()
            return
        self._fail(httpx.RemoteProtocolError("the connection was closed before the answer was complete"))

    # -------------------------------------------------------------------------------------------- of httptools

    def on_header(self, name: bytes, value: bytes) -> None:
        answer = self._answer
        answer.headers.append((name, value))
        answer.framed = answer.framed or name.lower() in {b"content-length", b"transfer-encoding"}

    def on_headers_complete(self) -> None:
        self._answer.heads += 1

    def on_body(self, body: bytes) -> None:
        answer = self._answer
        answer.body.append(body)
        answer.size += len(body)
        if answer.size > MOST_BODY_BYTES:
            self._fail(httpx.ReadError("the answer is larger than any about one entry"))

    def on_message_complete(self) -> None:
        if self._parser.get_status_code() < 200:
            # 100 and 103 announce the answer; they are none.
            self._answer = _Answer()
            return
        self._done()

    # -------------------------------------------------------------------------------------------- of the owner

    def ask(self, message: bytes) -> asyncio.Future[httpx.Response]:
        """Send a request; the answer comes to the future."""
        if self._transport is None:
            raise AssertionError("asked before it was connected")
        self._answer = _Answer()
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(message)
        return self._waiting

    def close(self) -> None:
        """At once; what was not answered never will be."""
        self.usable = False
        self._waiting = None
        if self._transport is not None:
            self._transport.abort()

    def _done(self) -> None:
        waiting, self._waiting = self._waiting, None
        answer = self._answer
        self.usable = self.usable and self._parser.should_keep_alive()
        if waiting is not None and not waiting.done():
            waiting.set_result(_WholeResponse(self._parser.get_status_code(), answer.headers, b"".join(answer.body)))

    def _fail(self, error: httpx.TransportError) -> None:
        waiting = self._waiting
        self.close()
        if waiting is not None and not waiting.done():
            waiting.set_exception(error)


class QuickTransport(httpx.AsyncBaseTransport):
    """``verify`` as httpx takes it: True for the usual authorities, or a context. Times come from each request's extension."""

    def __init__(self, *, verify: ssl.SSLContext | bool = True, keepalive_seconds: float = 3.0) -> None:
        self._verify = verify
        self._keepalive_seconds = keepalive_seconds
        self._idle: dict[_Origin, list[_Connection]] = {}
        self._context: ssl.SSLContext | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """See `httpx.AsyncBaseTransport.handle_async_request`; the request's body is held in memory."""
        stream = request.stream
        body = b"".join(stream) if isinstance(stream, httpx.ByteStream) else await request.aread()
        timeout = request.extensions.get("timeout", {})
        url = request.url
        origin = (url.scheme, url.host, url.port or (443 if url.scheme == "https" else 80))
        connection = self._kept(origin) or await self._connect(origin, timeout.get("connect"))
        lines = [b"%b %b HTTP/1.1" % (request.method.encode("ascii"), url.raw_path)]
        lines += [b"%b: %b" % field for field in request.headers.raw]
        answering = connection.ask(b"\r\n".join([*lines, b"", body]))
        loop = asyncio.get_running_loop()
        seconds = timeout.get("read")
        late = loop.call_later(seconds, _too_late, answering) if seconds is not None else None
        try:
            response = await answering
        except BaseException:
            connection.close()
            raise
        finally:
            if late is not None:
                late.cancel()
        if connection.usable:
            connection.idle_since = loop.time()
            self._idle.setdefault(origin, []).append(connection)
        else:
            connection.close()
        response.request = request
        return response

    async def aclose(self) -> None:
        """Close the connections that nobody uses; one in use is closed by its user."""
        for connections in self._idle.values():
            for connection in connections:
                connection.close()
        self._idle.clear()

    def _kept(self, origin: _Origin) -> _Connection | None:
        """The connection that was used last; those that waited for too long are closed, for the service may be closing them."""
        kept = self._idle.get(origin)
        eldest = asyncio.get_running_loop().time() - self._keepalive_seconds
        while kept:
            connection = kept.pop()
            if connection.usable and connection.idle_since >= eldest:
                return connection
            connection.close()
        return None

    async def _connect(self, origin: _Origin, seconds: float | None) -> _Connection:
        scheme, host, port = origin
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(seconds):
                _, connection = await loop.create_connection(
                    _Connection, host, port, ssl=self._tls() if scheme == "https" else None
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


def _no_http() -> httpx.TransportError:
    return httpx.ProtocolError("what answered does not speak HTTP")


def _too_late(answering: asyncio.Future[httpx.Response]) -> None:
    if not answering.done():
        answering.set_exception(httpx.ReadTimeout("no answer in time"))
