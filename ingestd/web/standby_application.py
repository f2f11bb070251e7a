"""The listener of a standby. Its text, metrics and health report which daemon is active."""

from __future__ import annotations

from collections.abc import Callable

from ingestd.settings.listen import ListenSettings
from ingestd.standby.status import StandbyStatus
from ingestd.telemetry import Emit
from ingestd.web.access import AccessRules
from ingestd.web.message import WebRequest, WebResponse, json_response, text_response
from ingestd.web.metrics import standby_exposition
from ingestd.web.server import WebServer


async def serve_standby(settings: ListenSettings, status: Callable[[], StandbyStatus], *, emit: Emit) -> None:
    """Serve the listener until cancelled."""
    access = AccessRules(token=settings.token.get_secret_value() if settings.token else None, hosts=settings.hosts)

    async def respond(request: WebRequest) -> WebResponse:
        if (refusal := access.refusal(request)) is not None:
            return refusal
        if request.method not in {"GET", "HEAD"}:
            return text_response(405, "This daemon is a standby, which accepts only GET.", ("Allow", "GET, HEAD"))
        return _page(request, status())

    await WebServer(settings, respond=respond, emit=emit).run()


def _page(request: WebRequest, found: StandbyStatus) -> WebResponse:
    match request.path:
        case "/":
            return text_response(200, "\n".join(found.lines))
        case "/metrics":
            body, content_type = standby_exposition(found, accept=request.headers.get("accept", ""))
            return WebResponse(body=body, content_type=content_type)
        case "/healthz":
            return json_response(200, {"alive": True})
        case "/readyz":
            ready = {"ready": not found.failures, "reasons": found.failures, "role": found.role}
            return json_response(503 if found.failures else 200, ready)
    return text_response(404, "There is nothing at this path while this daemon is a standby.")
