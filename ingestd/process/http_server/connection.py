"""One connection: an asyncio protocol that passes requests one by one to uvicorn's protocol, and closes slow clients.

A client has a deadline for sending the complete head of a request, and minimum rates for sending its body and for reading the
response. No deadline runs while the client waits for the application. uvicorn's protocol gets a complete head, then the body,
then nothing until the response has been sent. So requests never wait inside uvicorn.
"""

from __future__ import annotations

import asyncio
import re
import socket
import struct
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ingestd.process.http_server.limits import Reason
from ingestd.process.http_server.registry import Connections, source_of

STATE: Final = "connection"
"""The key under which the state of a request has its connection."""

_DRAIN_SECONDS: Final = 1.0
_DRAIN_BYTES: Final = 65_536
_PIECE_BYTES: Final = 4_096
"""A chunked body is passed on in pieces of at most this size. After a piece with the next request, uvicorn stops reading."""
_UNREAD_BYTES: Final = 1_048_576
"""The maximum number of bytes of a chunked body between two parts for the application, such as extensions and trailers."""
_LENGTH: Final = re.compile(rb"\r\ncontent-length:[ \t]*0*([0-9]{0,20})[ \t]*\r\n")
_RESET: Final = struct.pack("ii", 1, 0)


class _Window:
    """Measures whether a count of bytes grows by a minimum in each time window."""

    __slots__ = ("_count", "since")

    def __init__(self) -> None:
        self.since: float | None = None
        """When the current window began; None if nothing is expected of the client."""
        self._count = 0

    def start(self, count: int, now: float) -> float:
        """Begin a window if none is open; return the time at which the window began."""
        if self.since is None:
            self.since, self._count = now, count
        return self.since

    def is_too_slow(self, count: int, now: float, *, seconds: float, least: float) -> bool:
        """Return whether ``count`` grew by less than ``least`` bytes in the last ``seconds``."""
        if count - self._count >= least:
            self.since = None
        return now - self.start(count, now) > seconds


class _InnerTransport(asyncio.Transport):
    """The transport that uvicorn gets. When uvicorn stops reading, the connection keeps further bytes, within a limit."""

    def __init__(self, transport: asyncio.Transport, resumed: Callable[[], None]) -> None:
        super().__init__()
        self._resumed = resumed
        self._reads = True
        self.write = transport.write  # type: ignore[method-assign]  # saves a call for each response
        self.close = transport.close  # type: ignore[method-assign]
        self.is_closing = transport.is_closing  # type: ignore[method-assign]
        self.get_extra_info = transport.get_extra_info  # type: ignore[method-assign]

    def is_reading(self) -> bool:
        """Return whether uvicorn takes more bytes."""
        return self._reads

    def pause_reading(self) -> None:
        """Stop passing bytes to uvicorn."""
        self._reads = False

    def resume_reading(self) -> None:
        """Pass bytes to uvicorn again, soon."""
        self._reads = True
        self._resumed()


class BoundedConnection(asyncio.Protocol):
    """A connection within the limits of its listener. ``inner``: the arguments of uvicorn's protocol.

    `BoundedRequests`, which wraps the listener's application, reports the steps of each request.
    """

    def __init__(self, *, connections: Connections, app_state: dict[str, Any], **inner: Any) -> None:
        self._registry = connections
        self._limits = connections.limits
        self._inner = HttpToolsProtocol(app_state={**app_state, STATE: self}, **inner)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._below: _InnerTransport
        self._is_paused = False
        self.source = ""
        self._peer = ""
        self._is_admitted = False
        self._pending = b""
        self._head_deadline = self._loop.time() + self._limits.head_seconds
        self._is_active = False  # a request is passed on, and its response is not complete
        self._has_begun = False  # the application has the head of this request
        self._is_held = False  # the following bytes are not passed on yet
        self._is_ignoring = False  # the connection is ending, and its input is dropped
        self._dropped = 0
        self._is_draining = False
        self.has_response = False
        """Whether the response to the current request has begun."""
        self._is_chunked = False
        self.closes = False
        """Whether the connection ends with the response, because this class can't find the end of the request."""
        self._body_left = 0  # for a body with a length: the number of bytes that are not passed on yet
        self._is_receiving = False
        self._received = 0
        self._unread = 0
        self._sent = 0
        self._receiving = _Window()
        self._sending = _Window()

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Admit or refuse the connection."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transport is not a subclass
        name = transport.get_extra_info("peername")
        self._peer = str(name[0]) if isinstance(name, tuple) else ""
        self.source = self._peer if self._registry.is_proxy(self._peer) else source_of(self._peer)
        below = transport.get_extra_info("socket")
        reason = self._registry.admit(self, descriptor=below.fileno() if below else 0)
        if reason is None:
            self._is_admitted = True
            self._below = _InnerTransport(self._transport, self._resume)
            self._inner.connection_made(self._below)
            return
        keeps = self._registry.keep_refused(self)
        self._refuse(reason, 503, "The server has its maximum number of connections. Use fewer, or try again later.")
        if not keeps:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection from the registry."""
        self._registry.remove(self)
        if self._is_admitted:
            self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        """Pass the call on to uvicorn's protocol."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass the call on to uvicorn's protocol."""
        self._inner.resume_writing()

    def data_received(self, data: bytes) -> None:
        """Pass on the bytes of the current request; keep the bytes of later requests."""
        if self._is_ignoring:
            self._dropped += len(data)
            if self._dropped > _DRAIN_BYTES:
                self._transport.pause_reading()
            return
        self._received += len(data)
        has_begun = bool(self._pending)
        self._pending += data
        self._pass_on()
        if self._pending and not self._is_active and not has_begun:
            self._head_deadline = min(self._head_deadline, self._loop.time() + self._limits.head_seconds)

    def _pass_on(self) -> None:
        while self._pending and not self._is_held and not self._is_ignoring and not self._transport.is_closing():
            if not self._is_active:
                if not self._pass_head():
                    break
            elif not self._below.is_reading():
                break
            elif self._body_left:
                part = self._take(self._body_left)
                self._body_left -= len(part)
                self._is_held = not self._body_left
                self._inner.data_received(part)
            else:
                self._pass_pieces()
        is_full = len(self._pending) > self._limits.head_bytes
        if is_full != self._is_paused and not self._transport.is_closing() and not self._is_ignoring:
            self._is_paused = is_full
            (self._transport.pause_reading if is_full else self._transport.resume_reading)()

    def _resume(self) -> None:
        if self._pending:
            self._loop.call_soon(self._pass_on)

    def _pass_pieces(self) -> None:
        """Pass on a chunked body until uvicorn stops reading."""
        passed = 0
        while passed < len(self._pending) and self._below.is_reading() and not self._transport.is_closing():
            piece = self._pending[passed : passed + _PIECE_BYTES]
            passed += len(piece)
            self._inner.data_received(piece)
        self._take(passed)
        self._unread += passed
        if self._unread > _UNREAD_BYTES:
            self.note("bad_request")
            self.abort()

    def _take(self, most: int) -> bytes:
        part, self._pending = self._pending[:most], self._pending[most:]
        return part

    def _pass_head(self) -> bool:
        """Pass on the next head and the received part of its body, if it has a length. Return whether the head was complete."""
        if self._pending[:1] == b"\r":
            self._pending = self._pending.lstrip(b"\r\n")
        end = self._pending.find(b"\r\n\r\n") + 4
        if end < 4:
            # Bytes that can't be a head, such as TLS, are refused at once.
            end = 0 if self._pending[:1].isalpha() else len(self._pending)
        if self._pending.startswith(b"PRI "):
            self._refuse("bad_request", 400, "The request is not HTTP/1.1.")  # uvicorn waits for HTTP/2
        elif (end or len(self._pending)) > self._limits.head_bytes:
            self._refuse("head_too_large", 431, f"The head may have {self._limits.head_bytes} bytes at the most.")
        elif end:
            self._begin_request(end)
            return True
        return False

    def _begin_request(self, end: int) -> None:
        """Pass on a head of ``end`` bytes."""
        lines = self._pending[:end].lower()
        self._is_active, self._has_begun, self.has_response, self._unread = True, False, False, 0
        self._head_deadline = self._loop.time() + self._limits.head_seconds
        self._is_chunked = b"\r\ntransfer-encoding" in lines
        self.closes = self._is_chunked or b"\r\nupgrade" in lines
        # uvicorn refuses a head with both headers, with two lengths, or with a length that this pattern does not match.
        length = None if self._is_chunked else _LENGTH.search(lines)
        size = end + (int(length[1] or 0) if length else 0)
        part = self._take(size)
        self._body_left = size - len(part)
        # A chunked body is held until the application has the head, because uvicorn's parser adds trailers to the head's lines.
        self._is_held = not self._body_left
        self._inner.data_received(part)
        if self._transport.is_closing():
            self.note("bad_request")

    # Called for each request

    @property
    def body_has_arrived(self) -> bool:
        """Return whether all bytes of the request have certainly arrived."""
        return not self._is_chunked and not self._body_left

    def begin(self) -> None:
        """Note that the application has the head of the request."""
        self._has_begun = True
        if self._is_chunked:
            self._is_held = False
            self._pass_on()

    def begin_receiving(self) -> None:
        """Note that the application waits for a part of the body, which the client must send now."""
        self._is_receiving = True
        self._receiving.start(self._received, self._loop.time())

    def end_receiving(self) -> None:
        """Note that the application has a part of the body, and can take the next part."""
        self._is_receiving = False
        self._unread = 0
        self._pass_on()

    def begin_drain(self) -> None:
        """Note that only the end of the response is missing."""
        self._is_draining = True
        self._registry.note_ending(self)

    def note_response(self, size: int) -> None:
        """Note that the response has begun, and that ``size`` more bytes of its body are sent."""
        self.has_response = True
        self._sent += size

    def end(self, *, keep: bool) -> None:
        """Note that the response is complete. ``keep``: pass the next request on; if False, close when all bytes are sent."""
        self._is_active = self._is_held = self._is_draining = False
        if self._transport.is_closing():
            return
        if not keep:
            self._transport.close()
            return
        now = self._loop.time()
        self._head_deadline = now + (self._limits.head_seconds if self._pending else self._limits.idle_seconds)
        self._pass_on()

    # Called by the registry

    @property
    def awaits_request(self) -> bool:
        """See `OpenConnection`."""
        return not self._is_active

    @property
    def is_ending(self) -> bool:
        """See `OpenConnection`."""
        return self._is_draining or self._is_ignoring

    @property
    def stalled_since(self) -> float | None:
        """See `OpenConnection`."""
        if unsent := self._transport.get_write_buffer_size():
            since = self._sending.start(self._sent - unsent, self._loop.time())
            return 0.0 if self._pending else since  # a client that sends instead of reading is stalled at once
        return self._receiving.since if self._is_receiving else None

    def close_overdue(self, now: float) -> None:
        """See `OpenConnection`."""
        seconds = self._limits.stall_seconds
        least = max(1.0, self._limits.least_bytes_per_second * seconds)
        if unsent := self._transport.get_write_buffer_size():
            if self._sending.is_too_slow(self._sent - unsent, now, seconds=seconds, least=least):
                self.note("not_reading")
                self.abort()
            return
        self._sending.since = None
        if self._is_ignoring:
            return
        if self._is_active and not self._has_begun and now > self._head_deadline:
            # uvicorn neither found a request in the bytes nor refused them.
            self._refuse("bad_request", 400, "The request is not HTTP/1.1.")
            return
        if not self._is_active:
            if now <= self._head_deadline:
                return
            if self.has_response and not self._pending:
                self._transport.close()
            else:
                self._refuse("head_timeout", 408, "The head of the request was not complete in time.")
        elif not self._is_receiving:
            self._receiving.since = None
        elif self._receiving.is_too_slow(self._received, now, seconds=seconds, least=least):
            self._refuse("body_too_slow", 408, "The body of the request was sent too slowly.")

    def abort(self) -> None:
        """See `OpenConnection`."""
        below = self._transport.get_extra_info("socket")
        if below is not None and not self._transport.is_closing():
            # Without this, the kernel keeps megabytes for a client that does not read, long after the connection is closed.
            below.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)  # codespell:ignore linger
        self._transport.abort()

    def _refuse(self, reason: Reason, status: int, sentence: str) -> None:
        """Send a response if the client expects one. End the connection a second later, so that the client can read it."""
        self.note(reason)
        if self._transport.is_closing():
            return
        if self.has_response and self._is_active:
            self.abort()
            return
        if self._is_active or self._pending or not self._is_admitted:
            self._transport.write(_plain_response(status, sentence))
        self._is_ignoring = True
        self._pending = b""
        self._registry.note_ending(self)
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._transport.resume_reading()
        self._loop.call_later(_DRAIN_SECONDS, self.abort)

    def note(self, reason: Reason) -> None:
        """Report why the connection is refused or closed."""
        self._registry.note(reason, self._peer)


def _plain_response(status: int, sentence: str) -> bytes:
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "content-type: text/plain; charset=utf-8",
        f"content-length: {len(sentence) + 1}",
        "connection: close",
        *(("retry-after: 5",) if status == 503 else ()),
    )
    return "\r\n".join((*head, "", f"{sentence}\n")).encode("ascii")
