"""One process that serves on a socket until a signal stops it."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from signal import Signals, getsignal

import structlog

from ingestd.process.hangup import EarlyHangup
from ingestd.process.http_server.server import HttpServer, listening
from ingestd.process.notify import Notifier
from workspaced.app import Application, create_app
from workspaced.core.problems import Problem
from workspaced.server.admin import OperatorsApp
from workspaced.server.certificate import Certificate
from workspaced.server.connections import admin_connections, descriptor_limit, public_connections
from workspaced.server.listeners import url_of
from workspaced.settings.model import WorkspacedSettings
from workspaced.storage import migrations

# By default Python searches for reference cycles after 700 new objects, so every few requests. It would find almost no cycles.
_COLLECTED_OBJECTS = 20_000


async def serve(
    settings: WorkspacedSettings,
    listener: socket.socket,
    *,
    admin: socket.socket | None,
    certificate: Certificate | None,
    notifier: Notifier,
    announce: Callable[[str], None],
) -> None:
    """Serve until SIGTERM or SIGINT.

    After a signal, /readyz is 503, and requests are still accepted for ``drain_seconds``. Then no request is accepted, and the
    requests in progress are finished. Each further signal ends the current phase.

    ``admin`` is the operators' socket. With a ``certificate``, ``listener`` has TLS, and SIGHUP reads the certificate again.
    ``announce`` is called with the URL when the service accepts requests.

    Raises:
        StorageUnusable: the data can't be used. If the database can't be reached at the start, the error may be raised later.
    """
    app = create_app(settings)
    connections = public_connections(settings, app.metrics)
    server = HttpServer(app, connections, tls=(lambda: certificate.context) if certificate else None)
    app.end = server.stop
    log = structlog.get_logger()

    def close() -> None:
        if server.should_exit:
            return
        app.end_streams()
        notifier.status("Finishing the requests under way")
        server.stop()

    def stop(number: Signals) -> None:
        log.info("service_stopping", signal=number.name)
        if not app.draining:
            app.drain()
            notifier.stopping("Waiting until the proxies send no more requests")
            asyncio.get_running_loop().call_later(settings.drain_seconds, close)
        elif not server.should_exit:
            close()
        else:
            server.cancel()

    async with AsyncExitStack() as stack:
        await stack.enter_async_context(app.started())
        if admin:
            operators = OperatorsApp(app, database=settings.database_kind)
            await stack.enter_async_context(
                listening(HttpServer(operators, admin_connections(), drain_seconds=1), admin)
            )
        serving = await stack.enter_async_context(listening(server, listener))
        # Objects that exist now live as long as the process, so the garbage collector need not examine them.
        gc.freeze()
        gc.set_threshold(_COLLECTED_OBJECTS)
        handlers: dict[Signals, Callable[[], None]] = {
            number: partial(stop, number) for number in (Signals.SIGTERM, Signals.SIGINT)
        }
        if certificate:
            handlers[Signals.SIGHUP] = certificate.reload
        stack.enter_context(signals_handled(handlers))
        url = url_of(listener, scheme="https" if certificate else "http")
        announce(url)
        log.info(
            "service_listening",
            url=url,
            admin=url_of(admin) if admin else None,
            data=str(settings.data),
            schemas=f"{migrations.oldest()} to {migrations.head()}",
            connections=connections.limits.connections,
            open_files=descriptor_limit(),
        )
        notifier.ready(f"Listening on {url}")
        async with _watched(app, notifier):
            await serving
    if app.unusable is not None:
        raise app.unusable
    log.info("service_stopped")


@asynccontextmanager
async def _watched(app: Application, notifier: Notifier) -> AsyncIterator[None]:
    feeding = asyncio.create_task(_feed_watchdog(app, notifier))
    try:
        yield
    finally:
        feeding.cancel()
        await asyncio.wait([feeding])


async def _feed_watchdog(app: Application, notifier: Notifier) -> None:
    """Send the watchdog's heartbeat as long as the event loop runs and the database responds."""
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


@contextmanager
def signals_handled(handlers: Mapping[Signals, Callable[[], None]]) -> Iterator[None]:
    """Call each signal's handler in the loop until the context ends. If a SIGHUP came earlier, call its handler now."""
    loop = asyncio.get_running_loop()
    for number, handler in handlers.items():
        before = getsignal(number)
        loop.add_signal_handler(number, handler)
        if isinstance(before, EarlyHangup) and before.noted:
            handler()
    try:
        yield
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)
