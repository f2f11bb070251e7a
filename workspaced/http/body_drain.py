"""Send a response before the request's body has arrived completely, so that the client can still read it.

If a connection is closed while unread bytes still arrive, the kernel resets it, and the client may lose the response: a 413
would look like a broken connection. So the response is sent, but its end is delayed until the rest of the body has arrived
and been dropped, within limits.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

LONGEST_SECONDS: Final = 1.0
MOST_BYTES: Final = 65_536
MOST_BYTES_OF_CALLER: Final = 33_554_432
"""How much is dropped of a caller with a valid key: programs that send whole bodies read the response only afterwards."""
KNOWN_CALLER: Final = "known_caller"
"""The application sets this name in the state of a request with a valid key."""
BODY_RECEIVED: Final = "body_received"
"""A server sets this name in the state of a request after the whole body has arrived."""
DRAIN_BEGUN: Final = "drain_begun"
"""A server's function in the state of a request: it is called when only the end of the response is missing."""


class DrainBodyMiddleware:
    """Plain ASGI middleware for requests that have a body. It delays only the end of a response, never its last bytes."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        longest_seconds: float = LONGEST_SECONDS,
        most_bytes: int = MOST_BYTES,
        most_bytes_of_caller: int = MOST_BYTES_OF_CALLER,
    ) -> None:
        """Drop at most ``most_bytes``, and end after ``longest_seconds``; the server then closes the connection.

        ``most_bytes_of_caller`` holds for a caller with a valid key.
        """
        self._app = app
        self._most_bytes = most_bytes
        self._most_bytes_of_caller = most_bytes_of_caller
        self._longest_seconds = longest_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one HTTP request."""
        if BODY_RECEIVED in scope.get("state", ()) or not _has_body(scope):
            await self._app(scope, receive, send)
            return
        arriving = (b"expect", b"100-continue") not in scope["headers"]  # such a client has sent no body yet
        held = False

        async def watched_receive() -> Message:
            nonlocal arriving
            message = await receive()
            arriving = message["type"] == "http.request" and message.get("more_body", False)
            return message

        async def send_without_end(message: Message) -> None:
            nonlocal held
            if arriving and message["type"] == "http.response.start" and self._exceeds(scope):
                others = (line for line in message["headers"] if line[0].lower() != b"connection")
                message["headers"] = [*others, (b"connection", b"close")]
            elif arriving and message["type"] == "http.response.body" and not message.get("more_body", False):
                held = True
                message = {**message, "more_body": True}
            await send(message)

        await self._app(scope, watched_receive, send_without_end)
        if held:
            if begun := scope.get("state", {}).get(DRAIN_BEGUN):
                begun()
            with suppress(TimeoutError):  # the client has had its time to read the response
                dropped = 0
                async with asyncio.timeout(self._longest_seconds):
                    while arriving and dropped < self._most(scope):
                        dropped += len((await watched_receive()).get("body", b""))
                    if arriving:  # a client that still sends needs the rest of the time to read the response
                        await asyncio.Event().wait()
            await send({"type": "http.response.body", "body": b""})

    def _exceeds(self, scope: Scope) -> bool:
        """Return whether the body may be larger than what is drained, so that the connection probably ends."""
        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
        return not declared.isdigit() or int(declared) > self._most(scope)

    def _most(self, scope: Scope) -> int:
        return self._most_bytes_of_caller if KNOWN_CALLER in scope.get("state", ()) else self._most_bytes


def _has_body(scope: Scope) -> bool:
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
        for name, value in scope["headers"]
    )
