"""One connection of the fast transport: one request at a time, parsed by llhttp, with one timer."""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple, cast

import httptools
import httpx

from ingestd.client.response import MAX_BODY_BYTES
from ingestd.client.transport import Timeouts

_MAX_HEAD_BYTES: Final = 131_072


class FastResponse(NamedTuple):
    """A complete response. ``headers``: the names and values, as they arrived."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class FastConnection(asyncio.Protocol):
    """A connection. Call `send` when no request is in flight, and `close` at the end. ``usable``: `send` is permitted."""

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Future[FastResponse] | None = None
        self._transport: asyncio.WriteTransport | None = None
        self._timeouts = Timeouts()
        self._max_body_bytes = MAX_BODY_BYTES
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._moved = False
        self._unsent: int | None = None
        # Bytes received since the request, the end of the head, or the last part of the body; with interim responses.
        self._loose = 0
        self.usable = False
        self.idle_since = 0.0
        self._begin()

    def _begin(self) -> None:
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._size = 0
        self._headed = False
        self._framed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Mark the connection as usable."""
        self._transport = cast("asyncio.WriteTransport", transport)  # uvloop's transport is of another class
        self.usable = True

    def data_received(self, data: bytes) -> None:
        """Feed the parser."""
        if self._waiting is None:
            # No request is in flight: the service sends a 408 before it closes the connection, or uses another protocol.
            self.close()
            return
        self._moved = True
        self._loose += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._fail(
                httpx.RemoteProtocolError("the response is not HTTP")
                if self._headed
                else httpx.ProtocolError("the server does not speak HTTP")
            )
        if self._loose > _MAX_HEAD_BYTES:
            self._fail(httpx.ProtocolError("the head, the trailers or the chunks of the response are too large"))

    def connection_lost(self, exc: Exception | None) -> None:
        """End the response, or fail the request in flight."""
        self.usable = False
        if self._waiting is None:
            return
        if exc is None and self._headed and not self._framed:
            # The response has neither a length nor chunks: the end of the connection is the end of the body.
            self._done()
            return
        self._fail(httpx.RemoteProtocolError("the connection was closed before the response was complete"))

    def pause_writing(self) -> None:
        """Watch whether the write buffer shrinks. asyncio calls this method when the buffer is full."""
        if self._transport is not None:
            self._unsent = self._transport.get_write_buffer_size()

    def resume_writing(self) -> None:
        """Watch for the response, because the write buffer is nearly empty."""
        self._unsent, self._moved = None, True
        if self._waiting is not None:
            self._watch()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header of the response."""
        self._headers.append((name, value))
        if not self._framed:
            self._framed = name.lower() in {b"content-length", b"transfer-encoding"}

    def on_headers_complete(self) -> None:
        """Note that the server speaks HTTP."""
        self._headed = True
        if self._parser.get_status_code() >= 200:
            self._loose = 0

    def on_body(self, body: bytes) -> None:
        """Keep a chunk of the body; fail the request if the body is too large."""
        self._loose = 0
        self._body.append(body)
        self._size += len(body)
        if self._size > self._max_body_bytes:
            self._fail(httpx.ReadError("the response is larger than any valid response to such a request"))

    def on_message_complete(self) -> None:
        """Complete the request, unless the response is an interim one."""
        if self._parser.get_status_code() < 200:
            # 100 and 103 precede the response.
            self._begin()
            return
        self._done()

    def send(
        self, message: bytes, timeouts: Timeouts, max_body_bytes: int = MAX_BODY_BYTES
    ) -> asyncio.Future[FastResponse]:
        """Send a request. The future gets the response, or an `httpx.TransportError`."""
        if self._transport is None:
            raise AssertionError("sent before it was connected")
        self._begin()
        self._loose = 0
        self._waiting = waiting = self._loop.create_future()
        self._timeouts, self._moved, self._max_body_bytes = timeouts, False, max_body_bytes
        self._transport.write(message)
        self._watch()
        return waiting

    def close(self) -> None:
        """Abort the connection; a request in flight gets no response."""
        self.usable = False
        self._waiting = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is not None:
            self._transport.abort()

    def _done(self) -> None:
        waiting, self._waiting = self._waiting, None
        self.usable = self.usable and self._parser.should_keep_alive()
        if waiting is not None and not waiting.done():
            body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
            waiting.set_result(FastResponse(self._parser.get_status_code(), self._headers, body))

    def _fail(self, error: httpx.TransportError) -> None:
        waiting = self._waiting
        self.close()
        if waiting is not None and not waiting.done():
            waiting.set_exception(error)

    def _watch(self) -> None:
        """Set the deadline. One timer is reused, because a timer for each request would take longer than reading a response."""
        seconds = self._timeouts.read_seconds if self._unsent is None else self._timeouts.write_seconds
        self._due = self._loop.time() + seconds
        if self._timer is not None:
            if self._timer.when() <= self._due:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(self._due, self._check)

    def _check(self) -> None:
        self._timer = None
        if self._waiting is None:
            return
        if self._loop.time() < self._due:
            # The timer was set for an earlier request, which is complete.
            self._timer = self._loop.call_at(self._due, self._check)
        elif self._is_idle():
            self._fail(
                httpx.ReadTimeout("no response in time")
                if self._unsent is None
                else httpx.WriteTimeout("no byte was sent in time")
            )
        else:
            self._watch()

    def _is_idle(self) -> bool:
        """Return True if there was no progress since the last check.

        While bytes wait to be sent, progress means that bytes were sent; otherwise, that bytes were received.
        """
        moved, self._moved = self._moved, False
        if self._unsent is None or self._transport is None:
            return not moved
        before, self._unsent = self._unsent, self._transport.get_write_buffer_size()
        return self._unsent >= before
