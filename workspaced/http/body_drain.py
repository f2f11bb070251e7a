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

SILENCE_SECONDS = 5.0
LONGEST_SECONDS = 30.0
MOST_BYTES = 33_554_432
BODY_RECEIVED: Final = "body_received"
"""A server sets this name in the state of a request after the whole body has arrived."""


class DrainBodyMiddleware:
    """Plain ASGI middleware for requests that have a body. It delays only the end of a response, never its last bytes."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        silence_seconds: float = SILENCE_SECONDS,
        longest_seconds: float = LONGEST_SECONDS,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """Stop draining after ``silence_seconds`` without a byte, after ``longest_seconds``, or after ``most_bytes``."""
        self._app = app
        self._most_bytes = most_bytes
        self._silence_seconds = silence_seconds
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
            if arriving and message["type"] == "http.response.body" and not message.get("more_body", False):
                held = True
                message = {**message, "more_body": True}
            await send(message)

        await self._app(scope, watched_receive, send_without_end)
        if held:
            with suppress(TimeoutError):  # the client has had its time to read the response
                dropped = 0
                async with asyncio.timeout(self._longest_seconds):
                    while arriving and dropped < self._most_bytes:
                        async with asyncio.timeout(self._silence_seconds):
                            dropped += len((await watched_receive()).get("body", b""))
            await send({"type": "http.response.body", "body": b""})


def _has_body(scope: Scope) -> bool:
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
        for name, value in scope["headers"]
    )
