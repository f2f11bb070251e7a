"""The HTTP listener of the push sources: one listener for each address, with a path for each source.

For all clients, the number of connections, sizes, times and rates are limited. If there are too many connections, a slow
client's connection is closed, so that slow clients do not block other clients.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from typing import ClassVar

from connectors.push.endpoint import PushEndpoint, PushRefused
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
"""Pipelines start one by one. So for this time after a path is added or removed, unknown paths get 503 with Retry-After."""


class PushListener:
    """Listens at one address while it has an endpoint. Use `attach` and `detach`, which are thread-safe."""

    _open: ClassVar[dict[str, PushListener]] = {}
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, address: str) -> None:
        self.address = address
        self.problem = "It does not listen yet."
        """Why the address can't be used now; empty while the listener listens."""
        self.since: float | None = None
        """The time at which the listener began to listen, in seconds since the epoch."""
        self._endpoints: dict[str, PushEndpoint] = {}
        self._changed = time.monotonic()
        self._tried = threading.Event()
        self._thread = LoopThread(f"push {address}")
        self._thread.start(self._run())

    @classmethod
    def attach(cls, address: str, path: str, endpoint: PushEndpoint) -> PushListener:
        """Serve ``path`` at ``address``. Return the listener when it listens, or when its first attempt has failed.

        Raises:
            SourceBroken: another source has the path.
        """
        with cls._lock:
            listener = cls._open.get(address)
            if listener is None:
                listener = cls._open[address] = PushListener(address)
            if listener._endpoints.setdefault(path, endpoint) is not endpoint:
                raise SourceBroken(
                    f"Another pipeline has the path {path} at {address}. Give this pipeline a different path."
                )
        listener._tried.wait(_START_SECONDS)
        return listener

    def detach(self, path: str, endpoint: PushEndpoint) -> None:
        """Stop serving a path. The listener stops when its last path is removed. A second call has no effect."""
        with self._lock:
            if self._endpoints.get(path) is not endpoint:
                return
            del self._endpoints[path]
            self._changed = time.monotonic()
            if not self._endpoints:
                del self._open[self.address]
                self._thread.close()  # with the lock: the next listener at this address needs it to be free

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
        status, body = 204, b""
        headers = [("Cache-Control", "no-store")]
        try:
            rejection = await self._store(scope, receive)
        except ClientDisconnect:
            return
        except PushRefused as refused:
            status, body = refused.status, f"{refused}\n".encode()
            headers = [*refused.headers, *headers]
            if refused.retry_after:
                headers.append(("Retry-After", str(max(1, int(refused.retry_after + 0.999)))))
        else:
            if rejection:
                status, body = 200, f"The records are stored as rejected. {rejection}\n".encode()
        if body:
            headers += [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))]
        await send_head(send, status, headers)
        await send({"type": "http.response.body", "body": body})

    async def _store(self, scope: Scope, receive: Receive) -> str:
        endpoint = self.endpoint(scope["raw_path"].decode("ascii"))
        if scope["method"] != "POST":
            raise PushRefused(405, "Records are sent by POST.", headers=(("Allow", "POST"),))
        try:
            single = single_values(scope["headers"])
        except RepeatedHeader as error:
            raise PushRefused(400, str(error)) from None
        headers = {name.decode("ascii"): value.decode("latin-1") for name, value in single.items()}
        endpoint.check(headers)
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise PushRefused(415, "Send the body without a Content-Encoding.")
        try:
            body = await read_body(scope, receive, most=endpoint.max_body)
        except BodyTooLarge:
            raise PushRefused(413, f"The body is larger than {endpoint.max_body} bytes (max_body).") from None
        return await endpoint.store(headers, body)

    def endpoint(self, path: str) -> PushEndpoint:
        """Return the endpoint of a path. Raise `PushRefused` if no pipeline has the path."""
        if path in self._endpoints:
            return self._endpoints[path]
        if time.monotonic() - self._changed < BEGINNING_SECONDS:
            raise PushRefused(503, "No pipeline has this path yet.", retry_after=_RETRY_SECONDS)
        raise PushRefused(404, "No pipeline has this path.")
