"""An answer's head and body in one write to the socket, where uvicorn makes two.

A write to a socket of this machine's own network costs as much as the rest of uvicorn's part in a small request, and wakes the
caller each time; he can't do anything with a head alone.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any, Final

# A piece that is larger goes on at once: a stream's pieces are not held and copied for nothing.
_GATHERED_BYTES = 65_536
_RESET: Final = struct.pack("ii", 1, 0)


class GatheringTransport(asyncio.Transport):
    """A transport that gathers what is written within one turn of the loop, over another one."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._waiting: list[bytes] = []
        self._written = 0

    @property
    def unsent(self) -> int:
        """The bytes that were written and that the system has not taken yet."""
        return self._transport.get_write_buffer_size() + sum(map(len, self._waiting))

    @property
    def sent(self) -> int:
        """The bytes that the system has taken."""
        return self._written - self.unsent

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send it before the loop's next turn ends, behind what was written before."""
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(bytes(data))
        self._written += len(data)
        if len(data) > _GATHERED_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            data = self._waiting[0] if len(self._waiting) == 1 else b"".join(self._waiting)
            self._waiting.clear()
            self._transport.write(data)

    def close(self) -> None:
        """Close when everything has been sent."""
        self._flush()
        self._transport.close()

    def write_eof(self) -> None:
        """End this direction when everything has been sent; the client may still send."""
        self._flush()
        self._transport.write_eof()

    def abort(self) -> None:
        """Close at once; what was not sent is lost, also what the system has taken."""
        self._waiting.clear()
        below = self._transport.get_extra_info("socket")
        if below is not None and not self._transport.is_closing():
            # Otherwise the system keeps megabytes for a client that does not read, long after the connection is closed.
            below.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._transport.abort()

    def is_closing(self) -> bool:
        """Whether it was closed."""
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """As the transport below."""
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        """As the transport below."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """As the transport below."""
        self._transport.resume_reading()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """As the transport below."""
        self._transport.set_protocol(protocol)
