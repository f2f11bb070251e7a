"""A worker, one of several processes that serve on one port: ``python -m workspaced.server DESCRIPTOR``.

It reads its pickled assignment from standard input; the descriptor is its end of the channel to the supervisor. It stops at a
signal, or when the supervisor is gone.
"""

from __future__ import annotations

import asyncio
import dataclasses
import pickle
import socket
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

import structlog
import uvloop

from ingestd.process.logs import Level, configure_logs
from workspaced.app import Application, create_app
from workspaced.server.channel import Channel, Message
from workspaced.server.connections import public_connections
from workspaced.server.http import HttpServer, listening
from workspaced.server.listeners import PortTaken, listen
from workspaced.server.signals import signals_handled
from workspaced.server.single import unready
from workspaced.settings.model import WorkspacedSettings
from workspaced.storage.port import StorageUnusable

STORAGE: Final = "storage"
PORT: Final = "port"

ALIVE: Final = "alive"
UNREADY: Final = "unready"
LEVELS: Final = "levels"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The settings of one worker. ``name`` is in each of its log events."""

    name: str
    settings: WorkspacedSettings
    host: str
    port: int
    log_level: Level


async def run_worker(assignment: Assignment, end: socket.socket) -> int:
    """Serve until a signal; return the exit code."""
    channel = await Channel.over(end)
    try:
        await _serve(assignment, channel)
    except StorageUnusable as error:
        channel.send({"failed": str(error), "because": STORAGE})
        return 1
    except PortTaken as error:
        channel.send({"failed": str(error), "because": PORT})
        return 1
    finally:
        channel.close()
    return 0


async def _serve(assignment: Assignment, channel: Channel) -> None:
    app = create_app(assignment.settings)
    server = HttpServer(app, public_connections(assignment.settings, app.metrics))

    def stop(reason: str) -> None:
        structlog.get_logger().info("worker_stopping", reason=reason)
        app.drain()
        server.stop()

    async with AsyncExitStack() as stack:
        await stack.enter_async_context(app.started())
        listener = stack.enter_context(listen(assignment.host, assignment.port, shared=True))
        serving = await stack.enter_async_context(listening(server, listener))
        stack.enter_context(signals_handled(stop))
        channel.send({"ready": True})
        requests = asyncio.create_task(_serve_supervisor(app, channel))
        await asyncio.wait([serving, requests], return_when=asyncio.FIRST_COMPLETED)
        if not serving.done():
            stop("the supervisor is gone")
        await serving
        requests.cancel()
        await asyncio.wait([requests])


async def _serve_supervisor(app: Application, channel: Channel) -> None:
    """Respond to the supervisor's requests until it is gone."""
    async with asyncio.TaskGroup() as responding:
        while (message := await channel.receive()) is not None:
            responding.create_task(_respond(app, channel, message))


async def _respond(app: Application, channel: Channel, message: Message) -> None:
    response: dict[str, object] = {"response_to": message["number"]}
    if message["request"] == UNREADY:
        response["reason"] = await unready(app)
    elif message["request"] == LEVELS:
        response["levels"] = dataclasses.asdict(await app.levels())
    channel.send(response)


def main(descriptor: str) -> int:
    """Run the process; return its exit code. ``descriptor`` is the number of its end of the channel."""
    assignment: Assignment = pickle.load(sys.stdin.buffer)  # noqa: S301  from the supervisor, by a pipe
    configure_logs(level=assignment.log_level)
    structlog.contextvars.bind_contextvars(worker=assignment.name)
    return uvloop.run(run_worker(assignment, socket.socket(fileno=int(descriptor))))
