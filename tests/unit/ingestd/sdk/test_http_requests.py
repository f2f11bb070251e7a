"""The end of a connection: how much of an unread request is dropped."""

from __future__ import annotations

import asyncio
import socket

from ingestd.sdk.http_requests import OpenConnections


async def test_at_most_64_kib_of_an_unread_request_are_dropped() -> None:
    ours, theirs = socket.socketpair()
    writer = (await asyncio.open_connection(sock=theirs))[1]
    unread = asyncio.StreamReader()
    unread.feed_data(bytes(1 << 20))
    connections = OpenConnections(1)
    with ours:
        await connections.drain(unread, writer)
        assert ours.recv(1) == b""
    assert len(await unread.read(1 << 20)) >= (1 << 20) - (128 << 10)
