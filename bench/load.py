"""A load generator: sends prepared requests over several connections, one request at a time on each.

It implements HTTP itself, because a general client would be the bottleneck: for a thousand small requests, httpx takes 0.6 CPU
seconds, and this program about a hundredth of that.

``python -m bench.load CONNECTIONS KIND SEED COUNT URL...``, with the key in BENCH_API_KEY, prints seconds, CPU seconds and
latencies. KIND is ``single``, ``keyed``, ``read``, or the number of items in a bulk body. ``keyed``: single requests, each with
an Idempotency-Key like the daemon's. ``read``: single requests, while further connections read entries and pages. COUNT is the
number of entries. Each URL is the mass update of a sink; the connections are divided among the URLs.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import cast
from urllib.parse import quote, urlsplit
from uuid import uuid4

import uvloop

from bench.figures import percentile

WARM_UP = 500
READERS = 4
"""The number of reading connections of a load of kind ``read``."""


def keys_of(seed: int, count: int) -> list[str]:
    """Return random keys, different for each seed. Sorted or repeated keys would be faster in a B-tree."""
    dice = random.Random(seed)
    return [f"P{dice.getrandbits(64):016x}/mass" for _ in range(count)]


def value_of(key: str) -> str:
    return f"{key[1:6]} kg"


def bodies_of(keys: list[str], items: int) -> list[bytes]:
    """Return JSON bodies: one for each key if ``items`` is 0, else lists of ``items`` entries."""
    entries = [{"key": key, "value": value_of(key), "dataType": "scalar"} for key in keys]
    if not items:
        return [json.dumps(entry).encode() for entry in entries]
    return [json.dumps(entries[start : start + items]).encode() for start in range(0, len(entries), items)]


class _Feed:
    """Gives requests to free connections. `done` ends when all requests have a response, or when a request has failed."""

    def __init__(self, requests: Iterable[bytes]) -> None:
        self._requests: Iterator[bytes] = iter(requests)
        self._waiting = 0
        self.latencies: list[float] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def next(self) -> bytes | None:
        request = next(self._requests, None)
        if request is not None:
            self._waiting += 1
        elif not self._waiting and not self.done.done():
            self.done.set_result(None)
        return request

    def record_response(self, seconds: float) -> None:
        self.latencies.append(seconds)
        self._waiting -= 1

    def failed(self, words: str) -> None:
        if not self.done.done():
            self.done.set_exception(RuntimeError(words))


class _Connection(asyncio.Protocol):
    """A client connection of HTTP/1.1: one request at a time, responses with Content-Length."""

    def __init__(self, head: bytes) -> None:
        """``head``: the bytes with which each request begins."""
        self._head = head
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

    def close(self) -> None:
        self._feed = None
        if self._transport:
            self._transport.close()

    def _send(self) -> None:
        request = self._feed.next() if self._feed else None
        if request is None or self._transport is None:
            self._feed = None
            return
        self._sent = time.monotonic()
        self._transport.write(self._head + request)

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
    """The arguments of the program. ``items``: entries of a bulk body; 0: single requests. ``count``: number of entries."""

    urls: Sequence[str]
    """The URLs of the mass updates."""
    connections: int
    items: int
    keyed: bool
    reads: bool
    seed: int
    count: int


async def _load(plan: _Plan) -> dict[str, float]:
    items = plan.items
    keys = keys_of(plan.seed, plan.count)
    warming = bodies_of(keys[: WARM_UP if not items else 0], items)
    measured = bodies_of(keys[len(warming) :], items)
    minimal = b"Prefer: return=minimal\r\n" if items else b""
    heads = [b"POST %b HTTP/1.1\r\n%b%b" % (_path(url), _fields(url), minimal) for url in plan.urls]
    opened = [await _connected(plan.urls[at % len(heads)], heads[at % len(heads)]) for at in range(plan.connections)]
    readers = [await _connected(plan.urls[0], b"") for _ in range(READERS if plan.reads else 0)]
    outcome: dict[str, float] = {}
    for bodies in (warming, measured):
        if not bodies:
            continue
        feed = _Feed([_key(plan) + b"Content-Length: %d\r\n\r\n%b" % (len(body), body) for body in bodies])
        started, used = time.monotonic(), time.process_time()
        for connection in opened:
            connection.begin(feed)
        reads = _Feed(_reads(plan.urls[0], keys[: len(warming)]))
        for connection in readers if bodies is measured else ():
            connection.begin(reads)
        ended, _ = await asyncio.wait([feed.done, reads.done], return_when=asyncio.FIRST_COMPLETED)
        for one in ended:
            one.result()  # raises if a request failed; the endless reads are done only after a failure
        outcome = {
            "seconds": time.monotonic() - started,
            "cpu_seconds": time.process_time() - used,
            "entries": len(bodies) * (items or 1),
            "p50": percentile(feed.latencies, 50),
            "p99": percentile(feed.latencies, 99),
        }
        if reads.latencies:
            outcome |= {"reads": len(reads.latencies), "read_p99": percentile(reads.latencies, 99)}
    for connection in [*opened, *readers]:
        connection.close()
    return outcome


async def _connected(url: str, head: bytes) -> _Connection:
    """Connect to the server of a URL; ``head`` as in `_Connection`."""
    parts = urlsplit(url)
    made = partial(_Connection, head)
    return (await asyncio.get_running_loop().create_connection(made, parts.hostname or "", parts.port or 80))[1]


def _reads(url: str, keys: Sequence[str]) -> Iterator[bytes]:
    """Yield requests without end, alternately for an entry and for the first page of 100 entries."""
    sink = _path(url).removesuffix(b"/mass")
    for key in cycle(keys):
        for target in (b"/" + quote(key, safe="").encode(), b"?take=100&sortedBy=key"):
            yield b"GET %b%b HTTP/1.1\r\n%b\r\n" % (sink, target, _fields(url))


def _path(url: str) -> bytes:
    return urlsplit(url).path.encode()


def _fields(url: str) -> bytes:
    """Return the header lines of each request."""
    return (
        f"Host: {urlsplit(url).netloc}\r\nx-api-key: {os.environ['BENCH_API_KEY']}\r\nClientId: bench\r\n"
        "Content-Type: application/json\r\n"
    ).encode()


def _key(plan: _Plan) -> bytes:
    return b"Idempotency-Key: %b\r\n" % uuid4().hex.encode() if plan.keyed else b""


def main(arguments: Sequence[str]) -> None:
    connections, kind, seed, count, *urls = arguments
    items = 0 if kind in {"single", "keyed", "read"} else int(kind)
    plan = _Plan(urls, int(connections), items, kind == "keyed", kind == "read", int(seed), int(count))
    print(json.dumps(uvloop.run(_load(plan))))


if __name__ == "__main__":
    main(sys.argv[1:])
