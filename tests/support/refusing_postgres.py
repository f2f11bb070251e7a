"""A PostgreSQL server that requires a password and accepts none, as if the client's password were wrong."""

from __future__ import annotations

import contextlib
import socketserver
import struct
import threading
from collections.abc import Iterator

_ASK_CLEARTEXT = b"R" + struct.pack("!ii", 8, 3)
_SSL_REQUEST = 80877103
_GSS_REQUEST = 80877104


class _Conversation(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        """Follow the protocol: no encryption, startup, request for a password, rejection."""
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
        fields = b'SFATAL\0VFATAL\0C28P01\0Mpassword authentication failed for user "someone"\0\0'
        self.wfile.write(b"E" + struct.pack("!i", 4 + len(fields)) + fields)


@contextlib.contextmanager
def refusing_postgres() -> Iterator[int]:
    """Return its port on 127.0.0.1."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Conversation) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            serving.join()
