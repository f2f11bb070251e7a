"""Sockets to listen on.

Processes that share a port each listen on a socket of their own (SO_REUSEPORT), and the kernel deals the connections out:
of 64 that came at once, two processes got 31 and 33, whereas one socket that both inherit gave up to 61 to one of them.
"""

from __future__ import annotations

import os
import socket

BACKLOG = 2048
# What the system buffers for a client that does not read, on each connection. Left to itself it takes up to 4 MiB.
_SEND_BUFFER_BYTES = 262_144


class PortTaken(Exception):
    """The address can't be listened on."""


def listen(host: str, port: int, *, shared: bool = False, option: str = "--port") -> socket.socket:
    """A listening socket; port 0 takes a free one. ``shared``: others that say so too may listen there as well.

    Raises:
        PortTaken: it is in use, or the address is not one of this machine. ``option`` is what the sentence names.
    """
    try:
        listener = socket.create_server((host, port), family=_family(host), backlog=BACKLOG, reuse_port=shared)
    except OSError as error:
        raise _taken(host, port, error, option) from error
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
    return listener


def reserve(host: str, port: int) -> socket.socket:
    """A port for processes that will share it; it takes no connections itself. Port 0 takes a free one.

    Raises:
        PortTaken: it is in use, also by processes that would share it: two services on one port would each get half of the
            requests.
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
    """The URL under which a socket answers."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _taken(host: str, port: int, error: OSError, option: str) -> PortTaken:
    return PortTaken(
        f"{host} port {port} can't be listened on ({os.strerror(error.errno or 0)}). "
        f"Stop what uses it, or give another one with {option}."
    )
