"""How a parent and its worker talk: a socket between the two, one JSON object a line.

The worker says that it is ready, or why it can't be; the parent asks questions. Either notices the other's death by the
end of the line.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from typing import Any, TypeAlias

_LINE_BYTES = 1 << 20

Message: TypeAlias = Mapping[str, Any]


class Channel:
    """One end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._numbers = count(1)
        self._asked: dict[int, asyncio.Future[Message]] = {}

    @classmethod
    async def over(cls, end: socket.socket) -> Channel:
        """On a connected socket, which it owns from now on."""
        return cls(*await asyncio.open_unix_connection(sock=end, limit=_LINE_BYTES))

    def say(self, message: Message) -> None:
        """Send something; nothing happens where nobody is there any more."""
        self._writer.write(json.dumps(message).encode() + b"\n")

    async def heard(self) -> Message | None:
        """The next message that is no answer to a question of ours; None at the end."""
        while line := await self._line():
            message: Message = json.loads(line)
            waiting = self._asked.pop(message.get("answers", 0), None)
            if waiting is None:
                return message
            if not waiting.done():
                waiting.set_result(message)
        return None

    async def ask(self, question: str, *, within: float) -> Message | None:
        """The answer; None if there is none after so many seconds. Somebody has to be at `heard` meanwhile."""
        number = next(self._numbers)
        self._asked[number] = asyncio.get_running_loop().create_future()
        self.say({"question": question, "number": number})
        try:
            return await asyncio.wait_for(self._asked[number], within)
        except TimeoutError:
            return None
        finally:
            self._asked.pop(number, None)

    def close(self) -> None:
        """Hang up."""
        self._writer.close()

    async def _line(self) -> bytes:
        with suppress(ConnectionError):
            return await self._reader.readline()
        return b""
