"""The listener for those who run the service: /metrics, /healthz, /readyz. It asks for no key, so it is loopback's own.

It is a listener of its own so that numbers about the service are nobody's who can reach the service, and so that the
answers come even where all of its connections are taken.
"""

from __future__ import annotations

import json
from typing import Protocol

from starlette.types import Receive, Scope, Send

_PLAIN = "application/json"


class View(Protocol):
    """What is known about the service: of one process, or of several."""

    async def unready(self) -> str | None:
        """The sentence that says why the service can't serve now; None: it can."""

    async def exposition(self, accept: str) -> tuple[bytes, str]:
        """The numbers, in the form that the header Accept asks for, and its type."""


class Admin:
    """ASGI. Knows three paths and reads no body."""

    def __init__(self, view: View) -> None:
        self._view = view

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Answer one request."""
        status, body, content_type = await self._answer(scope)
        headers = [
            (b"content-type", content_type.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
        ]
        if status == 405:
            headers.append((b"allow", b"GET, HEAD"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    async def _answer(self, scope: Scope) -> tuple[int, bytes, str]:
        if scope["path"] not in {"/metrics", "/healthz", "/readyz"}:
            return _told(404, "There are /metrics, /healthz and /readyz here.")
        if scope["method"] not in {"GET", "HEAD"}:
            return _told(405, "Only GET and HEAD are known here.")
        if scope["path"] == "/healthz":
            return _told(200)
        if scope["path"] == "/readyz":
            reason = await self._view.unready()
            return _told(503, reason) if reason else _told(200)
        accept = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"accept"), "")
        return (200, *await self._view.exposition(accept))


def _told(status: int, sentence: str = "") -> tuple[int, bytes, str]:
    body = (
        {"status": "ok"}
        if status == 200
        else {"status": "unavailable" if status == 503 else "refused", "detail": sentence}
    )
    return status, json.dumps(body).encode(), _PLAIN
