"""Sending what a page answers."""

from __future__ import annotations

from typing import Final

from starlette.types import Receive, Scope, Send

from workspaced.http.part_sender import send_parts
from workspaced.http.responses import Response
from workspaced.ui.protection import SAFETY

_NO_STORE: Final = ("Cache-Control", "no-store")


async def send_response(answer: Response, scope: Scope, receive: Receive, send: Send) -> None:
    """Send it with the headers that keep a page safe. One in pieces ends when the caller has gone, whatever is left of it."""
    try:
        await _send(answer, scope, receive, send)
    finally:
        if answer.parts is not None:
            await answer.parts.aclose()


async def _send(answer: Response, scope: Scope, receive: Receive, send: Send) -> None:
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
    await send_parts(answer.parts, receive, send)
