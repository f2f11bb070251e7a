"""An answer that is given before its request's body has come whole, and that the caller can read all the same.

Where a connection is closed while bytes that nobody has read still arrive, the system resets it, and the caller may lose an
answer that is already on its way to him: a 413 would look like a broken connection. So the answer is sent, and its end is
held back until the rest of the body has come and been dropped, for a while.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.types import ASGIApp, Message, Receive, Scope, Send

SILENCE_SECONDS = 5.0
LONGEST_SECONDS = 30.0
MOST_BYTES = 33_554_432


class DrainBodyMiddleware:
    """Plain ASGI middleware, for requests that have a body. The last bytes of an answer are never held back, only its end."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        silence_seconds: float = SILENCE_SECONDS,
        longest_seconds: float = LONGEST_SECONDS,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """A caller is given up that sends nothing for so long, or has not ended after so long or so many bytes more."""
        self._app = app
        self._most_bytes = most_bytes
        self._silence_seconds = silence_seconds
        self._longest_seconds = longest_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one HTTP request on."""
        if not _has_body(scope):
            await self._app(scope, receive, send)
            return
        arriving = (b"expect", b"100-continue") not in scope["headers"]  # who asks first has sent nothing yet
        held = False

        async def watched() -> Message:
            nonlocal arriving
            message = await receive()
            arriving = message["type"] == "http.request" and message.get("more_body", False)
            return message

        async def unended(message: Message) -> None:
            nonlocal held
            if arriving and message["type"] == "http.response.body" and not message.get("more_body", False):
                held = True
                message = {**message, "more_body": True}
            await send(message)

        await self._app(scope, watched, unended)
        if held:
            with suppress(TimeoutError):  # then he has had his time to read the answer
                dropped = 0
                async with asyncio.timeout(self._longest_seconds):
                    while arriving and dropped < self._most_bytes:
                        async with asyncio.timeout(self._silence_seconds):
                            dropped += len((await watched()).get("body", b""))
            await send({"type": "http.response.body", "body": b""})


def _has_body(scope: Scope) -> bool:
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
        for name, value in scope["headers"]
    )
