"""Sending what a page answers."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Final

from starlette.types import Receive, Scope, Send

from workspaced.pages.protection import SAFETY
from workspaced.web.answers import Answer

_NO_STORE: Final = ("Cache-Control", "no-store")


async def send_answer(answer: Answer, scope: Scope, receive: Receive, send: Send) -> None:
    """Send it with the headers that keep a page safe. One in pieces ends when the caller has gone, whatever is left of it."""
    said = {name for name, _ in answer.headers}
    headers = [*answer.headers, *(header for header in (*SAFETY, _NO_STORE) if header[0] not in said)]
    unsaid = scope["method"] == "HEAD" and not answer.body
    if answer.parts is None and answer.status != 304 and not unsaid and "Content-Length" not in said:
        headers.append(("Content-Length", str(len(answer.body))))
    encoded = [(name.encode(), value.encode()) for name, value in headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
    if answer.parts is None or scope["method"] == "HEAD":
        body = b"" if scope["method"] == "HEAD" else answer.body
        await send({"type": "http.response.body", "body": body})
        return
    sending = asyncio.create_task(_stream(answer, send))
    leaving = asyncio.create_task(_left(receive))
    try:
        await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (sending, leaving):
            task.cancel()
        outcomes = await asyncio.gather(sending, leaving, return_exceptions=True)
    if isinstance(outcomes[0], Exception):
        raise outcomes[0]


async def _stream(answer: Answer, send: Send) -> None:
    if answer.parts is None:
        return
    async with aclosing(answer.parts) as parts:
        async for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _left(receive: Receive) -> None:
    """Until the caller has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
