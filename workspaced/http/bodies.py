"""Read a request's body, whole or in parts, up to its limit (contract G9), and decompress gzip (RFC 9110, 8.4).

Responses announce the support with ``Accept-Encoding: gzip`` (RFC 9110, 12.5.3). A kilobyte of gzip can expand to a megabyte,
so a body's limit applies to the decompressed bytes, and decompression stops at the limit.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, Iterable, Iterator
from typing import Any

from workspaced.core.asgi import ClientDisconnect, Receive
from workspaced.core.problems import Invalid, TooLargeProblem, UnsupportedCoding
from workspaced.http.headers import RequestHeaders

CODING_HEADER = "Accept-Encoding"
SUPPORTED_CODING = "gzip"

_GZIP = 16 + zlib.MAX_WBITS
_PIECE_BYTES = 1_048_576


class BodyDecoder:
    """Counts the bytes of a body, and decompresses one gzip member if ``is_gzip``."""

    def __init__(self, limit: int, *, is_gzip: bool) -> None:
        self._limit = limit
        self._length = 0
        self._stream = zlib.decompressobj(_GZIP) if is_gzip else None

    def pieces(self, part: bytes) -> Iterable[bytes]:
        """Return the next bytes, decompressed, in pieces of bounded size.

        Raises:
            TooLargeProblem: the body has more bytes than the limit; decompression stops there.
            Invalid: the bytes are not gzip, or other bytes follow the gzip member.
        """
        if self._stream is not None:
            return self._decompressed(part, self._stream)
        self._count(part)
        return (part,)

    def _count(self, piece: bytes) -> None:
        self._length += len(piece)
        if self._length > self._limit:
            raise TooLargeProblem(self._limit)

    def _decompressed(self, part: bytes, stream: Any) -> Iterator[bytes]:
        if stream.eof and part:
            raise _invalid_gzip()
        while True:
            most = min(_PIECE_BYTES, self._limit - self._length + 1)
            try:
                piece = stream.decompress(part, most)
            except zlib.error:
                raise _invalid_gzip() from None
            self._count(piece)
            if stream.unused_data:
                raise _invalid_gzip()
            yield piece
            part = stream.unconsumed_tail
            if stream.eof or (not part and len(piece) < most):
                return

    def finish(self) -> None:
        """Check that the body is complete.

        Raises:
            Invalid: the gzip member is not complete.
        """
        if self._stream is not None and not self._stream.eof:
            raise _invalid_gzip()


def most_received_bytes(headers: RequestHeaders, *, limit: int) -> int:
    """Return how many bytes may be received for a body that may have ``limit`` decompressed bytes."""
    named = headers.get("Content-Encoding", "").strip().lower()
    return limit if named in {"", "identity"} else limit + limit // 1_000 + 1_024


def coding_of(headers: RequestHeaders, *, limit: int) -> BodyDecoder:
    """Return the decoder for the header Content-Encoding.

    Raises:
        UnsupportedCoding: the header names another coding.
    """
    named = headers.get("Content-Encoding", "").strip().lower()
    if named not in {"", "identity", "gzip", "x-gzip"}:
        raise UnsupportedCoding(named)
    return BodyDecoder(limit, is_gzip="gzip" in named)


def _invalid_gzip() -> Invalid:
    return Invalid.at("", "bad_gzip", "Content-Encoding is gzip, but the body is not one complete gzip member.")


async def read_body(receive: Receive, headers: RequestHeaders, *, limit: int) -> bytes:
    """Return the whole body, decompressed. Bytes are counted as they arrive, because a chunked body has no Content-Length.

    Raises:
        TooLargeProblem: the body has more than ``limit`` bytes; the rest of it is not read.
        UnsupportedCoding: the Content-Encoding is not supported.
        Invalid: the Content-Encoding is gzip, but the body is not valid gzip.
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
        """Check the headers. Nothing is read yet.

        Raises:
            TooLargeProblem: Content-Length is more than ``limit`` bytes.
            UnsupportedCoding: the Content-Encoding is not supported.
        """
        self._receive = receive
        self._headers = headers
        self._limit = limit
        self.content_type = headers.get("Content-Type", "")
        _require_declared(headers, limit)
        coding_of(headers, limit=limit)

    async def parts(self, *, limit: int | None = None) -> AsyncGenerator[bytes, None]:
        """Yield the bytes; can be called once. ``limit`` can only lower the limit of the operation.

        Raises:
            TooLargeProblem: the body has more decompressed bytes than the limit; the rest of it is not read.
            Invalid: the Content-Encoding is gzip, but the body is not valid gzip.
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
