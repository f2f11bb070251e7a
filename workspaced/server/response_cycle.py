"""uvicorn's cycle of a request and its response, with less work for requests and responses that are complete in one piece.

Most requests are small and arrive whole, and most responses repeat the header lines of the previous one. Everything else is
left to uvicorn.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from uvicorn.protocols.http.httptools_impl import HEADER_RE, HEADER_VALUE_RE, STATUS_LINE, RequestResponseCycle

# Headers that most responses repeat. None holds a secret, as Set-Cookie and Location may.
_REPEATED = frozenset({b"date", b"Accept-Encoding", b"Cache-Control", b"Content-Length", b"Content-Type", b"ETag"})
_CACHED_BYTES = 256
_UNCOMMON = frozenset({b"connection", b"transfer-encoding"})


class _HeaderLine(NamedTuple):
    """A valid header line as it is sent; ``length``: the value of Content-Length, -1 for another header."""

    text: bytes
    length: int


class ResponseCycle(RequestResponseCycle):
    """One request and its response."""

    async def receive(self) -> Any:
        """Return the next part of the request's body, at once if the whole rest has arrived."""
        if self.more_body or self.disconnected or self.response_complete or not self.message_event.is_set():
            return await super().receive()
        if self.waiting_for_100_continue:
            return await super().receive()
        self.flow.resume_reading()
        self.message_event.clear()
        body, self.body = bytes(self.body), bytearray()
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Any) -> None:
        """Send the start of a response or a part of its body.

        Raises:
            RuntimeError: the message is not the next one of a valid response.
        """
        if self.flow.write_paused or self.disconnected or not (self._begin(message) or self._end(message)):
            await super().send(message)

    def _begin(self, message: Any) -> bool:
        """Send status and headers if they need no attention of uvicorn; return whether they were sent."""
        if self.response_started or self.access_log or not self.keep_alive or message["type"] != "http.response.start":
            return False
        text, length = [STATUS_LINE[message["status"]]], -1
        for name, value in (*self.default_headers, *message["headers"]):
            is_cached = name in _REPEATED and len(value) <= _CACHED_BYTES
            line = _cached_line(name, value) if is_cached else _line(name, value)
            if line is None:
                return False
            text.append(line.text)
            length = max(length, line.length)
        if length < 0:
            return False
        text.append(b"\r\n")
        self.response_started = True
        self.waiting_for_100_continue = False
        self.expected_content_length = length
        self.chunked_encoding = False
        self.transport.write(b"".join(text))
        return True

    def _end(self, message: Any) -> bool:
        """Send the whole body of a response with Content-Length; return whether it was sent."""
        if not self.response_started or self.response_complete or self.chunked_encoding or not self.keep_alive:
            return False
        body = message.get("body", b"")
        if message["type"] != "http.response.body" or message.get("more_body", False):
            return False
        if len(body) != self.expected_content_length or self.scope["method"] == "HEAD":
            return False
        self.expected_content_length = 0
        self.transport.write(body)
        self.response_complete = True
        self.message_event.set()
        self.on_response()
        return True


def _line(name: bytes, value: bytes) -> _HeaderLine | None:
    """Return a header's line; None if uvicorn must check it or act on it."""
    lower = name.lower()
    if lower in _UNCOMMON or HEADER_RE.search(name) or HEADER_VALUE_RE.search(value):
        return None
    if lower == b"content-length" and not value.isdigit():
        return None
    return _HeaderLine(b"%b: %b\r\n" % (lower, value), int(value) if lower == b"content-length" else -1)


_cached_line = lru_cache(maxsize=1_024)(_line)
