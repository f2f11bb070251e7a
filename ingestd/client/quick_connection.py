"""One connection of the quick transport: bytes in, llhttp, an answer out; one request at a time, watched by one timer."""

from __future__ import annotations

import asyncio
from typing import NamedTuple, cast

import httptools
import httpx

MOST_BODY_BYTES = 4 * 1024 * 1024
"""An answer about one entry that is larger than this is none."""


class QuickAnswer(NamedTuple):
    """A whole answer; ``headers`` as they came."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Patience(NamedTuple):
    """How long sending and receiving may stand still, in seconds; None: for ever."""

    write: float | None
    read: float | None


class QuickConnection(asyncio.Protocol):
    """Call `ask` when nothing is under way, and `close` at the end; ``usable`` tells whether another request may follow."""

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Future[QuickAnswer] | None = None
        self._transport: asyncio.WriteTransport | None = None
        self._patience = Patience(None, None)
        self._due: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._moved = False
        self._unsent: int | None = None
        self.usable = False
        self.idle_since = 0.0
        self._begin()

    def _begin(self) -> None:
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._size = 0
        self._headed = False
        self._framed = False

    # ---------------------------------------------------------------------------------------------- of asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Requests may be sent."""
        self._transport = cast("asyncio.WriteTransport", transport)  # uvloop's is none by class
        self.usable = True

    def data_received(self, data: bytes) -> None:
        """Feed the parser."""
        if self._waiting is None:
            # Nobody asked: the service closes with words (a 408), or speaks another protocol.
            self.close()
            return
        self._moved = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._fail(
                httpx.RemoteProtocolError("what came is no HTTP answer")
                if self._headed
                else httpx.ProtocolError("what answered does not speak HTTP")
            )

    def connection_lost(self, exc: Exception | None) -> None:
        """The end of the connection is the end of the answer, or a fault."""
        self.usable = False
        if self._waiting is None:
            return
        if exc is None and self._headed and not self._framed:
            # Neither a length nor chunks: the end of the connection is the end of the body.
            self._done()
            return
        self._fail(httpx.RemoteProtocolError("the connection was closed before the answer was complete"))

    def pause_writing(self) -> None:
        """More waits to be sent than the system takes: from now on it counts whether that becomes less."""
        if self._transport is not None:
            self._unsent = self._transport.get_write_buffer_size()

    def resume_writing(self) -> None:
        """Now it is the service's turn."""
        self._unsent, self._moved = None, True
        if self._waiting is not None:
            self._watch()

    # -------------------------------------------------------------------------------------------- of httptools

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header of the answer."""
        self._headers.append((name, value))
        if not self._framed:
            self._framed = name.lower() in {b"content-length", b"transfer-encoding"}

    def on_headers_complete(self) -> None:
        """It is HTTP that comes."""
        self._headed = True

    def on_body(self, body: bytes) -> None:
        """A piece of the body; too much of it is a fault."""
        self._body.append(body)
        self._size += len(body)
        if self._size > MOST_BODY_BYTES:
            self._fail(httpx.ReadError("the answer is larger than any about one entry"))

    def on_message_complete(self) -> None:
        """The answer, or what only announces it."""
        if self._parser.get_status_code() < 200:
            # 100 and 103 announce the answer; they are none.
            self._begin()
            return
        self._done()

    # -------------------------------------------------------------------------------------------- of the owner

    def ask(self, message: bytes, patience: Patience) -> asyncio.Future[QuickAnswer]:
        """Send a request; the answer, or an `httpx.TransportError`, comes to the future."""
        if self._transport is None:
            raise AssertionError("asked before it was connected")
        self._begin()
        self._waiting = waiting = self._loop.create_future()
        self._patience, self._moved = patience, False
        self._transport.write(message)
        self._watch()
        return waiting

    def close(self) -> None:
        """At once; what was not answered never will be."""
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
            waiting.set_result(QuickAnswer(self._parser.get_status_code(), self._headers, body))

    def _fail(self, error: httpx.TransportError) -> None:
        waiting = self._waiting
        self.close()
        if waiting is not None and not waiting.done():
            waiting.set_exception(error)

    # ---------------------------------------------------------------------------------------------------- time

    def _watch(self) -> None:
        """See to it that somebody looks in time. A timer for each request would cost more than reading its answer."""
        seconds = self._patience.read if self._unsent is None else self._patience.write
        self._due = None if seconds is None else self._loop.time() + seconds
        if self._due is None:
            return
        if self._timer is not None:
            if self._timer.when() <= self._due:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(self._due, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._waiting is None or self._due is None:
            return
        if self._loop.time() < self._due:
            # Of an older request, which was answered.
            self._timer = self._loop.call_at(self._due, self._look)
        elif self._stands_still():
            self._fail(
                httpx.ReadTimeout("no answer in time")
                if self._unsent is None
                else httpx.WriteTimeout("sending stands still")
            )
        else:
            self._watch()

    def _stands_still(self) -> bool:
        """Nothing came since the last look, or, while bytes wait to be sent, none went."""
        moved, self._moved = self._moved, False
        if self._unsent is None or self._transport is None:
            return not moved
        before, self._unsent = self._unsent, self._transport.get_write_buffer_size()
        return self._unsent >= before
