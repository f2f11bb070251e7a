"""The client of the control socket."""

from __future__ import annotations

import asyncio
import socket
import struct
from pathlib import Path

from ingestd.daemon.control.address import short_address, socket_file
from ingestd.daemon.control.refusal import DaemonEnded, DaemonSilent, RequestRefused
from ingestd.daemon.control.requests import Request, Response, decode_response, encode_request

SILENT_SECONDS = 30.0
"""A daemon that executes a request sends a blank more often than this; see `server.ALIVE_SECONDS`."""


class NoDaemon(Exception):
    """No daemon listens on the control socket."""


async def call(state: Path, request: Request) -> Response:
    """Send a request to the daemon that holds a state file, and wait for its response while the daemon shows that it runs.

    Raises:
        NoDaemon: no daemon runs, or the daemon has no socket.
        DaemonEnded: the daemon ended before it responded.
        DaemonSilent: the daemon is stopped or hangs.
        RequestRefused: the daemon can't execute the request, or its socket can't be used.
    """
    sock = _connected(state)
    try:
        reader, writer = await asyncio.open_unix_connection(sock=sock)
    except OSError:
        sock.close()
        raise DaemonEnded from None
    line = bytearray()
    try:
        async with asyncio.timeout(SILENT_SECONDS) as limit:
            writer.write(encode_request(request))
            await writer.drain()
            while not line.endswith(b"\n") and (received := await reader.read(1 << 16)):
                line += received
                limit.reschedule(asyncio.get_running_loop().time() + SILENT_SECONDS)
    except TimeoutError:
        raise DaemonSilent(SILENT_SECONDS) from None
    except ConnectionError:
        line.clear()
    finally:
        writer.close()
    if not line.endswith(b"\n"):
        raise DaemonEnded
    return decode_response(request, bytes(line))


def _connected(state: Path) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # The queue of a stopped daemon can be full. With settimeout, connect would fail at once if the queue is full.
    seconds, micros = divmod(round(SILENT_SECONDS * 1e6), 1_000_000)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", seconds, micros))
    try:
        with short_address(socket_file(state)) as address:
            sock.connect(address)
    except BaseException as error:
        sock.close()
        if isinstance(error, OSError):
            raise _failure(error, socket_file(state)) from error
        raise
    return sock


def _failure(error: OSError, file: Path) -> Exception:
    if isinstance(error, FileNotFoundError | NotADirectoryError | ConnectionError):
        return NoDaemon()
    if isinstance(error, BlockingIOError):
        return DaemonSilent(SILENT_SECONDS)
    if isinstance(error, PermissionError):
        return RequestRefused(
            f"This account has no access to the daemon's socket {file}. Run the command as the daemon's account, with 'sudo -u'."
        )
    return RequestRefused(f"The daemon's socket {file} can't be used: {error.strerror or error}.")
