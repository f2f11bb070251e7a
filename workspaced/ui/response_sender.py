"""Send the response of a page."""

from __future__ import annotations

from typing import Final

from starlette.types import Receive, Scope, Send

from workspaced.http.part_sender import send_parts
from workspaced.http.responses import Response
from workspaced.ui.protection import SAFETY

_NO_STORE: Final = ("Cache-Control", "no-store")


async def send_response(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    """Send the response with the security headers. Parts are no longer sent after the client has disconnected."""
    try:
        await _send(response, scope, receive, send)
    finally:
        if response.parts is not None:
            await response.parts.aclose()


async def _send(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    named = {name for name, _ in response.headers}
    headers = [*response.headers, *(header for header in (*SAFETY, _NO_STORE) if header[0] not in named)]
    no_length = scope["method"] == "HEAD" and not response.body
    if response.parts is None and response.status != 304 and not no_length and "Content-Length" not in named:
        headers.append(("Content-Length", str(len(response.body))))
    encoded = [(name.encode(), value.encode()) for name, value in headers]
    await send({"type": "http.response.start", "status": response.status, "headers": encoded})
    if response.parts is None or scope["method"] == "HEAD":
        body = b"" if scope["method"] == "HEAD" else response.body
        await send({"type": "http.response.body", "body": body})
        return
    await send_parts(response.parts, receive, send)
