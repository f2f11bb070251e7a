"""One of several processes that serve on one port, under a parent: ``python -m workspaced.server DESCRIPTOR``.

What it is to do comes pickled on standard input; the descriptor is its end of the channel to the parent. It stops when it
is told to, or when the parent is gone.
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
from workspaced.server.signals import handled
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
    """What a worker is to do. ``name`` is in each of its lines in the log."""

    name: str
    settings: WorkspacedSettings
    host: str
    port: int
    log_level: Level


async def work(assignment: Assignment, end: socket.socket) -> int:
    """Serve until told to stop; the exit code."""
    channel = await Channel.over(end)
    try:
        await _serve(assignment, channel)
    except StorageUnusable as error:
        channel.say({"failed": str(error), "because": STORAGE})
        return 1
    except PortTaken as error:
        channel.say({"failed": str(error), "because": PORT})
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
        stack.enter_context(handled(stop))
        channel.say({"ready": True})
        talking = asyncio.create_task(_talk(app, channel))
        await asyncio.wait([serving, talking], return_when=asyncio.FIRST_COMPLETED)
        if not serving.done():
            stop("the parent is gone")
        await serving
        talking.cancel()
        await asyncio.wait([talking])


async def _talk(app: Application, channel: Channel) -> None:
    """Answer the parent's questions until it is gone."""
    async with asyncio.TaskGroup() as answering:
        while (message := await channel.heard()) is not None:
            answering.create_task(_answer(app, channel, message))


async def _answer(app: Application, channel: Channel, message: Message) -> None:
    answer: dict[str, object] = {"answers": message["number"]}
    if message["question"] == UNREADY:
        answer["reason"] = await unready(app)
    elif message["question"] == LEVELS:
        answer["levels"] = dataclasses.asdict(await app.levels())
    channel.say(answer)


def main(descriptor: str) -> int:
    """The process, from its start to its exit code. ``descriptor`` is the number of its end of the channel."""
    assignment: Assignment = pickle.load(sys.stdin.buffer)  # noqa: S301  from our own parent, by a pipe
    configure_logs(level=assignment.log_level)
    structlog.contextvars.bind_contextvars(worker=assignment.name)
    return uvloop.run(work(assignment, socket.socket(fileno=int(descriptor))))
