"""Send the parts of a response until the client disconnects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.types import Receive, Send


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
    await send({"type": "http.response.body", "body": b""})


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
