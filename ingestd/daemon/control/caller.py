"""The client of the control socket."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

from ingestd.daemon.control.address import short_address, socket_file
from ingestd.daemon.control.message import LONGEST_LINE
from ingestd.daemon.control.refusal import DaemonEnded, RequestRefused
from ingestd.daemon.control.requests import Request, Response, decode_response, encode_request


class NoDaemon(Exception):
    """No daemon listens on the control socket."""


async def call(state: Path, request: Request) -> Response:
    """Send a request to the daemon that holds a state file, and wait for its response without a time limit.

    Raises:
        NoDaemon: no daemon runs, or the daemon has no socket.
        DaemonEnded: the daemon ended before it responded.
        RequestRefused: the daemon can't execute the request, or its socket can't be used.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short_address(socket_file(state)) as address:
            sock.connect(address)
    except (FileNotFoundError, NotADirectoryError, ConnectionError) as error:
        sock.close()
        raise NoDaemon from error
    except PermissionError as error:
        sock.close()
        raise RequestRefused(
            f"This account has no access to the daemon's socket {socket_file(state)}. Run the command as the daemon's account, "
            "with 'sudo -u'."
        ) from error
    except OSError as error:
        sock.close()
        raise RequestRefused(
            f"The daemon's socket {socket_file(state)} can't be used: {error.strerror or error}."
        ) from error
    except BaseException:
        sock.close()
        raise
    try:
        reader, writer = await asyncio.open_unix_connection(sock=sock, limit=LONGEST_LINE)
    except OSError:
        sock.close()
        raise DaemonEnded from None
    try:
        writer.write(encode_request(request))
        await writer.drain()
        line = await reader.readline()
    except ConnectionError:
        line = b""
    finally:
        writer.close()
    if not line.endswith(b"\n"):
        raise DaemonEnded
    return decode_response(request, line)
