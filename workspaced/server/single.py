"""One process that serves on a socket until it is told to stop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import structlog

from ingestd.process.notify import Notifier
from workspaced.app import Application, create_app
from workspaced.core.clock import now_ms
from workspaced.core.problems import Problem
from workspaced.server.admin import Admin
from workspaced.server.connections import admin_connections, public_connections
from workspaced.server.descriptors import descriptor_limit
from workspaced.server.http import HttpServer, listening
from workspaced.server.listeners import url_of
from workspaced.server.signals import handled
from workspaced.settings.model import WorkspacedSettings
from workspaced.telemetry.exposition import build_family, exposition, level_families, own_process


async def serve(
    settings: WorkspacedSettings,
    listener: socket.socket,
    *,
    admin: socket.socket | None,
    notifier: Notifier,
    announce: Callable[[str], None],
) -> None:
    """Answer until SIGTERM or SIGINT, then finish what is under way; a second signal ends at once.

    ``admin`` is where those who run the service ask. ``announce`` is handed the URL once requests are answered.

    Raises:
        StorageUnusable: the data folder can't be used.
    """
    app = create_app(settings)
    connections = public_connections(settings, app.metrics)
    server = HttpServer(app, connections)
    log = structlog.get_logger()

    def stop(name: str) -> None:
        log.info("service_stopping", signal=name)
        app.drain()
        notifier.stopping("Finishing the requests under way")
        server.stop()

    async with AsyncExitStack() as stack:
        await stack.enter_async_context(app.started())
        if admin:
            await stack.enter_async_context(
                listening(
                    HttpServer(
                        Admin(_View(app, database=settings.database_kind)), admin_connections(), drain_seconds=1
                    ),
                    admin,
                )
            )
        serving = await stack.enter_async_context(listening(server, listener))
        stack.enter_context(handled(stop))
        url = url_of(listener)
        announce(url)
        log.info(
            "service_listening",
            url=url,
            admin=url_of(admin) if admin else None,
            data=str(settings.data),
            connections=connections.capacity,
            open_files=descriptor_limit(),
        )
        notifier.ready(f"Listening on {url}")
        async with _watched(app, notifier):
            await serving
    log.info("service_stopped")


class _View:
    def __init__(self, app: Application, *, database: str) -> None:
        self._app = app
        self._database = database

    async def unready(self) -> str | None:
        """As the admin listener asks."""
        return await unready(self._app)

    async def exposition(self, accept: str) -> tuple[bytes, str]:
        """As the admin listener asks."""
        levels = await self._app.levels()
        families = [build_family(self._database), *level_families(levels, now_ms=now_ms()), *own_process()]
        return await asyncio.to_thread(exposition, [self._app.metrics.registry], families, accept=accept)


async def unready(app: Application) -> str | None:
    """Why the application can't serve now."""
    if app.draining:
        return "The service is stopping."
    try:
        await app.check()
    except Problem as problem:
        return problem.detail
    return None


@asynccontextmanager
async def _watched(app: Application, notifier: Notifier) -> AsyncIterator[None]:
    feeding = asyncio.create_task(_feed_watchdog(app, notifier))
    try:
        yield
    finally:
        feeding.cancel()
        await asyncio.wait([feeding])


async def _feed_watchdog(app: Application, notifier: Notifier) -> None:
    """Tell the service manager that we live, for as long as the loop turns and the database answers."""
    if notifier.watchdog_seconds is None:
        return
    while True:
        try:
            await app.check()
        except Problem as problem:
            structlog.get_logger().warning("storage_check_failed", reason=problem.detail)
            notifier.status(problem.detail)
        else:
            notifier.alive()
        await asyncio.sleep(notifier.watchdog_seconds / 3)
