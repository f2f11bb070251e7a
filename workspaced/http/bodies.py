"""Read a request's body, whole or in parts, up to its limit (contract G9)."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from workspaced.core.asgi import ClientDisconnect, Receive
from workspaced.core.problems import TooLargeProblem
from workspaced.http.content_coding import coding_of, most_received_bytes
from workspaced.http.headers import RequestHeaders


async def read_body(receive: Receive, headers: RequestHeaders, *, limit: int) -> bytes:
    """Return the whole body, decompressed. Bytes are counted as they arrive: a chunked body has no Content-Length.

    Raises:
        TooLargeProblem: it has more than ``limit`` bytes; the rest is not read.
        UnsupportedCoding: its Content-Encoding is not supported.
        Invalid: its Content-Encoding is gzip, but it is not valid gzip.
        ClientDisconnect: the client disconnected.
    """
    _require_declared(headers, limit)
    coding = coding_of(headers, limit=limit)
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts += coding.pieces(message.get("body", b""))
        if not message.get("more_body", False):
            coding.finish()
            return parts[0] if len(parts) == 1 else b"".join(parts)


class StreamedBody:
    """A body of any length, decompressed while it arrives. ``content_type`` is the value of the header, or empty."""

    def __init__(self, receive: Receive, headers: RequestHeaders, *, limit: int) -> None:
        """Read nothing yet.

        Raises:
            TooLargeProblem: Content-Length is more than ``limit`` bytes.
            UnsupportedCoding: its Content-Encoding is not supported.
        """
        self._receive = receive
        self._headers = headers
        self._limit = limit
        self.content_type = headers.get("Content-Type", "")
        _require_declared(headers, limit)
        coding_of(headers, limit=limit)

    async def parts(self, *, limit: int | None = None) -> AsyncGenerator[bytes, None]:
        """Yield the bytes; can be called once. ``limit`` may be lower than the operation's.

        Raises:
            TooLargeProblem: it has more decompressed bytes; the rest is not read.
            Invalid: its Content-Encoding is gzip, but it is not valid gzip.
            ClientDisconnect: the client disconnected before the end.
        """
        most = self._limit if limit is None else min(limit, self._limit)
        _require_declared(self._headers, most)
        coding = coding_of(self._headers, limit=most)
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            for piece in coding.pieces(message.get("body", b"")):
                if piece:
                    yield piece
            more = message.get("more_body", False)
        coding.finish()


def _require_declared(headers: RequestHeaders, limit: int) -> None:
    declared = headers.get("Content-Length", "")
    most = most_received_bytes(headers, limit=limit)
    if declared.isascii() and declared.isdigit() and (len(declared) > 15 or int(declared) > most):
        raise TooLargeProblem(limit)
