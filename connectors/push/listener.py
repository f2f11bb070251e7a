"""The HTTP listener of the push sources: one for each address, with a path for each source.

Everything of a client is bounded: connections, size, time and rate. When there are too many connections, one with a slow client
is closed, so slow clients keep no other out.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Mapping
from typing import ClassVar, Protocol

import msgspec

from ingestd.sdk import SourceBroken
from ingestd.sdk.http_server import (
    BodyTooLarge,
    ClientDisconnect,
    ConnectionLimits,
    Connections,
    HttpServer,
    Receive,
    RepeatedHeader,
    Scope,
    Send,
    listening,
    read_body,
    send_head,
    single_values,
)
from ingestd.sdk.streams import LoopThread

_LIMITS = ConnectionLimits(
    connections=128, stalled_seconds=0, head_seconds=30, idle_seconds=60, stall_seconds=30, head_bytes=16 << 10
)
_RETRY_SECONDS = 5.0
_START_SECONDS = 10.0
BEGINNING_SECONDS = 60.0
"""For this time after a path starts or ends, clients of unknown paths are asked to come again: pipelines start one by one."""


class PushResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A response. ``sentence`` is its body; ``retry_after``: seconds, 0 for no such header."""

    status: int
    sentence: str = ""
    retry_after: float = 0.0
    headers: tuple[tuple[str, str], ...] = ()


class PushRefused(Exception):
    """A request ends with this response, whatever follows of it."""

    def __init__(self, response: PushResponse) -> None:
        super().__init__(response.sentence)
        self.response = response


class Endpoint(Protocol):
    """What serves one path. Its methods are called in the listener's loop."""

    max_body: int

    def check(self, headers: Mapping[str, str]) -> None:
        """Check a request before its body is read.

        Raises:
            PushRefused: it is not accepted.
        """

    async def respond(self, headers: Mapping[str, str], body: bytes) -> PushResponse:
        """Return the response to a request that `check` has passed."""


class PushListener:
    """Listens at one address while it has an endpoint. Thread-safe; use `attach` and `detach`."""

    _open: ClassVar[dict[str, PushListener]] = {}
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, address: str) -> None:
        self.address = address
        self.problem = "It does not listen yet."
        """Why the address can't be used now; empty while it listens."""
        self.since: float | None = None
        """When it began to listen, in seconds since the epoch."""
        self._endpoints: dict[str, Endpoint] = {}
        self._changed = time.monotonic()
        self._tried = threading.Event()
        self._thread = LoopThread(f"push {address}")
        self._thread.start(self._run())

    @classmethod
    def attach(cls, address: str, path: str, endpoint: Endpoint) -> PushListener:
        """Serve ``path`` at ``address``; return the listener when it listens, or has found out that it can't yet.

        Raises:
            SourceBroken: another source has the path.
        """
        with cls._lock:
            listener = cls._open.get(address)
            if listener is None:
                listener = cls._open[address] = PushListener(address)
            if listener._endpoints.setdefault(path, endpoint) is not endpoint:
                raise SourceBroken(f"Another pipeline has the path {path} at {address}. Give this one another path.")
        listener._tried.wait(_START_SECONDS)
        return listener

    def detach(self, path: str, endpoint: Endpoint) -> None:
        """End serving a path; the listener ends with its last one. A second call has no effect."""
        with self._lock:
            if self._endpoints.get(path) is not endpoint:
                return
            del self._endpoints[path]
            self._changed = time.monotonic()
            if not self._endpoints:
                del self._open[self.address]
                self._thread.close()  # with the lock: the next listener needs the address

    async def _run(self) -> None:
        with await self._bind() as sock:
            async with listening(HttpServer(self._serve, Connections(_LIMITS), drain_seconds=1), sock):
                self.problem, self.since = "", time.time()
                self._tried.set()
                await asyncio.Event().wait()

    async def _bind(self) -> socket.socket:
        host, _, port = self.address.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        while True:
            try:
                return socket.create_server((host, int(port)), family=family)
            except OSError as error:
                reason = os.strerror(error.errno) if error.errno else str(error)
                self.problem = f"It can't listen at {self.address} ({reason}). It tries again."
                self._tried.set()
            await asyncio.sleep(_RETRY_SECONDS)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response = await self._response(scope, receive)
        except ClientDisconnect:
            return
        except PushRefused as refused:
            response = refused.response
        body = f"{response.sentence}\n".encode() if response.sentence else b""
        headers = [*response.headers, ("Cache-Control", "no-store")]
        if response.retry_after:
            headers.append(("Retry-After", str(max(1, int(response.retry_after + 0.999)))))
        if body:
            headers.append(("Content-Type", "text/plain; charset=utf-8"))
        if response.status != 204:
            headers.append(("Content-Length", str(len(body))))
        await send_head(send, response.status, headers)
        await send({"type": "http.response.body", "body": body})

    async def _response(self, scope: Scope, receive: Receive) -> PushResponse:
        """Return the response to a request.

        Raises:
            PushRefused: it is malformed, too large, or not accepted.
            ClientDisconnect: the client disconnected.
        """
        endpoint = self.endpoint(scope["raw_path"].decode("ascii"))
        if scope["method"] != "POST":
            sentence = "Records are sent by POST."
            raise PushRefused(PushResponse(status=405, sentence=sentence, headers=(("Allow", "POST"),)))
        try:
            single = single_values(scope["headers"])
        except RepeatedHeader as error:
            raise PushRefused(PushResponse(status=400, sentence=str(error))) from None
        headers = {name.decode("ascii"): value.decode("latin-1") for name, value in single.items()}
        endpoint.check(headers)
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise PushRefused(PushResponse(status=415, sentence="Send the body without a Content-Encoding."))
        try:
            body = await read_body(scope, receive, most=endpoint.max_body)
        except BodyTooLarge:
            sentence = f"The body is larger than {endpoint.max_body} bytes (max_body)."
            raise PushRefused(PushResponse(status=413, sentence=sentence)) from None
        return await endpoint.respond(headers, body)

    def endpoint(self, path: str) -> Endpoint:
        """Return what serves a path.

        Raises:
            PushRefused: no pipeline has the path, or not yet.
        """
        endpoint = self._endpoints.get(path)
        if endpoint is None:
            if time.monotonic() - self._changed < BEGINNING_SECONDS:
                raise PushRefused(PushResponse(status=503, sentence="No pipeline has this path yet.", retry_after=5.0))
            raise PushRefused(PushResponse(status=404, sentence="No pipeline has this path."))
        return endpoint
