"""Writes of a response to the socket: complete, in order, a small response in one write, a long one as its parts arrive."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from workspaced.core.asgi import ASGIApp, Receive, Scope, Send
from workspaced.server.connections import Connections
from workspaced.server.protocol import LimitedProtocol
from workspaced.settings.model import Limits

_REQUEST = b"GET / HTTP/1.1\r\nHost: service\r\n\r\n"


class _Socket(asyncio.Transport):
    """Records what was written, in order; ``None`` is the end."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[bytes | None] = []
        self.written = asyncio.Event()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.parts.append(bytes(data))
        self.written.set()

    def close(self) -> None:
        self.parts.append(None)
        self.written.set()

    def is_closing(self) -> bool:
        return None in self.parts

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        known: dict[str, Any] = {"peername": ("127.0.0.1", 1)}
        return known.get(name, default)

    def pause_reading(self) -> None:
        """Do nothing: only the test sends data."""

    def resume_reading(self) -> None:
        """Do nothing, as `pause_reading`."""


def _connected(app: ASGIApp) -> tuple[_Socket, Callable[[bytes], None]]:
    config = uvicorn.Config(app, log_config=None, ws="none")
    config.load()
    socket = _Socket()
    connections = Connections(
        Limits(),
        descriptors=1_024,
        listener="clients",
        is_proxy=lambda _: False,
        count_closed=lambda _: None,
        count_open=lambda _: None,
    )
    protocol = LimitedProtocol(connections=connections, config=config, server_state=ServerState(), app_state={})
    protocol.connection_made(socket)
    return socket, protocol.data_received


def _app_sending(*parts: bytes, length: bool = True, between: asyncio.Event | None = None) -> ASGIApp:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        headers = [(b"content-length", str(sum(map(len, parts))).encode())] if length else []
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for number, part in enumerate(parts):
            await send({"type": "http.response.body", "body": part, "more_body": number < len(parts) - 1})
            if between and number == 0:
                await between.wait()

    return app


async def _until(socket: _Socket, reached: Callable[[bytes], bool]) -> None:
    async with asyncio.timeout(10):
        while not reached(b"".join(part or b"" for part in socket.parts)):
            socket.written.clear()
            await socket.written.wait()


async def test_a_small_response_is_one_write() -> None:
    socket, send = _connected(_app_sending(b'{"key":"a"}'))
    send(_REQUEST)
    await _until(socket, lambda sent: sent.endswith(b'{"key":"a"}'))
    assert len(socket.parts) == 1
    assert (socket.parts[0] or b"").startswith(b"HTTP/1.1 200 OK\r\n")


async def test_the_first_part_of_a_long_response_does_not_wait_for_the_next() -> None:
    on = asyncio.Event()
    socket, send = _connected(_app_sending(b"first", b"second", length=False, between=on))
    send(_REQUEST)
    await _until(socket, lambda sent: b"first" in sent)
    assert b"second" not in b"".join(part or b"" for part in socket.parts)
    on.set()
    await _until(socket, lambda sent: sent.endswith(b"6\r\nsecond\r\n0\r\n\r\n"))


async def test_everything_is_sent_before_the_end() -> None:
    large = b"x" * 100_000
    socket, send = _connected(_app_sending(large, b"end"))
    send(_REQUEST.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    await _until(socket, lambda _: socket.is_closing())
    assert socket.parts[-1] is None
    assert b"".join(part or b"" for part in socket.parts).endswith(large + b"end")


async def test_responses_to_pipelined_requests_keep_their_order() -> None:
    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        body = scope["raw_path"]
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(len(body)).encode())]}
        )
        await send({"type": "http.response.body", "body": body})

    socket, send = _connected(app)
    send(b"".join(_REQUEST.replace(b"GET /", b"GET /%d" % number) for number in range(5)))
    await _until(socket, lambda sent: sent.endswith(b"/4"))
    sent = b"".join(part or b"" for part in socket.parts)
    assert [response[-2:] for response in sent.split(b"HTTP/1.1 200 OK")[1:]] == [b"/%d" % n for n in range(5)]
