"""The server of the control socket."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import pwd
import socket
import struct
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from ingestd.core.clock import shown_zone
from ingestd.core.errors import IngestdError
from ingestd.daemon.control.address import short_address, socket_file
from ingestd.daemon.control.message import LONGEST_LINE
from ingestd.daemon.control.requests import (
    Request,
    Response,
    decode_request,
    encode_refusal,
    encode_response,
)
from ingestd.telemetry import Emit
from ingestd.telemetry.catalogue.daemon import ControlUnavailable

_REQUEST_SECONDS = 10.0
"""Time limit for a client to send its request."""

ALIVE_SECONDS = 5.0
"""While a request is executed, the client gets a blank this often, and so finds out that the daemon is not stopped."""

_STOPPING = (
    "The daemon is stopping. The request may be partly executed. Check 'ingestd status', then run the command again."
)


class ControlServer:
    """Listens on the socket of a state file that this process holds. ``perform`` executes an account's request."""

    def __init__(self, state: Path, *, perform: Callable[[Request, str], Awaitable[Response]], emit: Emit) -> None:
        self._file = socket_file(state)
        self._perform = perform
        self._emit = emit
        self._connections: set[asyncio.Task[None]] = set()
        self._is_stopping = False
        self.started = asyncio.Event()
        """Set when commands can find the daemon, or when the daemon continues without the socket."""

    async def run(self) -> None:
        """Listen until cancelled. When cancelled, respond to every open connection or close it.

        If the socket can't be created, the server emits an event, and the daemon continues without the socket.
        """
        self._is_stopping = False
        try:
            sock = self._listen()
        except OSError as error:
            reason = error.strerror or str(error)
            self._emit(ControlUnavailable(socket=str(self._file), reason=reason))
            self.started.set()
            await asyncio.Event().wait()
            return
        try:
            server = await asyncio.start_unix_server(self._accept, sock=sock, limit=LONGEST_LINE)
            self.started.set()
            try:
                await asyncio.Event().wait()
            finally:
                server.close()
        finally:
            self.started.set()
            self._file.unlink(missing_ok=True)
            sock.close()
            self._is_stopping = True
            for task in self._connections:
                task.cancel()
            if self._connections:
                await asyncio.wait(self._connections)

    def _listen(self) -> socket.socket:
        # This process holds the state file's lock, so an existing socket is a leftover of a killed daemon.
        self._file.unlink(missing_ok=True)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            # The mode is set before bind, so that no other account can ever connect.
            os.fchmod(sock.fileno(), 0o600)
            with short_address(self._file) as address:
                sock.bind(address)
        except BaseException:
            sock.close()
            raise
        return sock

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a new connection in a task. The task is registered before it runs, so that a stop always ends it."""
        if self._is_stopping:  # the kernel accepted the connection before the socket was closed
            writer.write(encode_refusal(_STOPPING))
            writer.close()
            return
        task = asyncio.create_task(self._serve(reader, writer), name="control connection")
        self._connections.add(task)
        task.add_done_callback(partial(self._end, writer))

    def _end(self, writer: asyncio.StreamWriter, task: asyncio.Task[None]) -> None:
        self._connections.discard(task)
        writer.close()  # a task that is cancelled before it runs has not closed its connection
        if not task.cancelled() and (error := task.exception()) is not None:
            context = {"message": "A command failed.", "exception": error, "task": task}
            task.get_loop().call_exception_handler(context)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):  # the client may leave before the response
            alive = asyncio.create_task(_show_life(writer))
            try:
                by = await asyncio.to_thread(account, _peer_uid(writer))
                writer.write(await self._respond(reader, by))
            except asyncio.CancelledError:
                writer.write(encode_refusal(_STOPPING))
            finally:
                alive.cancel()
                writer.close()  # flushes first
            await writer.wait_closed()

    async def _respond(self, reader: asyncio.StreamReader, peer: str) -> bytes:
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                line = await reader.readline()
        except (TimeoutError, ValueError):
            return encode_refusal("The request is incomplete or too long.")
        try:
            request, zone = decode_request(line)
            with shown_zone.of_request(zone):
                return encode_response(await self._perform(request, peer))
        except IngestdError as error:
            return encode_refusal(str(error))


async def _show_life(writer: asyncio.StreamWriter) -> None:
    """Write blanks, which JSON permits before a value, until the connection closes."""
    while not writer.is_closing():
        await asyncio.sleep(ALIVE_SECONDS)
        writer.write(b" ")


def _peer_uid(writer: asyncio.StreamWriter) -> int:
    """Return the number of the peer's account, as reported by the kernel."""
    # The event loop's socket object may lack getsockopt, but has a file descriptor.
    with socket.socket(fileno=os.dup(writer.get_extra_info("socket").fileno())) as peer:
        found = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    uid: int = struct.unpack("3i", found)[1]
    return uid


@functools.cache
def account(uid: int) -> str:
    """Return the name of an account, or its number if it has no name. Blocks while a directory service does not respond."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
