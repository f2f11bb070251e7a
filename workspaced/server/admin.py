"""The operators' listener: /metrics, /healthz, /readyz. It needs no key, so it listens on loopback by default.

It is separate, so that clients of the service can't read its metrics, and so that it responds even if all of the service's
connections are in use.
"""

from __future__ import annotations

import json
from typing import Protocol

from ingestd.process.http_server.server import HttpServer
from workspaced.core.asgi import Receive, Scope, Send
from workspaced.server.connections import admin_connections

_JSON = "application/json"


class ServiceStatus(Protocol):
    """The state of the service."""

    async def unready(self) -> str | None:
        """Return why the service can't serve now; None if it can."""

    async def exposition(self, accept: str) -> tuple[bytes, str]:
        """Return the metrics in the format that the header Accept requests, and its content type."""


class OperatorsApp:
    """ASGI application with three paths. It reads no body."""

    def __init__(self, status: ServiceStatus) -> None:
        self._status = status

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Handle one HTTP request."""
        status, body, content_type = await self._respond(scope)
        headers = [
            (b"content-type", content_type.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
        ]
        if status == 405:
            headers.append((b"allow", b"GET, HEAD"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    async def _respond(self, scope: Scope) -> tuple[int, bytes, str]:
        if scope["path"] not in {"/metrics", "/healthz", "/readyz"}:
            return _json(404, "There are /metrics, /healthz and /readyz here.")
        if scope["method"] not in {"GET", "HEAD"}:
            return _json(405, "Only GET and HEAD are supported here.")
        if scope["path"] == "/healthz":
            return _json(200)
        if scope["path"] == "/readyz":
            reason = await self._status.unready()
            return _json(503, reason) if reason else _json(200)
        accept = b", ".join(value for name, value in scope["headers"] if name == b"accept").decode("latin-1")
        return (200, *await self._status.exposition(accept))


def _json(status: int, sentence: str = "") -> tuple[int, bytes, str]:
    body = (
        {"status": "ok"}
        if status == 200
        else {"status": "unavailable" if status == 503 else "refused", "detail": sentence}
    )
    return status, json.dumps(body).encode(), _JSON


def operators_server(status: ServiceStatus) -> HttpServer:
    """Return the server of the operators' listener."""
    return HttpServer(OperatorsApp(status), admin_connections(), drain_seconds=1)
