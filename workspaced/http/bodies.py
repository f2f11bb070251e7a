"""Taking a request's body in, whole or piece by piece, no further than its limit (contract G9)."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from workspaced.core.problems import TooLargeProblem
from workspaced.http.content_coding import coding_of, longest_packed


async def read_body(receive: Receive, headers: Headers, *, limit: int) -> bytes:
    """The whole body, unpacked. The bytes are counted as they come, since a chunked body does not say its length.

    Raises:
        TooLargeProblem: it has more than ``limit`` bytes; the rest is not read.
        UnsupportedCoding: it is packed in a way that is not taken.
        Invalid: it is said to be packed with gzip, and is not.
        ClientDisconnect: the caller went away.
    """
    _require_declared(headers, limit)
    coding = coding_of(headers, limit=limit)
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(coding.take(message.get("body", b"")))
        if not message.get("more_body", False):
            coding.finish()
            return parts[0] if len(parts) == 1 else b"".join(parts)


class StreamedBody:
    """A body of any length, unpacked and handed on as it comes. ``content_type`` is the header's text, or empty."""

    def __init__(self, receive: Receive, headers: Headers, *, limit: int) -> None:
        """Nothing is read yet.

        Raises:
            TooLargeProblem: the body says that it has more than ``limit`` bytes.
            UnsupportedCoding: it is packed in a way that is not taken.
        """
        self._receive = receive
        self._headers = headers
        self._limit = limit
        self.content_type = headers.get("Content-Type", "")
        _require_declared(headers, limit)
        coding_of(headers, limit=limit)

    async def parts(self, *, limit: int | None = None) -> AsyncGenerator[bytes, None]:
        """The bytes, once; ``limit`` may be lower than the operation's.

        Raises:
            TooLargeProblem: there are more, unpacked; the rest is not read.
            Invalid: the body is said to be packed with gzip, and is not.
            ClientDisconnect: the caller went away before the end.
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


def _require_declared(headers: Headers, limit: int) -> None:
    declared = headers.get("Content-Length", "")
    most = longest_packed(headers, limit=limit)
    if declared.isascii() and declared.isdigit() and (len(declared) > 15 or int(declared) > most):
        raise TooLargeProblem(limit)
