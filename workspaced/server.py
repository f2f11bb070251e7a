"""One process that serves on a socket until it is told to stop."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog
import uvicorn

from ingestd.process.notify import Notifier
from workspaced.app import Application, create_app
from workspaced.problems import Problem
from workspaced.settings import Settings

DRAIN_SECONDS = 30
# Longer than clients keep an idle connection in their pool, so that they do not find it closed under them.
KEEP_ALIVE_SECONDS = 75


class PortTaken(Exception):
    """The address can't be listened on."""


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one.

    Raises:
        PortTaken: it is in use, or the address is not one of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise PortTaken(
            f"{host} port {port} can't be listened on ({os.strerror(error.errno or 0)}). "
            "Stop what uses it, or give another one with --port."
        ) from error


def address_of(listener: socket.socket) -> str:
    """The URL under which a socket answers."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def serve(
    settings: Settings, listener: socket.socket, *, notifier: Notifier, announce: Callable[[str], None]
) -> None:
    """Answer until SIGTERM or SIGINT, then finish what is under way; a second signal ends at once.

    ``announce`` is handed the URL once requests are answered.

    Raises:
        StorageUnusable: the data folder can't be used.
    """
    app = create_app(settings)
    async with app.started():
        url = address_of(listener)
        server = _Server(app, notifier)
        async with asyncio.TaskGroup() as tasks:
            serving = tasks.create_task(server.serve(sockets=[listener]))
            listening = tasks.create_task(server.listening.wait())
            await asyncio.wait([serving, listening], return_when=asyncio.FIRST_COMPLETED)
            if not listening.done():
                listening.cancel()
                raise RuntimeError("the server ended before it listened")
            announce(url)
            structlog.get_logger().info("service_listening", url=url, data=str(settings.data))
            notifier.ready(f"Listening on {url}")
            watching = tasks.create_task(_feed_watchdog(app, notifier))
            await asyncio.wait([serving])
            watching.cancel()
        structlog.get_logger().info("service_stopped")


class _Server(uvicorn.Server):
    """uvicorn with our signals: its own would be raised once more after a clean stop, and look like a crash."""

    def __init__(self, app: Application, notifier: Notifier) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                ws="none",
                timeout_graceful_shutdown=DRAIN_SECONDS,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
            )
        )
        self._app = app
        self._notifier = notifier
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.listening.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        signals = (signal.SIGTERM, signal.SIGINT)
        for number in signals:
            loop.add_signal_handler(number, self._stop, number)
        try:
            yield
        finally:
            for number in signals:
                loop.remove_signal_handler(number)

    def _stop(self, number: int) -> None:
        structlog.get_logger().info("service_stopping", signal=signal.Signals(number).name)
        if self.should_exit:
            self.force_exit = True
            return
        self._app.drain()
        self._notifier.stopping("Finishing the requests under way")
        self.should_exit = True


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
