"""An HTTP proxy that refuses every connection, and records the hosts that clients asked for."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def refusing_proxy(environment: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Name the proxy in ``HTTPS_PROXY``. Yield the list of the requested hosts, such as ``a.example:443``."""
    hosts: list[str] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            hosts.append(self.rfile.readline().split()[1].decode())
            while self.rfile.readline().strip():
                pass  # the rest of the head
            self.wfile.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        for name in ("HTTPS_PROXY", "https_proxy"):
            environment.setenv(name, f"http://127.0.0.1:{server.server_address[1]}")
        for name in ("NO_PROXY", "no_proxy"):
            environment.delenv(name, raising=False)
        try:
            yield hosts
        finally:
            server.shutdown()
            thread.join()
