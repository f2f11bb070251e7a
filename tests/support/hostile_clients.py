"""Hostile clients over loopback: several kinds that hold connections open, from many addresses of this machine.

`hostile` runs the clients on the running loop, `attack` in a separate process. A client connects again when the service closes
its connection, so that the number of hostile connections is constant.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from typing import TypeAlias

Wire: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Ready: TypeAlias = Callable[[], None]
Behaviour: TypeAlias = Callable[[Wire, Ready], Awaitable[None]]
"""Uses a connection until the service closes it. Calls the second argument when the attack has taken effect."""

_PAUSE_SECONDS = 1.0
_AGAIN_SECONDS = 0.5
_SAMPLE_SECONDS = 0.1
_RESET = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Target:
    """The attacked service, and the key and the paths that hostile clients use."""

    host: str
    port: int
    key: str
    large_path: str
    live_path: str
    cookie: str

    def head(self, method: str, path: str, *more: str) -> bytes:
        """Return the head of a request with the key, without the empty line at its end."""
        lines = (f"{method} {path} HTTP/1.1", f"Host: {self.host}", f"x-api-key: {self.key}", *more)
        return "\r\n".join(lines).encode() + b"\r\n"


@dataclass(slots=True)
class ClientGroup:
    """Hostile clients of one kind. ``ready`` is set when the attack of each client has taken effect once."""

    clients: int
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    connections: int = 0
    most_connections: int = 0
    connects: int = 0
    _ready_clients: set[int] = field(default_factory=set)

    def note_ready(self, client: int) -> None:
        """Record that the attack of a client has taken effect."""
        self._ready_clients.add(client)
        if len(self._ready_clients) == self.clients:
            self.ready.set()


def not_reading(target: Target) -> Behaviour:
    """Request a large response and read none of it."""

    async def behave(wire: Wire, ready: Ready) -> None:
        wire[1].write(target.head("GET", target.large_path) + b"\r\n")
        await _hold_unread(wire, ready)

    return behave


def half_head(target: Target) -> Behaviour:
    """Send the first part of a head, then nothing."""

    async def behave(wire: Wire, ready: Ready) -> None:
        wire[1].write(target.head("GET", "/v1/workspace"))
        await wire[1].drain()
        ready()
        await wire[0].read()

    return behave


def slow_body(target: Target) -> Behaviour:
    """Announce a body, and send one byte of the body each second."""

    async def behave(wire: Wire, ready: Ready) -> None:
        wire[1].write(target.head("POST", "/v1/workspace", "Content-Length: 1000000") + b"\r\n")
        await _drip(wire, ready, b" ")

    return behave


def dripping_head(target: Target) -> Behaviour:
    """Send one header after the other, without an end."""

    async def behave(wire: Wire, ready: Ready) -> None:
        wire[1].write(target.head("GET", "/v1/workspace") + b"x-filling: " + b"x" * 8_000 + b"\r\n")
        await _drip(wire, ready, b"x-one-more: y\r\n")

    return behave


def idle(target: Target) -> Behaviour:
    """Receive one response and keep the connection open."""

    async def behave(wire: Wire, ready: Ready) -> None:
        wire[1].write(b"GET /healthz HTTP/1.1\r\nHost: service\r\n\r\n")
        await _read_until_closed(wire, ready)

    return behave


def live_stream(target: Target) -> Behaviour:
    """Follow a live page, as a browser does."""

    async def behave(wire: Wire, ready: Ready) -> None:
        wire[1].write(target.head("GET", target.live_path, f"Cookie: {target.cookie}") + b"\r\n")
        await _read_until_closed(wire, ready)

    return behave


def refused_body(target: Target) -> Behaviour:
    """Send a chunked body byte by byte in a request without a key, and ignore the response."""

    async def behave(wire: Wire, ready: Ready) -> None:
        head = f"POST /v1/workspace HTTP/1.1\r\nHost: {target.host}\r\nTransfer-Encoding: chunked\r\n\r\n"
        wire[1].write(head.encode())
        await _drip(wire, ready, b"1\r\n \r\n")

    return behave


def pipelining(target: Target) -> Behaviour:
    """Send 30 requests at once, and read no response."""

    async def behave(wire: Wire, ready: Ready) -> None:
        wire[1].write((target.head("GET", target.large_path) + b"\r\n") * 30)
        await _hold_unread(wire, ready)

    return behave


KINDS: tuple[Callable[[Target], Behaviour], ...] = (
    not_reading,
    half_head,
    slow_body,
    dripping_head,
    idle,
    live_stream,
    refused_body,
    pipelining,
)


@asynccontextmanager
async def hostile(
    target: Target, behaviour: Behaviour, *, clients: int, addresses: Sequence[str]
) -> AsyncIterator[ClientGroup]:
    """Run ``clients`` clients of one kind, distributed over the addresses, until the block ends."""
    crowd = ClientGroup(clients)
    tasks = [
        asyncio.create_task(_client(crowd, number, target, behaviour, addresses[number % len(addresses)]))
        for number in range(clients)
    ]
    try:
        yield crowd
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _client(crowd: ClientGroup, number: int, target: Target, behaviour: Behaviour, address: str) -> None:
    while True:
        with suppress(OSError):
            wire = await _connected(target, address)
            crowd.connections += 1
            crowd.connects += 1
            crowd.most_connections = max(crowd.most_connections, crowd.connections)
            try:
                await behaviour(wire, partial(crowd.note_ready, number))
            finally:
                crowd.connections -= 1
                wire[1].transport.abort()
        await asyncio.sleep(_AGAIN_SECONDS)


async def _connected(target: Target, address: str) -> Wire:
    """Connect with small buffers, so that the service notices after a few kilobytes that the client does not read."""
    raw = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        raw.setblocking(False)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)  # codespell:ignore linger
        raw.bind((address, 0))
        await asyncio.get_running_loop().sock_connect(raw, (target.host, target.port))
    except BaseException:
        raw.close()
        raise
    return await asyncio.open_connection(sock=raw, limit=65_536)


async def _hold_unread(wire: Wire, ready: Ready) -> None:
    _, writer = wire
    writer.transport.pause_reading()  # type: ignore[attr-defined]  # StreamWriter's transport reads, too
    await writer.drain()
    ready()
    while not writer.transport.is_closing():
        await asyncio.sleep(_PAUSE_SECONDS)
        writer.write(b"\r\n")  # Only a write detects a closed connection.


async def _read_until_closed(wire: Wire, ready: Ready) -> None:
    reader, writer = wire
    await writer.drain()
    while await reader.read(65_536):
        ready()


async def _drip(wire: Wire, ready: Ready, piece: bytes) -> None:
    reader, writer = wire
    ended = asyncio.create_task(reader.read())
    try:
        while not ended.done():
            writer.write(piece)
            await writer.drain()
            ready()
            await asyncio.wait([ended], timeout=_PAUSE_SECONDS)
    finally:
        ended.cancel()
        await asyncio.wait([ended])


@dataclass(frozen=True, slots=True)
class Attack:
    """The measured attack. ``samples``: the number of open connections in each sample, by kind of client."""

    samples: dict[str, list[int]]
    connections_per_second: float


@contextmanager
def attack(
    targets: Sequence[Target], *, clients: int, addresses: Sequence[str], ready_seconds: float
) -> Iterator[Callable[[], Attack]]:
    """Run ``clients`` clients of each kind in a separate process until the block ends.

    The block begins when the attack of each client has taken effect. Call the yielded function once: it ends the attack and
    returns the result.

    Raises:
        AssertionError: The attack has not taken effect within ``ready_seconds``.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_attack, args=(theirs, tuple(targets), clients, tuple(addresses)), daemon=True)
    process.start()
    theirs.close()

    def end() -> Attack:
        ours.send("end")
        ended: Attack = ours.recv()
        return ended

    try:
        assert ours.poll(ready_seconds), "the hostile clients are not connected in time"
        ours.recv()
        yield end
    finally:
        process.kill()
        process.join()
        ours.close()


def _attack(pipe: Connection, targets: Sequence[Target], clients: int, addresses: Sequence[str]) -> None:
    asyncio.run(_attack_until_ended(pipe, targets, clients, addresses))


async def _attack_until_ended(
    pipe: Connection, targets: Sequence[Target], clients: int, addresses: Sequence[str]
) -> None:
    async with AsyncExitStack() as stack:
        crowds = {
            kind.__name__: [
                await stack.enter_async_context(
                    hostile(target, kind(target), clients=clients // len(targets), addresses=addresses)
                )
                for target in targets
            ]
            for kind in KINDS
        }
        for crowd in (one for of_kind in crowds.values() for one in of_kind):
            await crowd.ready.wait()
        pipe.send("ready")
        samples: dict[str, list[int]] = {name: [] for name in crowds}
        before, begun = _connects(crowds), time.monotonic()
        while not pipe.poll():
            for name, of_kind in crowds.items():
                samples[name].append(sum(crowd.connections for crowd in of_kind))
            await asyncio.sleep(_SAMPLE_SECONDS)
        rate = (_connects(crowds) - before) / (time.monotonic() - begun)
    pipe.send(Attack(samples, rate))


def _connects(crowds: Mapping[str, Sequence[ClientGroup]]) -> int:
    return sum(crowd.connects for of_kind in crowds.values() for crowd in of_kind)
