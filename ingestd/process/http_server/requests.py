"""An ASGI application around another application: refuses malformed heads, and reports each step of a request to its connection.

A response may come before the request's body has arrived. If the connection were closed while unread bytes still arrive, the
kernel would reset the connection, and the client might lose the response: a 413 would look like a broken connection. So the
end of the response is delayed until the rest of the body has arrived and was dropped, within limits.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import lru_cache
from typing import Final

from ingestd.process.http_server.asgi import ASGIApp, Message, Receive, Scope, Send
from ingestd.process.http_server.connection import STATE, BoundedConnection
from ingestd.process.http_server.limits import KNOWN_CALLER, ConnectionLimits
from ingestd.process.request_headers import HOST

_DRAIN_SECONDS: Final = 1.0
_DRAIN_BYTES: Final = 65_536
_DRAIN_BYTES_OF_CALLER: Final = 33_554_432
"""The maximum number of bytes of a caller with a valid key that are read and dropped, because many programs read the response
only after they have sent the whole body."""
_CLOSE: Final = (b"connection", b"close")


class BoundedRequests:
    """Forwards the requests of `BoundedConnection` to ``app``."""

    def __init__(self, app: ASGIApp, limits: ConnectionLimits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one HTTP request."""
        connection: BoundedConnection = scope["state"][STATE]
        try:
            await self._forward(connection, scope, receive, send)
        except asyncio.CancelledError:  # the listener ends, after it has waited for the response
            if connection.has_response:
                raise
            await _send_text(send, 503, "The server ends. Try again later.", (b"retry-after", b"5"))
            connection.end(keep=False)

    async def _forward(self, connection: BoundedConnection, scope: Scope, receive: Receive, send: Send) -> None:
        # A copy, because uvicorn appends trailers to its list.
        headers = scope["headers"] = [(name, value.rstrip(b" \t")) for name, value in scope["headers"]]
        connection.begin()
        if (fault := _fault(scope, headers, self._limits)) is not None:
            connection.note("bad_request")
            await _send_text(send, *fault)
            connection.end(keep=False)
        elif connection.body_has_arrived and not connection.closes:

            async def send_and_end(message: Message) -> None:
                await send(message)
                connection.note_response(len(message.get("body", b"")))
                if message["type"] == "http.response.body" and not message.get("more_body", False):
                    connection.end(keep=True)

            await self._app(scope, receive, send_and_end)
        else:
            request = _Request(connection, scope, receive, send)
            await self._app(scope, request.receive, request.send)
            if request.is_held:
                await request.drain()


async def _send_text(send: Send, status: int, sentence: str, *more: tuple[bytes, bytes]) -> None:
    text = (b"content-type", b"text/plain; charset=utf-8")
    length = (b"content-length", str(len(sentence) + 1).encode())
    await send({"type": "http.response.start", "status": status, "headers": [text, length, _CLOSE, *more]})
    await send({"type": "http.response.body", "body": f"{sentence}\n".encode()})


class _Request:
    """The messages of one request and its response."""

    def __init__(self, connection: BoundedConnection, scope: Scope, receive: Receive, send: Send) -> None:
        self._connection = connection
        self._scope = scope
        self._receive = receive
        self._send = send
        self._is_complete = False  # the application has the whole body
        # A client that waits for "100 Continue" has sent no body yet.
        self._arrives = (b"expect", b"100-continue") not in scope["headers"]
        self._closes = connection.closes
        self.is_held = False
        """Whether only the end of the response is missing, because the request's body has not arrived."""

    @property
    def _has_arrived(self) -> bool:
        return self._is_complete or self._connection.body_has_arrived

    async def receive(self) -> Message:
        """Return the next part of the body."""
        if self._has_arrived:
            message = await self._receive()
        else:
            self._arrives = True
            self._connection.begin_receiving()
            try:
                message = await self._receive()
            finally:
                self._connection.end_receiving()
        self._is_complete = not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        """Send a part of the response; hold the end of the response while the body arrives."""
        connection = self._connection
        if message["type"] == "http.response.start":
            connection.note_response(0)
            if self._closes or not (self._has_arrived or self._can_be_drained()):
                others = [line for line in message["headers"] if line[0].lower() != b"connection"]
                message["headers"] = [*others, _CLOSE]
            await self._send(message)
            return
        connection.note_response(len(message.get("body", b"")))
        if message.get("more_body", False):
            await self._send(message)
        elif self._arrives and not self._has_arrived:
            self.is_held = True
            await self._send({**message, "more_body": True})
        else:
            await self._send(message)
            connection.end(keep=self._has_arrived and not self._closes)

    async def drain(self) -> None:
        """Drop the rest of the body, within limits, then end the response."""
        self._connection.begin_drain()
        with suppress(TimeoutError):  # the client has had its time to read the response
            dropped = 0
            async with asyncio.timeout(_DRAIN_SECONDS):
                while not self._is_complete and dropped < self._most_drained:
                    dropped += len((await self.receive()).get("body", b""))
                if not self._is_complete:  # a client that still sends needs the rest of the time to read the response
                    await asyncio.Event().wait()
        await self._send({"type": "http.response.body", "body": b""})
        self._connection.end(keep=self._has_arrived and not self._closes)

    @property
    def _most_drained(self) -> int:
        return _DRAIN_BYTES_OF_CALLER if KNOWN_CALLER in self._scope["state"] else _DRAIN_BYTES

    def _can_be_drained(self) -> bool:
        """Return whether the declared body can be drained completely, so that the connection can be kept."""
        declared = next((value for name, value in self._scope["headers"] if name == b"content-length"), b"")
        return self._arrives and declared.isdigit() and int(declared) <= self._most_drained


def _fault(scope: Scope, headers: list[tuple[bytes, bytes]], limits: ConnectionLimits) -> tuple[int, str] | None:
    """Return the status and the sentence for a head that must be refused; None if the head is accepted."""
    if len(headers) > limits.header_lines:
        return 431, f"The head may have {limits.header_lines} header lines at the most."
    if len(scope["raw_path"]) + len(scope["query_string"]) > limits.target_bytes:
        return 414, f"The path and query may have {limits.target_bytes} bytes together at the most."
    sentence = _malformed(scope["http_version"], headers)
    return (400, sentence) if sentence else None


def _malformed(version: str, headers: list[tuple[bytes, bytes]]) -> str:
    """Return why a head that uvicorn accepts is malformed by RFC 9112 (3.2, 6.1); empty if it is well-formed."""
    if version not in {"1.0", "1.1"}:
        return "The request is not HTTP/1.1."
    values = dict(headers)
    host, coding = values.get(b"host"), values.get(b"transfer-encoding")
    if host is None:
        if version == "1.1":
            return "The request must have one header line Host."
    elif not _is_host(host):
        return "The header Host must be a host name or address, and may have a port."
    if coding is not None and (coding.lower() != b"chunked" or version == "1.0"):
        return "The only Transfer-Encoding is 'chunked', in HTTP/1.1."
    if len(values) < len(headers):
        names = [name for name, _ in headers]
        if names.count(b"host") > 1 or names.count(b"transfer-encoding") > 1:
            return "The headers Host and Transfer-Encoding must have one line only."
    return ""


@lru_cache(maxsize=256)
def _is_host(value: bytes) -> bool:
    return HOST.fullmatch(value) is not None
