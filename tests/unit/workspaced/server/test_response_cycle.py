"""The cycle of a request sends the bytes that uvicorn's sends, and receives what uvicorn's receives."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from workspaced.server.response_cycle import ResponseCycle

_NAMES = st.sampled_from(
    [
        b"Content-Type",
        b"ETag",
        b"X-Request-Id",
        b"Set-Cookie",
        b"date",
        b"Connection",
        b"Transfer-Encoding",
        b"bad name",
    ]
)
_VALUES = st.sampled_from([b"", b"1", b"close", b"chunked", b"text/plain", b'"7"', b"a\r\nb", b"x" * 300])
_BODIES = st.lists(st.sampled_from([b"", b"a", b"hello"]), min_size=1, max_size=3)


class _Wire(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += bytes(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        """Nothing is read."""

    def resume_reading(self) -> None:
        """Nothing is read."""


def _cycle(
    kind: type[RequestResponseCycle], wire: _Wire, ended: list[bool], *, method: str, keep_alive: bool
) -> RequestResponseCycle:
    return kind(
        scope={"type": "http", "method": method, "state": {}},  # type: ignore[typeddict-item]
        transport=wire,
        flow=FlowControl(wire),
        logger=logging.getLogger("test"),
        access_logger=logging.getLogger("test"),
        access_log=False,
        default_headers=[(b"date", b"Mon")],
        message_event=asyncio.Event(),
        expect_100_continue=False,
        keep_alive=keep_alive,
        on_response=lambda: ended.append(True),
    )


async def _sent(kind: type[RequestResponseCycle], messages: list[Any], *, method: str, keep_alive: bool) -> object:
    """Return all that a client and the protocol see of a response."""
    wire = _Wire()
    ended: list[bool] = []
    cycle = _cycle(kind, wire, ended, method=method, keep_alive=keep_alive)
    failure = ""
    try:
        for message in messages:
            await cycle.send(message)
    except RuntimeError as error:
        failure = str(error)
    return wire.sent, wire.closed, ended, failure, cycle.response_complete, cycle.keep_alive


@given(
    status=st.sampled_from([200, 201, 204, 304, 404]),
    headers=st.lists(st.tuples(_NAMES, _VALUES), max_size=4),
    length=st.sampled_from([None, b"0", b"1", b"5", b"10"]),
    bodies=_BODIES,
    request=st.tuples(st.sampled_from(["GET", "HEAD", "POST"]), st.booleans()),
)
def test_a_response_has_the_bytes_of_uvicorns(
    status: int,
    headers: list[tuple[bytes, bytes]],
    length: bytes | None,
    bodies: list[bytes],
    request: tuple[str, bool],
) -> None:
    method, keep_alive = request
    framing = [] if length is None else [(b"Content-Length", length)]
    messages: list[Any] = [{"type": "http.response.start", "status": status, "headers": [*headers, *framing]}]
    messages += [
        {"type": "http.response.body", "body": body, "more_body": index < len(bodies) - 1}
        for index, body in enumerate(bodies)
    ]
    expected = asyncio.run(_sent(RequestResponseCycle, messages, method=method, keep_alive=keep_alive))
    assert asyncio.run(_sent(ResponseCycle, messages, method=method, keep_alive=keep_alive)) == expected


async def _received(kind: type[RequestResponseCycle], events: list[str]) -> list[object]:
    wire = _Wire()
    cycle = _cycle(kind, wire, [], method="POST", keep_alive=True)
    seen: list[object] = []
    for event in events:
        if event == "receive":
            try:
                seen.append(await asyncio.wait_for(cycle.receive(), 0.01))
            except TimeoutError:
                seen.append("waits")
        elif event == "end":
            cycle.more_body = False
            cycle.message_event.set()
        elif event == "disconnect":
            cycle.disconnected = True
            cycle.message_event.set()
        elif event == "expect":
            cycle.waiting_for_100_continue = True
        elif cycle.more_body:
            cycle.body += event.encode()
            cycle.message_event.set()
    return [*seen, wire.sent]


@pytest.mark.parametrize(
    "events",
    [
        ["part", "end", "receive", "receive"],
        ["part", "receive", "more", "end", "receive"],
        ["receive", "part", "receive", "end", "receive"],
        ["expect", "part", "end", "receive"],
        ["part", "disconnect", "receive"],
        ["part", "end", "disconnect", "receive"],
    ],
)
def test_a_body_is_received_as_by_uvicorn(events: list[str]) -> None:
    assert asyncio.run(_received(ResponseCycle, events)) == asyncio.run(_received(RequestResponseCycle, events))
