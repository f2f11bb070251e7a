"""Ports for servers that can't choose a port and report it."""

from __future__ import annotations

import secrets
import socket
from contextlib import suppress

_FIRST, _COUNT = 20_000, 12_000
"""Ports below the ports that Linux gives to clients. So none of thousands of clients of other tests takes the port meanwhile."""


def free_port() -> int:
    """Return a port that is free now."""
    while True:
        port = _FIRST + secrets.randbelow(_COUNT)
        with suppress(OSError), socket.create_server(("", port)):
            return port
