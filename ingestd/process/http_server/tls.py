"""TLS between a TCP transport and a `BoundedConnection`.

asyncio's own TLS calls a protocol only after the handshake, and does not report how many bytes its transport has not sent. With
asyncio's TLS, the limits for connections, for the head and for the reading of a response would have no effect.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import Any, Final, cast

from ingestd.process.http_server.connection import BoundedConnection

_RECORDS_BYTES: Final = 262_144


class TlsTransport(asyncio.Transport, asyncio.Protocol):
    """The transport of ``connection``, and the protocol of the transport below it.

    `connection_made` is called before the handshake, so that the connection is counted, and the deadline of its first head
    includes the handshake. Data that is written before the handshake (the response to a refused connection) is sent after it.
    `close` does not wait for the client's confirmation (RFC 8446, 6.1).
    """

    def __init__(self, connection: BoundedConnection, context: ssl.SSLContext) -> None:
        super().__init__()
        self._connection = connection
        self._below: asyncio.Transport
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._session = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._is_established = False
        self._early = b""

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Pass this transport to the connection."""
        self._below = cast("asyncio.Transport", transport)  # uvloop's transport is not a subclass
        self._connection.connection_made(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the connection."""
        self._connection.connection_lost(exc)

    def pause_writing(self) -> None:
        """Pass the call on."""
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        """Pass the call on."""
        self._connection.resume_writing()

    def data_received(self, data: bytes) -> None:
        """Continue the handshake, or pass on the content of the records."""
        self._incoming.write(data)
        try:
            if not self._is_established:
                self._session.do_handshake()
                self._is_established = True
                self.write(self._early)
            while content := self._session.read(_RECORDS_BYTES):
                self._connection.data_received(content)
                if self._below.is_closing():
                    return
            self.close()  # the client sends nothing more
        except ssl.SSLWantReadError:
            self._flush()
        except ssl.SSLError:
            self._connection.note("tls_failed")
            self._flush()  # an alert with the reason
            self._below.close()

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._below.write(self._outgoing.read())

    # Called by the connection

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send the data."""
        if self._below.is_closing():
            return
        if not self._is_established:
            self._early += data
            return
        rest = memoryview(data)
        while rest:
            rest = rest[self._session.write(rest) :]
        self._flush()

    def close(self) -> None:
        """Close after everything has been sent."""
        if self._is_established and not self._below.is_closing():
            with suppress(ssl.SSLError):
                self._session.unwrap()
            self._flush()
        self._below.close()

    def abort(self) -> None:
        """Close at once."""
        self._below.abort()

    def is_closing(self) -> bool:
        """Return whether the connection is being closed."""
        return self._below.is_closing()

    def pause_reading(self) -> None:
        """Stop reading; bytes that were read before may still be passed on."""
        self._below.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        self._below.resume_reading()

    def can_write_eof(self) -> bool:
        """Return False: only `close` ends the sending."""
        return False

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes that the kernel has not accepted yet."""
        return self._below.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return a property of the connection; ``sslcontext`` makes uvicorn use the scheme https."""
        return self._session.context if name == "sslcontext" else self._below.get_extra_info(name, default)
