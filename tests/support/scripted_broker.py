"""A simulated broker that supports only MQTT 3.1.1, and confirms subscriptions after the waiting messages."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

CONNECT, PUBACK, SUBSCRIBE, DISCONNECT = 1, 4, 8, 14
_REFUSED_VERSION = 1


class ScriptedBroker:
    """Sends the ``waiting`` messages to a connected client, and SUBACK only after all messages are acknowledged.

    ``levels``: the protocol level of each client that has connected (4 is MQTT 3.1.1, 5 is MQTT 5). ``subscribed``: the number
    of subscriptions of each accepted client. ``responds``: clients with another version get a refusal before the disconnect.
    """

    def __init__(self, waiting: Sequence[tuple[str, bytes]], *, responds: bool) -> None:
        self._waiting = list(waiting)
        self._responds = responds
        self.levels: list[int] = []
        self.subscribed: list[int] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._connections: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The address of the broker."""
        return f"mqtt://127.0.0.1:{self.port}"

    def close(self) -> None:
        """End all connections."""
        for one in (self._listener, *self._connections):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._thread.join()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._connections.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError, EOFError), connection:
            self._exchange(connection)

    def _exchange(self, connection: socket.socket) -> None:
        kind, body = _receive(connection)
        if kind != CONNECT or body[2:6] != b"MQTT":
            return
        self.levels.append(body[6])
        if body[6] != 4:
            if self._responds:
                connection.sendall(b"\x20\x02" + bytes([0, _REFUSED_VERSION]))
            return
        is_present = bool(self.subscribed)
        self.subscribed.append(0)
        connection.sendall(b"\x20\x02" + bytes([is_present, 0]))
        for number, (topic, payload) in enumerate(self._waiting, start=1):
            name = topic.encode()
            packet = struct.pack(">H", len(name)) + name + struct.pack(">H", number) + payload
            connection.sendall(bytes([0x32, len(packet)]) + packet)
        confirmation = b""
        while True:
            kind, body = _receive(connection)
            if kind == DISCONNECT:
                return
            if kind == PUBACK:
                self._waiting.pop(0)
            if kind == SUBSCRIBE:
                self.subscribed[-1] += 1
                confirmation = b"\x90\x03" + body[:2] + b"\x01"
            if not self._waiting and confirmation:
                connection.sendall(confirmation)
                confirmation = b""


def _receive(connection: socket.socket) -> tuple[int, bytes]:
    kind, length = _read(connection, 1)[0] >> 4, 0
    for shift in range(0, 28, 7):
        one = _read(connection, 1)[0]
        length |= (one & 0x7F) << shift
        if not one & 0x80:
            break
    return kind, _read(connection, length)


def _read(connection: socket.socket, count: int) -> bytes:
    content = b""
    while len(content) < count:
        more = connection.recv(count - len(content))
        if not more:
            raise EOFError
        content += more
    return content


@contextmanager
def scripted_broker(*waiting: tuple[str, bytes], responds: bool = True) -> Iterator[ScriptedBroker]:
    """Run a broker."""
    broker = ScriptedBroker(waiting, responds=responds)
    try:
        yield broker
    finally:
        broker.close()
