"""uvicorn as this service uses it."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import cast

import uvicorn
from starlette.types import ASGIApp

from workspaced.server.connections import Connections
from workspaced.server.protocol import LimitedProtocol

DRAIN_SECONDS = 30
# Python looks for cycles each time 700 objects more are there, which is every few requests; nearly none are found.
_COLLECTED_OBJECTS = 20_000


class HttpServer(uvicorn.Server):
    """Leaves signals alone: uvicorn would raise them once more after a clean stop, and that looks like a crash."""

    def __init__(self, app: ASGIApp, connections: Connections, *, drain_seconds: int = DRAIN_SECONDS) -> None:
        """Serve ``app`` to the clients that ``connections`` admits."""
        self._connections = connections
        super().__init__(
            uvicorn.Config(
                app,
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                http=cast("type[asyncio.Protocol]", partial(LimitedProtocol, connections=connections)),
                ws="none",
                timeout_graceful_shutdown=drain_seconds,
                timeout_keep_alive=connections.limits.idle_seconds,
            )
        )
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's; `listening` is set when it is done."""
        await super().startup(sockets=sockets)
        self._connections.start()
        # What is here now stays as long as the process: not to be looked through again and again.
        gc.freeze()
        gc.set_threshold(_COLLECTED_OBJECTS)
        self.listening.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's; clients have their deadlines until it is done."""
        try:
            await super().shutdown(sockets=sockets)
        finally:
            self._connections.stop()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Nothing: who owns the process owns its signals."""
        yield

    def stop(self) -> None:
        """Take no more connections and finish the requests under way; the second time, end at once."""
        self.force_exit = self.should_exit
        self.should_exit = True


@asynccontextmanager
async def listening(server: HttpServer, listener: socket.socket) -> AsyncIterator[asyncio.Task[None]]:
    """The server answers on the socket from the beginning of the block; its end is not waited for where the block fails.

    The task ends when the server has been stopped.

    Raises:
        RuntimeError: it ended before it listened.
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
        for task in (serving, started):
            task.cancel()
        await asyncio.wait([serving, started])
