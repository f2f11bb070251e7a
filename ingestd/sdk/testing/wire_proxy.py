"""A TCP proxy for tests: it cuts, stalls or half-closes connections after a number of bytes from the server."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Literal, Self, TypeAlias

Fault: TypeAlias = Literal["cut", "stall", "half-close"]
"""cut: the connection is closed. stall: no more bytes arrive, and nothing is closed. half-close: only the direction from the
server to the client is closed."""


class WireProxy:
    """Forwards connections to a port of this machine. ``left``: the bytes from the server until the fault; None: no fault."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0
        self.left: int | None = None
        self.what: Fault = "cut"
        self.reached = threading.Event()
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            server = socket.create_connection(("127.0.0.1", self._target))
            self._open += [client, server]
            for source, target, counted in ((client, server, False), (server, client, True)):
                thread = threading.Thread(target=self._pump, args=(source, target, counted), daemon=True)
                self._threads.append(thread)
                thread.start()

    def break_after(self, what: Fault, count: int) -> None:
        """Cause a fault after ``count`` more bytes from the server, counted over all connections."""
        self.reached.clear()
        self.what, self.left = what, count

    def heal(self) -> None:
        """Forward all bytes of new connections; the existing connections are closed."""
        self.left = None
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _pump(self, source: socket.socket, target: socket.socket, counted: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 14):
                if counted and self.left is not None:
                    self.left -= len(data)
                    if self.left < 0:
                        self.reached.set()
                        if self.what == "half-close":
                            target.shutdown(socket.SHUT_WR)
                        if self.what != "cut":
                            return
                        break
                target.sendall(data)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        for thread in self._threads:
            thread.join()
