"""Taking a request's body in, no further than its limit (contract, G9)."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from workspaced.problems import TooLarge


async def read_body(receive: Receive, headers: Headers, *, limit: int) -> bytes:
    """The whole body. The bytes are counted as they come, since a chunked body does not say its length.

    Raises:
        TooLarge: it has more than ``limit`` bytes; the rest is not read.
        ClientDisconnect: the caller went away.
    """
    declared = headers.get("Content-Length", "")
    if declared.isascii() and declared.isdigit() and (len(declared) > 15 or int(declared) > limit):
        raise TooLarge(limit)
    parts: list[bytes] = []
    length = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        part: bytes = message.get("body", b"")
        length += len(part)
        if length > limit:
            raise TooLarge(limit)
        parts.append(part)
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)
