"""The outermost middleware: each request gets an id, is counted, and gets a response even if the service fails (contract G21).

Refused and failed requests are always logged. Successful requests are logged if ``log_successes`` is set.
"""

from __future__ import annotations

import re
import secrets
import time
from itertools import count
from typing import Any

import structlog

from ingestd.wire import names
from workspaced.core.asgi import ASGIApp, Message, Receive, Scope, Send
from workspaced.core.problems import Problem
from workspaced.http.responses import problem_response
from workspaced.telemetry.metrics import Metrics

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_TRACEPARENT = re.compile(rb"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


# A request id is unique: it has a random prefix, which the process chooses at its start, and a counter. Reading random bytes
# for each request would release the interpreter's lock, and the writer thread would take the lock in the middle of the request.
_PROCESS = secrets.token_hex(10)
_REQUESTS = count(1)


def new_request_id() -> str:
    """Return an id for a request that has none."""
    return f"{_PROCESS}{next(_REQUESTS):012x}"


def request_id_of(scope: Scope) -> str:
    """Return the request's id, which `Tracing` has put into the scope."""
    return str(scope["state"]["request_id"])


def record_refusal(scope: Scope, problem: Problem) -> None:
    """Record why the request is refused, for its log line."""
    scope["state"]["refusal"] = {"code": problem.code, "detail": problem.detail}


def record_operation(scope: Scope, name: str) -> None:
    """Record the name of the operation under which the metrics count the request."""
    scope["state"]["operation"] = name


class Tracing:
    """Plain ASGI middleware. It logs refusals as info, failures as errors, and successes as info if ``log_successes``."""

    def __init__(self, app: ASGIApp, metrics: Metrics, *, log_successes: bool) -> None:
        self._app = app
        self._metrics = metrics
        self._log_successes = log_successes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one HTTP request."""
        sent = dict(scope["headers"])
        wanted = sent.get(b"x-request-id", b"")
        request_id = wanted.decode() if _REQUEST_ID.fullmatch(wanted) else new_request_id()
        state = scope.setdefault("state", {})
        state["request_id"] = request_id
        traceparent = sent.get(b"traceparent", b"")
        echoed = [(names.REQUEST_ID.encode(), request_id.encode())]
        if _TRACEPARENT.fullmatch(traceparent):
            echoed.append((b"traceparent", traceparent))
        status = 0
        begun = time.monotonic()
        self._metrics.begun()

        async def traced(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *echoed]
            await send(message)

        try:
            await self._app(scope, receive, traced)
        except Exception:
            structlog.get_logger().exception("request_failed", **_fields(scope))
            if status:  # the response has begun: only a broken connection shows that it is incomplete
                raise
            await _send_internal_error(traced, scope, request_id)
        finally:
            seconds = time.monotonic() - begun
            self._metrics.response_sent(state.get("operation", ""), scope["method"], status, seconds)
        if status >= 400 or self._log_successes:
            refusal = state.get("refusal", {})
            if refusal:
                self._metrics.refused(refusal["code"])
            log = structlog.get_logger()
            write = log.info if status < 500 else log.error
            milliseconds = round(seconds * 1000, 1)
            write("request_handled", status=status, milliseconds=milliseconds, **_fields(scope), **refusal)


def _fields(scope: Scope) -> dict[str, Any]:
    return {"method": scope["method"], "path": _path(scope), "request_id": request_id_of(scope)}


def _path(scope: Scope) -> str:
    """Return the path as sent, if the server provides it."""
    raw: bytes | None = scope.get("raw_path")
    return raw.decode("ascii", "backslashreplace") if raw else str(scope["path"])


async def _send_internal_error(send: Send, scope: Scope, request_id: str) -> None:
    problem = Problem("internal_error", "The service failed to handle the request. Search its log for this requestId.")
    response = problem_response(problem, instance=scope["path"], request_id=request_id, document_form=False)
    headers = [(name.encode(), value.encode()) for name, value in response.headers]
    headers.append((b"Content-Length", str(len(response.body)).encode()))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})
