"""Operators' commands: the clients of the daemon's control socket, and the connections between them and the real server.

The kernel's part is simulated: what is written arrives at once, in order, and a server learns that its client has left
when it writes to it. The streams, the server and what answers are the real ones.
"""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, TypeAlias

from ingestd.daemon.control.refusal import RequestRefused
from ingestd.daemon.control.requests import CheckDrift, Request, Response, decode_response, encode_request
from tests.simulation.loop import SimulatedLoop

Manner: TypeAlias = Literal["waits", "leaves", "sends half", "sends nothing"]
"""What a client does: it waits for the response; it sends its request and closes; it closes after half of it; it is silent."""


class Command:
    """One connection to the control socket. ``asked_at`` and ``ended_at``: when it was opened and closed, by the loop's time."""

    def __init__(self, request: Request, manner: Manner, *, loop: SimulatedLoop, chance: random.Random) -> None:
        self.request = request
        self.manner: Manner = manner
        self.asked_at = loop.time()
        self.response = b""
        self.has_left = False
        self.ended_at: float | None = None
        self.nobody_listened = False
        self._loop = loop
        self._chance = chance
        line = encode_request(request)
        cut = chance.randrange(1, len(line))
        pieces = {"sends half": [line[:cut]], "sends nothing": []}.get(manner, [line[:cut], line[cut:]])
        self._pieces = pieces

    def __str__(self) -> str:
        what = type(self.request).__name__
        named = (
            f" {', '.join(self.request.pipelines)} ({self.request.mode})"
            if isinstance(self.request, CheckDrift)
            else ""
        )
        return f"{what}{named}, client {self.manner}"

    def connect(self) -> None:
        """Open the connection; nobody listens at a daemon that starts or ends."""
        factory = self._loop.listener
        if factory is None:
            self.nobody_listened, self.ended_at = True, self._loop.time()
            return
        # From here on the kernel has accepted it; the server hears of that later.
        self._protocol = factory()
        self._loop.call_soon(self._connected)

    def _connected(self) -> None:
        self._protocol.connection_made(_Connection(self, self._protocol, self._loop))
        self._later(self._send)

    def answer(self) -> Response | None:
        """What came back; None: the connection was closed without a whole response.

        Raises:
            RequestRefused: the daemon refused.
        """
        return decode_response(self.request, self.response) if self.response.endswith(b"\n") else None

    def _send(self) -> None:
        if self.ended_at is not None:
            return
        if self._pieces:
            self._protocol.data_received(self._pieces.pop(0))
            self._later(self._send)
        elif self.manner in {"leaves", "sends half"}:
            self.has_left = True
            self._protocol.eof_received()

    def _later(self, call: Callable[[], None]) -> None:
        if self._chance.random() < 0.7:
            self._loop.call_soon(call)
        else:
            self._loop.call_later(self._chance.random(), call)


class _Connection(asyncio.Transport):
    """The server's end."""

    def __init__(self, command: Command, protocol: asyncio.Protocol, loop: SimulatedLoop) -> None:
        super().__init__({"socket": _peer()})
        self._command = command
        self._protocol = protocol
        self._loop = loop
        self._closing = False

    def write(self, data: Any) -> None:
        if self._command.has_left:
            self._end(BrokenPipeError("the client has left"))
        else:
            self._command.response += data

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        self._end(None)

    def _end(self, error: Exception | None) -> None:
        if not self._closing:
            self._closing = True
            self._loop.call_soon(self._lost, error)

    def _lost(self, error: Exception | None) -> None:
        self._protocol.connection_lost(error)
        self._command.ended_at = self._loop.time()


@cache
def _peer() -> socket.socket:
    """One end of a socket pair, of which the kernel tells the account as of a client's."""
    ours, theirs = socket.socketpair()
    _kept.append(theirs)
    return ours


_kept: list[socket.socket] = []
"""Open as long as the process is."""


def judged(command: Command, *, stopping: bool) -> str:
    """What is wrong with the response to a command whose client has waited for it; empty: nothing."""
    try:
        answer = command.answer()
    except RequestRefused as refusal:
        return "" if stopping else f"{command}: refused: {refusal}"
    if answer is None:
        return "" if stopping or command.nobody_listened else f"{command}: the connection was closed without a response"
    if isinstance(command.request, CheckDrift) and isinstance(answer, tuple):
        return (
            "" if len(answer) == len(command.request.pipelines) else f"{command}: {len(answer)} sinks in the response"
        )
    return ""
