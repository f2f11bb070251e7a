"""Prepared requests over connections that each wait for their response.

It has its own protocol, because a general HTTP client would be the limit: httpx takes 0.6 CPU-seconds for a thousand small
requests, this about a hundredth of it.

``python -m bench.load URL PATH CONNECTIONS KIND SEED COUNT``, with the key in BENCH_API_KEY, prints seconds, CPU-seconds and
latencies. KIND is ``single``, ``keyed`` (single, each request with an Idempotency-Key, as the daemon sends them) or the number
of items of a bulk body.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit
from uuid import uuid4

import uvloop

from bench.figures import percentile

WARM_UP = 500


def keys_of(seed: int, count: int) -> list[str]:
    """Return keys in random order, different for every seed: sorted or repeated keys would be faster in a B-tree."""
    dice = random.Random(seed)
    return [f"P{dice.getrandbits(64):016x}/mass" for _ in range(count)]


def value_of(key: str) -> str:
    return f"{key[1:6]} kg"


def bodies_of(keys: list[str], items: int) -> list[bytes]:
    """Return a JSON body for each key if ``items`` is 0, else lists of ``items``."""
    entries = [{"key": key, "value": value_of(key), "dataType": "scalar"} for key in keys]
    if not items:
        return [json.dumps(entry).encode() for entry in entries]
    return [json.dumps(entries[start : start + items]).encode() for start in range(0, len(entries), items)]


class _Feed:
    """Gives requests to free connections, and counts the responses."""

    def __init__(self, requests: list[bytes]) -> None:
        self._requests: Iterator[bytes] = iter(requests)
        self._left = len(requests)
        self.latencies: list[float] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def next(self) -> bytes | None:
        return next(self._requests, None)

    def record_response(self, seconds: float) -> None:
        self.latencies.append(seconds)
        self._left -= 1
        if not self._left and not self.done.done():
            self.done.set_result(None)

    def failed(self, words: str) -> None:
        if not self.done.done():
            self.done.set_exception(RuntimeError(words))


class _Connection(asyncio.Protocol):
    """HTTP/1.1, one request at a time, responses with Content-Length."""

    def __init__(self) -> None:
        self._buffer = b""
        self._sent = 0.0
        self._feed: _Feed | None = None
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)  # uvloop's transport is no subclass

    def connection_lost(self, exc: Exception | None) -> None:
        if self._feed:
            self._feed.failed(f"the service closed a connection ({exc})")

    def begin(self, feed: _Feed) -> None:
        self._feed = feed
        self._send()

    def _send(self) -> None:
        request = self._feed.next() if self._feed else None
        if request is None or self._transport is None:
            self._feed = None
            return
        self._sent = time.monotonic()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0 or self._feed is None:
            return
        head = self._buffer[:end].lower()
        at = head.find(b"content-length:") + 15
        stop = head.find(b"\r\n", at)
        length = int(head[at : stop if stop > 0 else end])
        if len(self._buffer) < end + 4 + length:
            return
        if not head.startswith(b"http/1.1 200"):
            self._feed.failed(self._buffer[:600].decode("utf-8", "replace"))
            return
        self._buffer = b""
        self._feed.record_response(time.monotonic() - self._sent)
        self._send()


@dataclass(frozen=True, slots=True)
class _Plan:
    """``items`` 0: the document's single form. ``count`` is of entries."""

    url: str
    path: str
    connections: int
    items: int
    keyed: bool
    seed: int
    count: int


async def _load(plan: _Plan) -> dict[str, float]:
    parts, items = urlsplit(plan.url), plan.items
    loop = asyncio.get_running_loop()
    head = (
        f"POST {plan.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nx-api-key: {os.environ['BENCH_API_KEY']}\r\nClientId: bench\r\n"
        f"Content-Type: application/json\r\n{'Prefer: return=minimal' + chr(13) + chr(10) if items else ''}"
    ).encode()
    keys = keys_of(plan.seed, plan.count)
    warming = bodies_of(keys[: WARM_UP if not items else 0], items)
    measured = bodies_of(keys[len(warming) :], items)
    place = parts.hostname or "", parts.port or 80
    opened = [await loop.create_connection(_Connection, *place) for _ in range(plan.connections)]
    outcome: dict[str, float] = {}
    for bodies in (warming, measured):
        if not bodies:
            continue
        feed = _Feed([head + _key(plan) + b"Content-Length: %d\r\n\r\n%b" % (len(body), body) for body in bodies])
        started, used = time.monotonic(), time.process_time()
        for _, connection in opened:
            connection.begin(feed)
        await feed.done
        outcome = {
            "seconds": time.monotonic() - started,
            "cpu_seconds": time.process_time() - used,
            "entries": len(bodies) * (items or 1),
            "p50": percentile(feed.latencies, 50),
            "p99": percentile(feed.latencies, 99),
        }
    for transport, _ in opened:
        transport.close()
    return outcome


def _key(plan: _Plan) -> bytes:
    return b"Idempotency-Key: %b\r\n" % uuid4().hex.encode() if plan.keyed else b""


def main(arguments: Sequence[str]) -> None:
    url, path, connections, kind, seed, count = arguments
    keyed = kind == "keyed"
    items = 0 if keyed or kind == "single" else int(kind)
    plan = _Plan(url, path, int(connections), items, keyed, int(seed), int(count))
    print(json.dumps(uvloop.run(_load(plan))))


if __name__ == "__main__":
    main(sys.argv[1:])
