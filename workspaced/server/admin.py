"""The operators' listener: /metrics, /healthz, /readyz. It needs no key, so it listens on loopback by default.

The listener is separate, so that clients of the service can't read the metrics. It responds even if all connections of clients
are in use.
"""

from __future__ import annotations

import asyncio
import json

from prometheus_client import ProcessCollector

from ingestd.process.metric_format import exposition
from workspaced.app import Application
from workspaced.core.asgi import Receive, Scope, Send
from workspaced.core.problems import Problem
from workspaced.telemetry.metric_families import build_family, level_families

_JSON = "application/json"


class OperatorsApp:
    """ASGI application with three paths. It reads no body."""

    def __init__(self, app: Application, *, database: str) -> None:
        """``database``: the kind of the database, for the metrics."""
        self._app = app
        self._database = database
        self._usage = ProcessCollector(namespace="workspaced", registry=None)

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
            reason = await unready(self._app)
            return _json(503, reason) if reason else _json(200)
        accept = b", ".join(value for name, value in scope["headers"] if name == b"accept").decode("latin-1")
        return (200, *await self._exposition(accept))

    async def _exposition(self, accept: str) -> tuple[bytes, str]:
        levels = await self._app.levels()
        families = [build_family(self._database), *level_families(levels, now_ms=self._app.clock.now())]
        return await asyncio.to_thread(exposition, families, self._app.metrics.registry, self._usage, accept=accept)


async def unready(app: Application) -> str | None:
    """Return why the application can't serve now; None if it can."""
    if app.draining:
        return "The service is stopping."
    try:
        await app.check()
    except Problem as problem:
        return problem.detail
    return None


def _json(status: int, sentence: str = "") -> tuple[int, bytes, str]:
    body = (
        {"status": "ok"}
        if status == 200
        else {"status": "unavailable" if status == 503 else "refused", "detail": sentence}
    )
    return status, json.dumps(body).encode(), _JSON
