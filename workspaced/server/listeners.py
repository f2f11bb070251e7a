"""Sockets to listen on."""

from __future__ import annotations

import os
import socket

_BACKLOG = 2048
# The size of the kernel's send buffer of a connection. By default, the buffer of a slow client grows to 4 MiB.
_SEND_BUFFER_BYTES = 262_144


class PortTaken(Exception):
    """The service can't listen on the address."""


def listen(host: str, port: int, *, option: str = "--port") -> socket.socket:
    """Return a listening socket. Port 0 selects any free port.

    Raises:
        PortTaken: the port is in use, or the address does not belong to this machine. The error names ``option``.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise PortTaken(
            f"The service can't listen on {host} port {port} ({os.strerror(error.errno or 0)}). "
            f"Stop the program that uses it, or set another port with {option}."
        ) from error
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
    return listener


def url_of(listener: socket.socket, *, scheme: str = "http") -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
