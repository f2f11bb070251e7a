"""Send responses: whole, or in parts until the client disconnects."""

from __future__ import annotations

from ingestd.process.http_server.messages import send_parts
from workspaced.core.asgi import Receive, Scope, Send
from workspaced.http.responses import Headers, Response


async def send_response(response: Response, more: Headers, scope: Scope, receive: Receive, send: Send) -> None:
    """Send a response with further headers; those that it has itself have precedence. Close its parts in any case."""
    try:
        await _send(response, more, scope, receive, send)
    finally:
        if response.parts is not None:
            await response.parts.aclose()


async def _send(response: Response, more: Headers, scope: Scope, receive: Receive, send: Send) -> None:
    own = {name for name, _ in response.headers}
    headers = [*response.headers, *[header for header in more if header[0] not in own]]
    is_head = scope["method"] == "HEAD"
    # A read may leave out the body of HEAD, so its length is unknown.
    has_length = response.parts is None and response.status not in {204, 304} and not (is_head and not response.body)
    if has_length and "Content-Length" not in own:
        headers.append(("Content-Length", str(len(response.body))))
    encoded = [(name.encode(), value.encode()) for name, value in headers]
    await send({"type": "http.response.start", "status": response.status, "headers": encoded})
    if response.parts is None or is_head:
        await send({"type": "http.response.body", "body": b"" if is_head else response.body})
    else:
        await send_parts(response.parts, receive, send)
