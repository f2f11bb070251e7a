"""Responses with a whole or streamed body, how they are sent (contract G11, G14, G17), and bodies of errors (RFC 9457)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from ingestd.process.http_server.messages import send_parts
from ingestd.wire import names
from workspaced.core.asgi import Receive, Scope, Send
from workspaced.core.json_body import encode
from workspaced.core.problems import Problem

Headers: TypeAlias = tuple[tuple[str, str], ...]


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """A response. ``parts``, if set, is the body in pieces instead of ``body``.

    ``written``: the number of written entries, by outcome; None for a replayed response.
    """

    status: int
    headers: Headers = ()
    body: bytes = b""
    parts: AsyncGenerator[bytes, None] | None = None
    written: Mapping[str, int] | None = None


def json_response(
    value: object, *, status: int = 200, headers: Headers = (), written: Mapping[str, int] | None = None
) -> Response:
    """Return a response with a JSON body."""
    return Response(
        status=status, headers=(("Content-Type", names.JSON), *headers), body=encode(value), written=written
    )


def streamed(parts: AsyncGenerator[bytes, None], *, headers: Headers = (), media_type: str = names.JSON) -> Response:
    """Return a response that sends its body in pieces."""
    return Response(status=200, headers=(("Content-Type", media_type), *headers), parts=parts)


NO_CONTENT = Response(status=200)
"""The interface document's "200: no content": zero bytes, no Content-Type, and not 204."""


def etag(version: int | str) -> tuple[str, str]:
    """Return a strong entity tag: a number that every change increments (timestamps can be equal), or a digest of bytes."""
    return ("ETag", f'"{version}"')


class HeldParts(AsyncGenerator[bytes, None]):
    """Parts of a response with a release function, which runs when the parts are closed, even if no part was read."""

    def __init__(self, parts: AsyncGenerator[bytes, None], release: Callable[[], Awaitable[None]]) -> None:
        """Await ``release`` once, when the parts are closed."""
        self._parts = parts
        self._release = release
        self._is_released = False

    async def asend(self, value: None) -> bytes:
        """Return the next part."""
        return await self._parts.asend(value)

    async def athrow(self, *arguments: Any) -> bytes:
        """Raise in the parts' generator."""
        return await self._parts.athrow(*arguments)

    async def aclose(self) -> None:
        """Close the parts, then release the resource."""
        try:
            await self._parts.aclose()
        finally:
            if not self._is_released:
                self._is_released = True
                await self._release()


async def send_response(response: Response, more: Headers, scope: Scope, receive: Receive, send: Send) -> None:
    """Send a response with further headers. Headers of the response itself have precedence. Always close its parts."""
    try:
        await _send(response, more, scope, receive, send)
    finally:
        if response.parts is not None:
            await response.parts.aclose()


async def _send(response: Response, more: Headers, scope: Scope, receive: Receive, send: Send) -> None:
    own = {name for name, _ in response.headers}
    headers = [*response.headers, *[header for header in more if header[0] not in own]]
    is_head = scope["method"] == "HEAD"
    # For HEAD, a handler may omit the body. Then the length of the body is unknown.
    has_length = response.parts is None and response.status not in {204, 304} and not (is_head and not response.body)
    if has_length and "Content-Length" not in own:
        headers.append(("Content-Length", str(len(response.body))))
    encoded = [(name.encode(), value.encode()) for name, value in headers]
    await send({"type": "http.response.start", "status": response.status, "headers": encoded})
    if response.parts is None or is_head:
        await send({"type": "http.response.body", "body": b"" if is_head else response.body})
    else:
        await send_parts(response.parts, receive, send)


def problem_response(problem: Problem, *, instance: str, request_id: str, document_form: bool) -> Response:
    """Return the response for a problem. The body always has ``error``, the only member that the interface document defines.

    ``document_form``: the interface document shows a 400 of this operation as exactly ``{"error":"Invalid request"}``, and the
    caller did not accept application/problem+json.
    """
    headers = ((names.ERROR_CODE, problem.code), *problem.headers)
    if document_form and problem.status == 400:
        return json_response({"error": "Invalid request"}, status=400, headers=headers)
    body: dict[str, object] = {
        "type": "about:blank",
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
        "instance": instance,
        "code": problem.code,
        "requestId": request_id,
        "error": problem.title,
        **problem.extra,
    }
    if problem.mistakes:
        body["errors"] = [
            {"pointer": mistake.pointer, "code": mistake.code, "detail": mistake.detail} for mistake in problem.mistakes
        ]
    return Response(status=problem.status, headers=(("Content-Type", names.PROBLEM_JSON), *headers), body=encode(body))
