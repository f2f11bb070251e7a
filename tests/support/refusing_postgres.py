"""A simulated PostgreSQL server that requires a password and refuses each password."""

from __future__ import annotations

import contextlib
import socketserver
import struct
import threading
from collections.abc import Iterator
from typing import Any

_ASK_CLEARTEXT = b"R" + struct.pack("!ii", 8, 3)
_SSL_REQUEST = 80877103
_GSS_REQUEST = 80877104


class _Conversation(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        """Refuse encryption, read the startup message, request a password, and refuse it."""
        while True:
            (length,) = struct.unpack("!i", self.rfile.read(4))
            if struct.unpack("!i", self.rfile.read(length - 4)[:4])[0] not in {_SSL_REQUEST, _GSS_REQUEST}:
                break
            self.wfile.write(b"N")
        self.wfile.write(_ASK_CLEARTEXT)
        if self.rfile.read(1) != b"p":  # a client without a password disconnects
            return
        (length,) = struct.unpack("!i", self.rfile.read(4))
        self.rfile.read(length - 4)
        self.server.attempts += 1  # type: ignore[attr-defined]
        code, words = self.server.refusal  # type: ignore[attr-defined]
        fields = f"SFATAL\0VFATAL\0C{code}\0M{words}\0\0".encode()
        self.wfile.write(b"E" + struct.pack("!i", 4 + len(fields)) + fields)


@contextlib.contextmanager
def refusing_postgres(
    code: str = "28P01", words: str = 'password authentication failed for user "someone"'
) -> Iterator[int]:
    """Run the server; yield its port on 127.0.0.1. ``code`` and ``words``: the refusal."""
    with counting_postgres(code, words) as server:
        yield server.server_address[1]


@contextlib.contextmanager
def counting_postgres(code: str, words: str) -> Iterator[Any]:
    """Run the server; yield it. Its attribute ``attempts`` counts the attempts to log in."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Conversation) as server:
        server.refusal, server.attempts = (code, words), 0  # type: ignore[attr-defined]
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield server
        finally:
            server.shutdown()
            serving.join()
