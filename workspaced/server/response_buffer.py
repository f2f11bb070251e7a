"""Write a response's head and body to the socket in one system call; uvicorn makes two.

A write to a loopback socket costs as much as the rest of uvicorn's part in a small request, and wakes the client, which can't
do anything with the head alone.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any, Final

# A larger piece is written at once, to avoid holding and copying the pieces of a stream.
_GATHERED_BYTES = 65_536
_RESET: Final = struct.pack("ii", 1, 0)


class GatheringTransport(asyncio.Transport):
    """A transport that gathers the writes of one iteration of the event loop, over another transport."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._waiting: list[bytes] = []
        self._written = 0

    @property
    def unsent(self) -> int:
        """Return how many written bytes the kernel has not accepted yet."""
        return self._transport.get_write_buffer_size() + sum(map(len, self._waiting))

    @property
    def sent(self) -> int:
        """Return how many bytes the kernel has accepted."""
        return self._written - self.unsent

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send the bytes, in order, before the next iteration of the event loop."""
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
        """Close after all bytes have been sent."""
        self._flush()
        self._transport.close()

    def write_eof(self) -> None:
        """End this direction after all bytes have been sent; the client may still send."""
        self._flush()
        self._transport.write_eof()

    def abort(self) -> None:
        """Close at once; unsent bytes are lost, even those that the kernel has accepted."""
        self._waiting.clear()
        below = self._transport.get_extra_info("socket")
        if below is not None and not self._transport.is_closing():
            # Otherwise the kernel keeps megabytes for a client that does not read, long after the connection is closed.
            below.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)  # codespell:ignore linger
        self._transport.abort()

    def is_closing(self) -> bool:
        """Return whether it was closed."""
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return it from the underlying transport."""
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        """Pause the underlying transport."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Resume the underlying transport."""
        self._transport.resume_reading()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Set it on the underlying transport."""
        self._transport.set_protocol(protocol)
