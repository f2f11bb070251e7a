"""HTTP/1.1 directly on a socket: the minimal cost of a request to the service."""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit


class BareConnection:
    """A persistent connection with one request at a time."""

    def __init__(self, url: str, api_key: str) -> None:
        parts = urlsplit(url)
        self._socket = socket.create_connection((parts.hostname or "", parts.port or 80), timeout=30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head = f" HTTP/1.1\r\nHost: {parts.netloc}\r\nx-api-key: {api_key}\r\nClientId: bare\r\n"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def request(self, method: str, path: str, body: bytes = b"") -> int:
        """Send a request, read the whole response and return its status."""
        head = f"{method} {path}{self._head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self._socket.sendall(head.encode() + body)
        response = self._socket.recv(65_536)
        while (end := response.find(b"\r\n\r\n")) < 0:
            response += self._more()
        fields = response[:end].lower()
        length = int(fields.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
        while len(response) < end + 4 + length:
            response += self._more()
        return int(response[9:12])

    def _more(self) -> bytes:
        piece = self._socket.recv(65_536)
        if not piece:
            raise ConnectionError("the service closed the connection in the middle of a response")
        return piece
