"""Messages between the supervisor and a worker: a socket pair, one JSON object per line.

The worker reports that it is ready, or why it can't start; the supervisor sends requests. Either notices the other's death
by the end of the stream.
"""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from typing import Any, TypeAlias

_LINE_BYTES = 1 << 20

Message: TypeAlias = Mapping[str, Any]


class Channel:
    """One end of the socket pair."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._numbers = count(1)
        self.received_at = time.monotonic()
        """When the last message came, on the monotonic clock."""
        self._requests: dict[int, asyncio.Future[Message]] = {}

    @classmethod
    async def over(cls, end: socket.socket) -> Channel:
        """Return the channel of a connected socket, which the channel owns from now on."""
        return cls(*await asyncio.open_unix_connection(sock=end, limit=_LINE_BYTES))

    def send(self, message: Message) -> None:
        """Send a message; it is lost if the other end is closed."""
        self._writer.write(json.dumps(message).encode() + b"\n")

    async def receive(self) -> Message | None:
        """Return the next message that is not a response to a request of this end; None at the end of the stream."""
        while line := await self._line():
            self.received_at = time.monotonic()
            message: Message = json.loads(line)
            waiting = self._requests.pop(message.get("response_to", 0), None)
            if waiting is None:
                return message
            if not waiting.done():
                waiting.set_result(message)
        return None

    async def request(self, name: str, *, within: float) -> Message | None:
        """Return the response; None if there is none after so many seconds. Meanwhile another task must await `receive`."""
        number = next(self._numbers)
        self._requests[number] = asyncio.get_running_loop().create_future()
        self.send({"request": name, "number": number})
        try:
            return await asyncio.wait_for(self._requests[number], within)
        except TimeoutError:
            return None
        finally:
            self._requests.pop(number, None)

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()

    async def _line(self) -> bytes:
        with suppress(ConnectionError):
            return await self._reader.readline()
        return b""
