"""The daemon's end of the control socket."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import socket
import struct
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from ingestd.core.errors import IngestdError
from ingestd.daemon.control.address import short_address, socket_file
from ingestd.daemon.control.requests import LONGEST_LINE, Answer, Request, answered, read_request, refused
from ingestd.telemetry import Emit
from ingestd.telemetry.catalogue.daemon import ControlUnavailable

_REQUEST_SECONDS = 10.0
"""Who connects says within this time what is wanted."""

_STOPPING = "The daemon is stopping; what it was asked for may be half done. Look with 'ingestd status' and ask again."


class ControlServer:
    """Listens beside the state file, which this process holds. ``perform`` is told the request and the account that asks."""

    def __init__(self, state: Path, *, perform: Callable[[Request, str], Awaitable[Answer]], emit: Emit) -> None:
        self._file = socket_file(state)
        self._perform = perform
        self._emit = emit
        self._connections: set[asyncio.Task[None]] = set()
        self._is_stopping = False

    async def run(self) -> None:
        """Listen until cancelled; every connection is answered or closed then.

        If no socket can be made, the daemon does without and an event says so.
        """
        self._is_stopping = False
        try:
            listening = self._listen()
        except OSError as error:
            reason = error.strerror or str(error)
            self._emit(ControlUnavailable(socket=str(self._file), reason=reason))
            await asyncio.Event().wait()
            return
        try:
            server = await asyncio.start_unix_server(self._accept, sock=listening, limit=LONGEST_LINE)
            try:
                await asyncio.Event().wait()
            finally:
                server.close()
        finally:
            self._file.unlink(missing_ok=True)
            listening.close()
            self._is_stopping = True
            for task in self._connections:
                task.cancel()
            if self._connections:
                await asyncio.wait(self._connections)

    def _listen(self) -> socket.socket:
        # Whatever lies there was left by a daemon that was killed: the state file's lock is ours.
        self._file.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            # Before it is bound, so that at no moment another account may connect.
            os.fchmod(listening.fileno(), 0o600)
            with short_address(self._file) as address:
                listening.bind(address)
        except BaseException:
            listening.close()
            raise
        return listening

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a new connection in a task that is registered before it runs, so that a stop ends it in any case."""
        if self._is_stopping:  # the kernel accepted it before the socket was closed
            writer.write(refused(_STOPPING))
            writer.close()
            return
        task = asyncio.create_task(self._serve(reader, writer), name="control connection")
        self._connections.add(task)
        task.add_done_callback(partial(self._end, writer))

    def _end(self, writer: asyncio.StreamWriter, task: asyncio.Task[None]) -> None:
        self._connections.discard(task)
        writer.close()  # a task that is cancelled before it runs has not done so
        if not task.cancelled() and (error := task.exception()) is not None:
            context = {"message": "A command failed.", "exception": error, "task": task}
            task.get_loop().call_exception_handler(context)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):  # who does not wait for the answer does not get it
            try:
                writer.write(await self._answer(reader, _who(writer)))
            except asyncio.CancelledError:
                writer.write(refused(_STOPPING))
            finally:
                writer.close()  # sends what was written first
            await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, who: str) -> bytes:
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                line = await reader.readline()
        except (TimeoutError, ValueError):
            return refused("No request came, or one that is too long.")
        try:
            return answered(await self._perform(read_request(line), who))
        except IngestdError as error:
            return refused(str(error))


def _who(writer: asyncio.StreamWriter) -> str:
    """The account at the other end, as the kernel knows it."""
    # What an event loop hands out may not be a whole socket, but it has a number.
    with socket.socket(fileno=os.dup(writer.get_extra_info("socket").fileno())) as peer:
        found = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return account(struct.unpack("3i", found)[1])


def account(uid: int) -> str:
    """The name of an account, or its number where it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
