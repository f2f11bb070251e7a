"""Sockets to listen on.

Processes that share a port each listen on a socket of their own (SO_REUSEPORT), and the kernel distributes the connections:
of 64 that came at once, two processes got 31 and 33. With one inherited socket, one process got up to 61.
"""

from __future__ import annotations

import os
import socket

BACKLOG = 2048
# The kernel's send buffer of each connection, for clients that read slowly. Its default grows to 4 MiB.
_SEND_BUFFER_BYTES = 262_144


class PortTaken(Exception):
    """The service can't listen on the address."""


def listen(host: str, port: int, *, shared: bool = False, option: str = "--port") -> socket.socket:
    """Return a listening socket; port 0 takes a free one. ``shared``: other sockets that are shared may use the same port.

    Raises:
        PortTaken: the port is in use, or the address is not of this machine. The error names ``option``.
    """
    try:
        listener = socket.create_server((host, port), family=_family(host), backlog=BACKLOG, reuse_port=shared)
    except OSError as error:
        raise _taken(host, port, error, option) from error
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
    return listener


def reserve(host: str, port: int) -> socket.socket:
    """Reserve a port for processes that will share it; the socket accepts no connections. Port 0 takes a free one.

    Raises:
        PortTaken: the port is in use, even if by processes that would share it: two services on one port would each get half
            of the requests.
    """
    if port:
        listen(host, port).close()
    held = socket.socket(_family(host), socket.SOCK_STREAM)
    try:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind((host, port))
    except OSError as error:
        held.close()
        raise _taken(host, port, error, "--port") from error
    return held


def url_of(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _taken(host: str, port: int, error: OSError, option: str) -> PortTaken:
    return PortTaken(
        f"The service can't listen on {host} port {port} ({os.strerror(error.errno or 0)}). "
        f"Stop the program that uses it, or set another one with {option}."
    )
