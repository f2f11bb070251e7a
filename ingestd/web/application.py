"""The paths of the listener, and the construction of its parts."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from ingestd.daemon.assembly import Assembly
from ingestd.settings.listen import ListenSettings
from ingestd.telemetry import Emit
from ingestd.web.access import AccessRules
from ingestd.web.event_counts import EventCounts
from ingestd.web.levels import check_readiness, read_levels
from ingestd.web.message import WebRequest, WebResponse, json_response, text_response
from ingestd.web.metrics import DaemonLevels, daemon_exposition
from ingestd.web.pages import PageContents
from ingestd.web.server import WebServer
from ingestd.web.site import Site


class WebApplication:
    """Responds to the requests of one listener. ``read`` collects the current gauges. ``site`` has the pages."""

    def __init__(self, settings: ListenSettings, *, read: Callable[[], Awaitable[DaemonLevels]], site: Site) -> None:
        token = settings.token.get_secret_value() if settings.token is not None else None
        self._access = AccessRules(token=token, hosts=settings.hosts)
        self._read = read
        self._site = site
        self._handlers: dict[tuple[str, str], Callable[[WebRequest], Awaitable[WebResponse]]] = {
            ("GET", "/metrics"): self._metrics,
            ("GET", "/healthz"): self._health,
            ("GET", "/readyz"): self._readiness,
        }

    async def respond(self, request: WebRequest) -> WebResponse:
        """Return the response to a request."""
        if (refusal := self._access.refusal(request)) is not None:
            return refusal
        method = "GET" if request.method == "HEAD" else request.method
        handler = self._handlers.get((method, request.path))
        if handler is not None:
            return await handler(request)
        allowed = sorted({one for one, path in self._handlers if path == request.path})
        if allowed:
            return text_response(405, f"This path accepts only {', '.join(allowed)}.", ("Allow", ", ".join(allowed)))
        page = await self._site.respond(request)
        return page if page is not None else text_response(404, "There is nothing at this path.")

    async def _metrics(self, request: WebRequest) -> WebResponse:
        body, content_type = daemon_exposition(await self._read(), accept=request.headers.get("accept", ""))
        return WebResponse(body=body, content_type=content_type)

    async def _health(self, _: WebRequest) -> WebResponse:
        return json_response(200, {"alive": True})

    async def _readiness(self, _: WebRequest) -> WebResponse:
        health = check_readiness(await self._read())
        return json_response(200 if health.ready else 503, health)


async def serve(settings: ListenSettings, assembly: Assembly, *, counts: EventCounts, emit: Emit) -> None:
    """Serve the listener of a daemon until cancelled."""
    with _threads("listener", 1) as executor, _threads("page", 2) as page_executor:
        pages = PageContents(
            current=lambda: assembly.configuration,
            pid=os.getpid(),
            sources=assembly.sources,
            passes=assembly.passes,
            waiting=lambda: {reader.pipeline: reader.connector for reader in assembly.readers},
            next_runs=assembly.schedule.next_runs,
            activity=counts.activity,
            standby=assembly.standby_status,
        )
        site = Site(
            pages,
            perform=assembly.perform,
            executor=page_executor,
            changes=counts.changes,
            acts=settings.token is not None or settings.socket is not None,
        )
        application = WebApplication(settings, read=lambda: read_levels(assembly, counts, executor), site=site)
        server = WebServer(settings, respond=application.respond, emit=emit)
        assembly.notices.listener = lambda: server.unavailable
        await server.run()


@contextmanager
def _threads(name: str, count: int) -> Iterator[ThreadPoolExecutor]:
    """Yield the listener's own threads: its slow reads delay no other work, and a hanging thread delays no shutdown."""
    executor = ThreadPoolExecutor(count, thread_name_prefix=name)
    try:
        yield executor
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
