"""The HTTP listener of the push sources: one for each address, with a path for each source.

h11 parses. Connections stay open between requests. Everything of a client is bounded: connections, size, time and rate. When
there are too many connections, one with a slow client is closed, so slow clients keep no other out.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import ClassVar, Protocol

import h11
import msgspec

from ingestd.sdk import SourceBroken
from ingestd.sdk.http_requests import MalformedRequest, OpenConnections, RequestParser, headers_of
from ingestd.sdk.streams import LoopThread

MAX_CONNECTIONS = 128
HEAD_BYTES = 16 << 10
IDLE_SECONDS = 60.0
"""How long a connection may wait for its next request."""
REQUEST_SECONDS = 30.0
"""Time limit for a client to send its request."""
WRITE_SECONDS = 30.0
_CHUNK_BYTES = 64 << 10
_RETRY_SECONDS = 5.0
_START_SECONDS = 10.0
BEGINNING_SECONDS = 60.0
"""A client of an unknown path is to come again for so long after the start or the end of a path: pipelines start one by one."""


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
        self.connections = OpenConnections(MAX_CONNECTIONS)
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
        sock = await self._bind()
        try:
            server = await asyncio.start_server(self._accept, sock=sock, limit=HEAD_BYTES)
            self.problem, self.since = "", time.time()
            self._tried.set()
            try:
                await asyncio.Event().wait()
            finally:
                server.close()
        finally:
            sock.close()
            await self.connections.close_all()

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

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.connections.make_room():
            writer.transport.abort()
            return
        task = asyncio.create_task(_Connection(self, reader, writer).serve(), name="push connection")
        self.connections.add(task, writer)
        task.add_done_callback(lambda done: self._end(done, writer))

    def _end(self, task: asyncio.Task[None], writer: asyncio.StreamWriter) -> None:
        self.connections.remove(task)
        writer.transport.abort()  # without effect on a closed connection
        if not task.cancelled() and (error := task.exception()) is not None:
            context = {"message": "A pushed request failed.", "exception": error, "task": task}
            task.get_loop().call_exception_handler(context)

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


class _Connection:
    """The requests of one connection, one after the other."""

    def __init__(self, listener: PushListener, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._listener = listener
        self._reader = reader
        self._writer = writer
        self._parser = RequestParser(head_bytes=HEAD_BYTES)
        self._http = self._parser.http

    async def serve(self) -> None:
        connections = self._listener.connections
        with contextlib.suppress(OSError, EOFError, TimeoutError):  # the client left, or sends or accepts nothing
            await self._send(await self._exchange())
            while self._parser.start_next():
                connections.note_waiting()
                await self._send(await self._exchange())
            await connections.drain(self._reader, self._writer)

    async def _exchange(self) -> PushResponse:
        """Return the response to the next request.

        Raises:
            EOFError, OSError, TimeoutError: there is no whole request, so there is no response.
        """
        async with asyncio.timeout(IDLE_SECONDS):
            first = await self._first_bytes()
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                endpoint, headers, body = await self._request(first)
        except TimeoutError:
            return PushResponse(status=408, sentence="The request was not complete in time.")
        except PushRefused as refused:
            return refused.response
        self._listener.connections.note_request()
        return await endpoint.respond(headers, body)

    async def _first_bytes(self) -> bytes:
        if self._http.trailing_data[0]:
            return b""
        data = await self._reader.read(_CHUNK_BYTES)
        if not data:
            raise EOFError
        return data

    async def _request(self, first: bytes) -> tuple[Endpoint, Mapping[str, str], bytes]:
        """Read a request whole.

        Raises:
            PushRefused: it is malformed, too large, or not accepted.
            EOFError: the client closed the connection in its middle.
        """
        if first:
            self._parser.receive(first)
        endpoint: Endpoint | None = None
        headers: Mapping[str, str] = {}
        body = bytearray()
        while True:
            event = self._next_event()
            if event is h11.NEED_DATA:
                if self._http.they_are_waiting_for_100_continue:
                    await self._write(
                        self._http.send(h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue"))
                    )
                data = await self._reader.read(_CHUNK_BYTES)
                if not data:
                    raise EOFError
                self._parser.receive(data)
            elif isinstance(event, h11.Request):
                endpoint, headers = self._begin(event)
            elif isinstance(event, h11.Data) and endpoint is not None:
                body += event.data
                if len(body) > endpoint.max_body:
                    raise PushRefused(_too_large(endpoint))
            elif isinstance(event, h11.EndOfMessage) and endpoint is not None:
                return endpoint, headers, bytes(body)
            else:
                raise EOFError

    def _next_event(self) -> type[h11.NEED_DATA | h11.PAUSED] | h11.Event:
        try:
            return self._parser.next_event()
        except MalformedRequest as error:
            raise PushRefused(PushResponse(status=error.status, sentence=error.sentence)) from None

    def _begin(self, head: h11.Request) -> tuple[Endpoint, Mapping[str, str]]:
        path = head.target.decode("ascii").partition("?")[0]
        endpoint = self._listener.endpoint(path)
        if head.method != b"POST":
            sentence = "Records are sent by POST."
            raise PushRefused(PushResponse(status=405, sentence=sentence, headers=(("Allow", "POST"),)))
        headers = headers_of(head)
        endpoint.check(headers)
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise PushRefused(PushResponse(status=415, sentence="Send the body without a Content-Encoding."))
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > endpoint.max_body:
            raise PushRefused(_too_large(endpoint))
        return endpoint, headers

    async def _send(self, response: PushResponse) -> None:
        body = f"{response.sentence}\n".encode() if response.sentence else b""
        headers = [*response.headers, ("Cache-Control", "no-store")]
        if response.retry_after:
            headers.append(("Retry-After", str(max(1, int(response.retry_after + 0.999)))))
        if body:
            headers.append(("Content-Type", "text/plain; charset=utf-8"))
        if response.status != 204:
            headers.append(("Content-Length", str(len(body))))
        if self._http.their_state is not h11.DONE:
            headers.append(("Connection", "close"))  # what follows of the request is not read
        try:
            reason = HTTPStatus(response.status).phrase.encode()
            await self._write(
                self._http.send(h11.Response(status_code=response.status, reason=reason, headers=headers))
            )
            if body and response.status != 204:
                await self._write(self._http.send(h11.Data(data=body)))
            await self._write(self._http.send(h11.EndOfMessage()))
        except h11.LocalProtocolError:  # after a malformed request
            raise EOFError from None

    async def _write(self, data: bytes | None) -> None:
        if data:
            self._writer.write(data)
            async with asyncio.timeout(WRITE_SECONDS):
                await self._writer.drain()


def _too_large(endpoint: Endpoint) -> PushResponse:
    return PushResponse(status=413, sentence=f"The body is larger than {endpoint.max_body} bytes (max_body).")
