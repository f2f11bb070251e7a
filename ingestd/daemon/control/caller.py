"""A command's end of the control socket."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

from ingestd.daemon.control.address import short_address, socket_file
from ingestd.daemon.control.refusal import DaemonEnded, RequestRefused
from ingestd.daemon.control.requests import LONGEST_LINE, Answer, Request, asked, read_answer


class NobodyListens(Exception):
    """There is no daemon at the other end."""


async def call(state: Path, request: Request) -> Answer:
    """Ask the daemon that holds a state file, and wait for its answer as long as it takes.

    Raises:
        NobodyListens: none runs, or it has no socket.
        DaemonEnded: it ended before it answered.
        RequestRefused: it can't, or its socket can't be used.
    """
    calling = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short_address(socket_file(state)) as address:
            calling.connect(address)
    except (FileNotFoundError, NotADirectoryError, ConnectionError) as error:
        calling.close()
        raise NobodyListens from error
    except PermissionError as error:
        calling.close()
        raise RequestRefused(
            f"The daemon runs under another account; its socket {socket_file(state)} is not for this one. Use 'sudo -u'."
        ) from error
    except OSError as error:
        calling.close()
        raise RequestRefused(
            f"The daemon can't be asked by its socket {socket_file(state)}: {error.strerror or error}."
        ) from error
    except BaseException:
        calling.close()
        raise
    try:
        reader, writer = await asyncio.open_unix_connection(sock=calling, limit=LONGEST_LINE)
    except OSError:
        calling.close()
        raise DaemonEnded from None
    try:
        writer.write(asked(request))
        await writer.drain()
        line = await reader.readline()
    except ConnectionError:
        line = b""
    finally:
        writer.close()
    if not line.endswith(b"\n"):
        raise DaemonEnded
    return read_answer(request, line)
