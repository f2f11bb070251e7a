"""A TCP relay that keeps a request although its client has disconnected, as a proxy in front of a frozen host does."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

DEADLINE_SECONDS = 30.0
_CONNECT_SECONDS = 2.0


class KeepingRelay:
    """A relay and context manager. New connections go to the service at ``target``; `route_to` changes the target.

    If a client disconnects before its response, the service still gets the request. `late_statuses` returns the status.
    """

    def __init__(self, target: str, address: str = "127.0.0.1") -> None:
        self._target = target
        self._listener = socket.create_server((address, 0), backlog=128)
        self._clients: set[socket.socket] = set()
        self._sockets: list[socket.socket] = []
        self._changed = threading.Condition()
        self._abandoned = 0
        self._late: list[int] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._holds = False
        self._path = b""
        self._held = threading.Event()
        self._passed_on = threading.Event()
        self._held_statuses: list[int] = []

    @property
    def url(self) -> str:
        address, port = self._listener.getsockname()
        return f"http://{address}:{port}"

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._passed_on.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._sockets:
            _shut(connection)
        for thread in list(self._threads):
            thread.join(DEADLINE_SECONDS)
        for connection in self._sockets:
            connection.close()

    def route_to(self, target: str) -> None:
        """Connect to another service from now on, and disconnect all clients."""
        with self._changed:
            self._target = target
            for client in self._clients:
                _shut(client)

    def hold_writes(self, path: bytes = b"") -> None:
        """From now until `wait_for_held`, hold writes that contain ``path``. `pass_on` releases them."""
        self._path = path
        self._held.clear()
        self._passed_on.clear()
        self._held_statuses.clear()
        self._holds = True

    def wait_for_held(self) -> None:
        """Wait until a write is held. Pass later writes on."""
        assert self.holds_one(DEADLINE_SECONDS)

    def holds_one(self, seconds: float) -> bool:
        """Wait up to ``seconds``, and return whether a write is held. Pass later writes on."""
        is_held = self._held.wait(seconds)
        self._holds = False
        return is_held

    def pass_on(self) -> None:
        """Pass on the held writes."""
        self._passed_on.set()

    def held_statuses(self) -> list[int]:
        """Wait for the response to a held write; return the statuses of all held writes so far, empty after a timeout."""
        with self._changed:
            self._changed.wait_for(lambda: self._held_statuses, DEADLINE_SECONDS)
            return list(self._held_statuses)

    def late_statuses(self) -> list[int]:
        """Wait for the responses to all requests of clients that disconnected since the last call; return the statuses."""
        with self._changed:
            assert self._changed.wait_for(lambda: 0 < self._abandoned <= len(self._late), DEADLINE_SECONDS)
            found, self._late, self._abandoned = self._late, [], 0
            return found

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            parts = urlsplit(self._target)
            try:
                server = socket.create_connection(
                    (str(parts.hostname), int(parts.port or 80)), timeout=_CONNECT_SECONDS
                )
            except OSError:  # the client gets an end without a response
                client.close()
                continue
            server.settimeout(None)
            with self._changed:
                self._clients.add(client)
                self._sockets += (client, server)
            connection = _Connection(client, server)
            for work in (self._pass_requests, self._pass_responses):
                thread = threading.Thread(target=work, args=(connection,), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _pass_requests(self, connection: _Connection) -> None:
        while data := _received(connection.client):
            connection.waits = True
            if self._holds and not data.startswith(b"GET ") and self._path in data:
                connection.is_held = True
                self._held.set()
                self._passed_on.wait()
            with suppress(OSError):
                connection.server.sendall(data)
        with self._changed:
            self._clients.discard(connection.client)
            connection.has_left = True
            if connection.waits:
                self._abandoned += 1
            else:
                _shut(connection.server)
            self._changed.notify_all()

    def _pass_responses(self, connection: _Connection) -> None:
        while data := _received(connection.server):
            with self._changed:
                connection.waits = False
                if connection.is_held:
                    connection.is_held = False
                    self._held_statuses.append(int(data.split(b" ", 2)[1]))
                    self._changed.notify_all()
                if connection.has_left:
                    self._late.append(int(data.split(b" ", 2)[1]))
                    self._changed.notify_all()
                    break
            with suppress(OSError):
                connection.client.sendall(data)
        _shut(connection.server)
        _shut(connection.client)


class _Connection:
    """A connection of a client, and the relay's connection to the service for this client.

    ``waits``: a request has no response yet. ``is_held``: a held write has no response yet.
    """

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client = client
        self.server = server
        self.waits = False
        self.has_left = False
        self.is_held = False


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(1 << 20)
    except OSError:
        return b""


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
