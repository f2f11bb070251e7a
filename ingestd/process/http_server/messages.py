"""Functions for ASGI messages that several listeners use: read a body, and send a response."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from ingestd.process.http_server.asgi import ClientDisconnect, Receive, Scope, Send


class BodyTooLarge(Exception):
    """The body has more bytes than the application reads."""


async def read_body(scope: Scope, receive: Receive, *, most: int) -> bytes:
    """Return the whole body of a request.

    Raises:
        BodyTooLarge: the body has more than ``most`` bytes; its rest is not read.
        ClientDisconnect: the client disconnected.
    """
    declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    if not declared.isdigit() or int(declared[:20]) > most:
        raise BodyTooLarge
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        if len(body) > most:
            raise BodyTooLarge
        if not message.get("more_body", False):
            return bytes(body)


async def send_head(send: Send, status: int, headers: Iterable[tuple[str, str]]) -> None:
    """Send the status and the headers of a response."""
    encoded = [(name.encode("ascii"), value.encode("latin-1")) for name, value in headers]
    await send({"type": "http.response.start", "status": status, "headers": encoded})


async def send_parts(parts: AsyncGenerator[bytes, None], receive: Receive, send: Send) -> None:
    """Send all parts and the end of the body; if the client disconnects, stop and close the parts."""
    sending = asyncio.create_task(_send_all(parts, send))
    disconnected = asyncio.create_task(_wait_for_disconnect(receive))
    try:
        await asyncio.wait({sending, disconnected}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (sending, disconnected):
            task.cancel()
        outcomes = await asyncio.gather(sending, disconnected, return_exceptions=True)
    if isinstance(outcomes[0], Exception):
        raise outcomes[0]


async def _send_all(parts: AsyncGenerator[bytes, None], send: Send) -> None:
    async with aclosing(parts):
        async for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
            # If the client has disconnected, sending does not yield to the event loop. Without this call, no other task would
            # run, and the disconnection would never be noticed.
            await asyncio.sleep(0)
    await send({"type": "http.response.body", "body": b""})


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
