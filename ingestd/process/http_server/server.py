"""Start and stop a listener."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, cast

import uvicorn

from ingestd.process.http_server.asgi import ASGIApp
from ingestd.process.http_server.connection import BoundedConnection
from ingestd.process.http_server.registry import Connections
from ingestd.process.http_server.requests import BoundedRequests
from ingestd.process.http_server.tls import TlsTransport

DRAIN_SECONDS = 30
"""The longest time that requests in progress may take after `HttpServer.stop`."""


class HttpServer(uvicorn.Server):
    """uvicorn without signal handlers. After a clean stop, uvicorn would raise the signal again, which looks like a crash."""

    def __init__(
        self,
        app: ASGIApp,
        connections: Connections,
        *,
        tls: Callable[[], ssl.SSLContext] | None = None,
        drain_seconds: int = DRAIN_SECONDS,
    ) -> None:
        """Serve ``app`` to the clients that ``connections`` admits; ``tls`` returns the context of each new connection."""
        self._connections = connections
        super().__init__(
            uvicorn.Config(
                BoundedRequests(app, connections.limits),
                lifespan="off",
                log_config=None,
                log_level="error",  # at lower levels, clients could fill the log
                access_log=False,
                server_header=False,
                proxy_headers=False,
                http=cast("type[asyncio.Protocol]", partial(_protocol, connections, tls)),
                ws="none",
                timeout_graceful_shutdown=drain_seconds,
                timeout_keep_alive=int(connections.limits.idle_seconds) + 2,  # the connection has its own deadline
            )
        )
        self.servers = []  # uvicorn sets this attribute when it starts
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start like uvicorn, then set `listening`."""
        await super().startup(sockets=sockets)
        self._connections.start()
        self.listening.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop like uvicorn; the clients' deadlines apply until the end."""
        try:
            await super().shutdown(sockets=sockets)
            if tasks := self.server_state.tasks:  # they are cancelled, and respond 503
                await asyncio.wait(tasks, timeout=1)
        finally:
            self._connections.stop()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing: the owner of the process handles its signals."""
        yield

    def stop(self) -> None:
        """Accept no more connections and finish the requests in progress. A second call ends the server at once."""
        self.force_exit = self.should_exit
        self.should_exit = True

    def cancel(self) -> None:
        """Accept no more connections, close all connections at once and cancel the requests in progress."""
        self.force_exit = self.should_exit = True
        for server in self.servers:
            server.close()
        self._connections.stop()
        for task in self.server_state.tasks:
            task.cancel()


def _protocol(connections: Connections, tls: Callable[[], ssl.SSLContext] | None, **inner: Any) -> asyncio.Protocol:
    connection = BoundedConnection(connections=connections, **inner)
    return TlsTransport(connection, tls()) if tls else connection


@asynccontextmanager
async def listening(server: HttpServer, listener: socket.socket) -> AsyncIterator[asyncio.Task[None]]:
    """Serve on the socket while the context is open. If an exception ends the context, cancel the requests in progress.

    Yield the task of the server, which ends after `HttpServer.stop`.

    Raises:
        RuntimeError: the server ended before it listened.
    """
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    started = asyncio.create_task(server.listening.wait())
    try:
        await asyncio.wait([serving, started], return_when=asyncio.FIRST_COMPLETED)
        if not started.done():
            raise RuntimeError("the server ended before it listened")
        yield serving
        server.should_exit = True
        await serving
    finally:
        server.cancel()  # Something may have cancelled the task of the server, which then closes nothing.
        started.cancel()
        await asyncio.wait([serving, started])
