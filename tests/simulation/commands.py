"""Commands of operators: clients of the daemon's control socket, and their connections to the real server.

Only the kernel is simulated: what is written arrives at once, in order, and a server notices that its client has disconnected
when it writes. The streams, the server and the command handler are the real ones.
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
"""What a client does: wait for the response; disconnect after the request; disconnect after half of it; send nothing."""


class Command:
    """One connection to the control socket. ``asked_at`` and ``ended_at``: the loop's times of its start and its end."""

    def __init__(self, request: Request, manner: Manner, *, loop: SimulatedLoop, random_numbers: random.Random) -> None:
        self.request = request
        self.manner: Manner = manner
        self.asked_at = loop.time()
        self.response = b""
        self.has_left = False
        self.ended_at: float | None = None
        self.was_not_listening = False
        self._loop = loop
        self._random_numbers = random_numbers
        line = encode_request(request)
        cut = random_numbers.randrange(1, len(line))
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
        """Open the connection; a daemon that starts or ends does not listen."""
        factory = self._loop.listener
        if factory is None:
            self.was_not_listening, self.ended_at = True, self._loop.time()
            return
        # The kernel has accepted the connection; the server is notified later.
        self._protocol = factory()
        self._loop.call_soon(self._connected)

    def _connected(self) -> None:
        self._protocol.connection_made(_Connection(self, self._protocol, self._loop))
        self._later(self._send)

    def decoded(self) -> Response | None:
        """Return the response; None if the connection was closed before it was complete.

        Raises:
            RequestRefused: The daemon refused the request.
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
        if self._random_numbers.random() < 0.7:
            self._loop.call_soon(call)
        else:
            self._loop.call_later(self._random_numbers.random(), call)


class _Connection(asyncio.Transport):
    """The server's side of a connection."""

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
    """Return one end of a socket pair; the kernel reports the account of this process as that of the client."""
    ours, theirs = socket.socketpair()
    _kept.append(theirs)
    return ours


_kept: list[socket.socket] = []
"""Stays open until the process ends."""


def find_mistake(command: Command, *, stopping: bool) -> str:
    """Return what is wrong with the response to a command with a client that waits; empty if nothing is."""
    try:
        decoded = command.decoded()
    except RequestRefused as refusal:
        return "" if stopping else f"{command}: refused: {refusal}"
    if decoded is None:
        return (
            "" if stopping or command.was_not_listening else f"{command}: the connection was closed without a response"
        )
    if isinstance(command.request, CheckDrift) and isinstance(decoded, tuple):
        return (
            "" if len(decoded) == len(command.request.pipelines) else f"{command}: {len(decoded)} sinks in the response"
        )
    return ""
