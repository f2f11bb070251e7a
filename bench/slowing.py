"""A server that slows down or refuses requests as its arguments say, to measure adaptive senders.

It implements only the interface document. ``python -m bench.slowing knee 20 0.02`` responds after 20 ms if at most 20 requests
are in flight, and proportionally later with more. ``python -m bench.slowing rate 300`` refuses writes beyond 300 a second with
429 and Retry-After, and announces no limits. The program prints its port; ``GET /tally`` returns the times of the writes.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sys
import time
from dataclasses import dataclass, field
from typing import cast

import uvloop

from bench.counting import LABEL, SINK, WORKSPACE

BURST_SECONDS = 0.1


@dataclass(slots=True)
class Behaviour:
    """When the server accepts a write and how late it responds. ``accepted`` and ``refused``: times of the monotonic clock."""

    knee: int = 0
    seconds: float = 0.0
    per_second: float = 0.0
    in_flight: int = 0
    tokens: float = 0.0
    at: float = field(default_factory=time.monotonic)
    accepted: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)

    def allows(self) -> bool:
        if not self.per_second:
            return True
        now = time.monotonic()
        self.tokens = min(max(1.0, self.per_second * BURST_SECONDS), self.tokens + (now - self.at) * self.per_second)
        self.at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True

    def latency(self) -> float:
        return self.seconds * max(1.0, self.in_flight / self.knee) if self.knee else 0.0


class _Connection(asyncio.Protocol):
    def __init__(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        self._buffer = b""
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            found = re.search(rb"\r\ncontent-length:\s*(\d+)", self._buffer[:end].lower())
            stop = end + 4 + (int(found[1]) if found else 0)
            if len(self._buffer) < stop:
                return
            head, body, self._buffer = self._buffer[:end], self._buffer[end + 4 : stop], self._buffer[stop:]
            method, target, _ = head.split(b" ", 2)
            self._serve(method, target, body)

    def _serve(self, method: bytes, target: bytes, body: bytes) -> None:
        behaviour = self._behaviour
        if method == b"GET":
            self._respond(200, json.dumps(self._shown(target)).encode())
        elif not behaviour.allows():
            behaviour.refused.append(time.monotonic())
            self._respond(429, b'{"error":"Too many requests"}', b"Retry-After: 1\r\n")
        else:
            behaviour.in_flight += 1
            asyncio.get_running_loop().call_later(behaviour.latency(), self._done, body)

    def _shown(self, target: bytes) -> object:
        if target == b"/tally":
            return {"accepted": self._behaviour.accepted, "refused": self._behaviour.refused}
        if target.endswith(b"/list"):
            return [{"id": SINK, "label": LABEL, "visibleId": "SNK-1"}]
        if target == b"/v1/workspace":
            return [{"id": WORKSPACE, "label": "Bench"}]
        return {"id": SINK, "label": LABEL, "entries": []}

    def _done(self, body: bytes) -> None:
        self._behaviour.in_flight -= 1
        self._behaviour.accepted.append(time.monotonic())
        self._respond(201, body)

    def _respond(self, status: int, body: bytes, more: bytes = b"") -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(
                b"HTTP/1.1 %d .\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s"
                % (status, more, len(body), body)
            )


async def _serve(behaviour: Behaviour) -> None:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    server = await loop.create_server(lambda: _Connection(behaviour), "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await stopped.wait()
    server.close()


if __name__ == "__main__":
    kind, *numbers = sys.argv[1:]
    if kind == "knee":
        made = Behaviour(knee=int(numbers[0]), seconds=float(numbers[1]))
    else:
        made = Behaviour(per_second=float(numbers[0]))
    uvloop.run(_serve(made))
