"""Sockets to listen on."""

from __future__ import annotations

import errno
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
    if not host:  # the system would listen on every address, which a script with an unset variable does not intend
        raise PortTaken(f"The address for {option} is empty. Give an address of this machine, or 0.0.0.0 for all.")
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        number = error.errno or 0
        reason = os.strerror(number) if number > 0 else "no address is known for this name"
        remedy = f"Stop the program that uses it, or set another port with {option}."
        if number in {errno.EADDRNOTAVAIL, errno.EINVAL} or number < 0:
            remedy = "Give an address of this machine, such as 127.0.0.1 or ::1."
        raise PortTaken(f"The service can't listen on {host} port {port} ({reason}). {remedy}") from error
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
    return listener


def url_of(listener: socket.socket, *, scheme: str = "http") -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
