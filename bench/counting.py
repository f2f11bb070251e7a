"""A server that counts entries and stores none, so that a measurement shows the cost of the sender.

It supports the operations of the interface document that a sender with bulk mass-update needs. It also accepts syslog-ng's
bodies at ``/lines``, and webhooks at ``/events``, which it does not count. It counts all keys (``P`` and eight digits) and the
distinct keys. It keeps the last item of each body so that values can be checked.

``python -m bench.counting`` prints its port. With ``--single`` it implements only the document: no bulk, one empty sink, one
entry a request. ``GET /tally`` returns the counts, ``POST /tally`` resets them. Times are of the machine's monotonic clock.
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

import msgspec
import uvloop

WORKSPACE = "5a7e0000-0000-4000-8000-000000000001"
SINK = "5a7e0000-0000-4000-8000-000000000002"
LABEL = "Parts"
_BULK = b"X-Bulk-Mass: max-items=5000, max-bytes=16777216\r\n"
_KEY = re.compile(rb'"key":"P(\d{8})')
_REASONS = {200: b"OK", 201: b"Created", 404: b"Not Found", 501: b"Not Implemented"}
_NUMBERS = 100_000_000


class _Item(msgspec.Struct):
    key: str
    value: str | None = None


@dataclass(slots=True)
class Tally:
    """Counts since the last reset. ``lookups``: GET requests; ``writes``: requests with entries."""

    lookups: int = 0
    writes: int = 0
    entries: int = 0
    distinct: int = 0
    largest: int = 0
    bytes: int = 0
    first_at: float | None = None
    last_at: float | None = None
    sampled: list[tuple[str, str | None]] = field(default_factory=list)


class _ServerState:
    """The state of the server: the sink's label once it is created, the seen keys, the tally."""

    def __init__(self, *, single: bool = False) -> None:
        self.single = single
        self.label = LABEL if single else ""
        self.tally = Tally()
        self._seen = bytearray(_NUMBERS // 8)

    def respond(self, method: bytes, target: bytes, body: bytes) -> tuple[int, bytes]:
        path = target.partition(b"?")[0]
        if path == b"/tally":
            return self._totals(method)
        if method == b"GET":
            return self._look_up(path)
        if path == b"/events":
            return 200, b"{}"
        if path.endswith(b"/data-sink"):
            return self._create(body)
        if path.endswith(b"/mass"):
            count, fresh = self._count(body)
            counts = {"created": fresh, "updated": count - fresh, "unchanged": 0, "deleted": 0}
            return 200, json.dumps({"accepted": count, **counts}).encode()
        return self._take_one(path, body)

    def _take_one(self, path: bytes, body: bytes) -> tuple[int, bytes]:
        if path == b"/lines":
            self._count(body)
            return 200, b"{}"
        if self.single and path.endswith(SINK.encode()):
            self._count(body)
            return 201, body
        return 501, b'{"error":"This server only counts."}'

    def _totals(self, method: bytes) -> tuple[int, bytes]:
        if method == b"POST":
            self.label, self.tally = LABEL if self.single else "", Tally()
            self._seen = bytearray(_NUMBERS // 8)
        return 200, msgspec.json.encode(self.tally)

    def _look_up(self, path: bytes) -> tuple[int, bytes]:
        self.tally.lookups += 1
        if path == b"/v1/workspace":
            return 200, json.dumps([{"id": WORKSPACE, "label": "Bench"}]).encode()
        if path.endswith(b"/data-sink/list"):
            sink = {"id": SINK, "label": self.label, "visibleId": "SNK-1", "serial": 1}
            return 200, json.dumps([sink] if self.label else []).encode()
        if self.single:
            return 200, json.dumps({"id": SINK, "label": self.label, "entries": []}).encode()
        if self.label and path.endswith(f"/data-sink/{SINK}".encode()):
            # The server stores no entries, so the member `entries` is missing. A sender that needs entries then fails.
            return 200, json.dumps({"id": SINK, "label": self.label, "visibleId": "SNK-1"}).encode()
        return 501, b'{"error":"This server only counts."}'

    def _create(self, body: bytes) -> tuple[int, bytes]:
        asked = msgspec.json.decode(body)
        self.label = asked["label"]
        entries = asked.get("entries", [])
        if entries:
            self._count(body)
        return 201, msgspec.json.encode({"id": SINK, "label": self.label, "visibleId": "SNK-1", "entries": entries})

    def _count(self, body: bytes) -> tuple[int, int]:
        now = time.monotonic()
        tally, seen = self.tally, self._seen
        tally.first_at = tally.first_at or now
        tally.writes += 1
        tally.bytes += len(body)
        keys = _KEY.findall(body)
        fresh = 0
        for key in keys:
            place, bit = divmod(int(key), 8)
            if not seen[place] >> bit & 1:
                seen[place] |= 1 << bit
                fresh += 1
        tally.entries += len(keys)
        tally.distinct += fresh
        tally.largest = max(tally.largest, len(keys))
        ends = body.rfind(b"}]")
        last = body[body.rfind(b'{"key"') : ends + 1 if ends >= 0 else len(body)]
        if last:
            item = msgspec.json.decode(last, type=_Item)
            tally.sampled.append((item.key, item.value))
        tally.last_at = time.monotonic()
        return len(keys), fresh


class _Connection(asyncio.Protocol):
    """A server connection of HTTP/1.1: bodies with Content-Length, requests handled in order."""

    def __init__(self, state: _ServerState) -> None:
        self._state = state
        self._buffer = bytearray()
        self._continued = False
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)  # uvloop's transport is no subclass

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while self._transport is not None and (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._buffer[:end])
            fields = head.lower()
            found = re.search(rb"\r\ncontent-length:\s*(\d+)", fields)
            stop = end + 4 + (int(found[1]) if found else 0)
            if len(self._buffer) < stop:
                if b"100-continue" in fields and not self._continued:
                    self._continued = True
                    self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                return
            method, target, _ = head.split(b"\r\n", 1)[0].split(b" ")
            status, body = self._state.respond(method, target, bytes(self._buffer[end + 4 : stop]))
            del self._buffer[:stop]
            self._continued = False
            self._transport.write(
                b"HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nPreference-Applied: return=minimal\r\n%s"
                b"Content-Length: %d\r\n\r\n%s"
                % (status, _REASONS[status], b"" if self._state.single else _BULK, len(body), body)
            )


async def _serve() -> None:
    state = _ServerState(single="--single" in sys.argv)
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    server = await loop.create_server(lambda: _Connection(state), "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await stopped.wait()
    server.close()


if __name__ == "__main__":
    uvloop.run(_serve())
