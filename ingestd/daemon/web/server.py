"""The HTTP server of the listener: one request for each connection, bounded in size, time and number.

h11 parses; httpx brings it. When there are too many connections, one with a slow client is closed, so slow clients cannot keep
others out.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from pathlib import Path

import h11

from ingestd.daemon.control.address import short_address
from ingestd.daemon.web.message import WebRequest, WebResponse, text_response
from ingestd.sdk.http_requests import MalformedRequest, OpenConnections, RequestParser, headers_of
from ingestd.settings.listen import ListenSettings, split_address
from ingestd.telemetry import Emit
from ingestd.telemetry.catalogue.daemon import ListenerOpened, ListenerUnavailable

MAX_CONNECTIONS = 64
HEAD_BYTES = 16 << 10
"""The most bytes of a request line with its headers."""
BODY_BYTES = 64 << 10
REQUEST_SECONDS = 10.0
"""Time limit for a client to send its request."""
WRITE_SECONDS = 30.0
"""Longest time in which a client accepts nothing of a response."""
RESPONSE_SECONDS = 30.0
"""Time limit of the work for a response; a stream has none."""
_CHUNK_BYTES = 64 << 10
_RETRY_SECONDS = 10.0

_CONTENT_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_SECURITY_HEADERS = (
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "same-origin"),
    ("X-Frame-Options", "DENY"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Content-Security-Policy", _CONTENT_POLICY),
)


class _Refused(Exception):
    """The request can't be read; ``response`` says why."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.response = text_response(status, sentence)


class WebServer:
    """Listens as configured. ``respond`` returns the response to a request; it may be cancelled.

    ``max_connections`` and ``request_seconds`` are the limits of clients.
    """

    def __init__(
        self,
        settings: ListenSettings,
        *,
        respond: Callable[[WebRequest], Awaitable[WebResponse]],
        emit: Emit,
        max_connections: int = MAX_CONNECTIONS,
        request_seconds: float = REQUEST_SECONDS,
    ) -> None:
        self._settings = settings
        self._respond = respond
        self._emit = emit
        self._request_seconds = request_seconds
        self._connections = OpenConnections(max_connections)
        self.unavailable = ""
        """Why the address can't be listened at; empty if it can."""

    async def run(self) -> None:
        """Listen until cancelled; every connection is then closed. An address in use is tried again."""
        sock = await self._open()
        try:
            server = await asyncio.start_server(self._accept, sock=sock, limit=HEAD_BYTES)
            self._emit(ListenerOpened(address=self._name if self._settings.socket else _address_of(sock)))
            try:
                await asyncio.Event().wait()
            finally:
                server.close()
        finally:
            if self._settings.socket is not None:
                self._settings.socket.unlink(missing_ok=True)
            sock.close()
            await self._connections.close_all()

    async def _open(self) -> socket.socket:
        reported = ""
        while True:
            try:
                sock = self._listen()
            except OSError as error:
                reason = os.strerror(error.errno) if error.errno else str(error)
                self.unavailable = f"Metrics and pages are not available: {self._name} can't be opened: {reason}."
                if reason != reported:
                    reported = reason
                    self._emit(ListenerUnavailable(address=self._name, reason=reason))
            else:
                self.unavailable = ""
                return sock
            await asyncio.sleep(_RETRY_SECONDS)

    @property
    def _name(self) -> str:
        return str(self._settings.socket or self._settings.address)

    def _listen(self) -> socket.socket:
        if self._settings.socket is not None:
            return _listen_unix(self._settings.socket)
        host, port = split_address(self._settings.address or "")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._connections.make_room():
            writer.transport.abort()
            return
        task = asyncio.create_task(self._serve(reader, writer), name="web connection")
        self._connections.add(task, writer)
        task.add_done_callback(partial(self._end, writer))

    def _end(self, writer: asyncio.StreamWriter, task: asyncio.Task[None]) -> None:
        self._connections.remove(task)
        if task.cancelled():
            writer.transport.abort()
        elif (error := task.exception()) is not None:
            writer.transport.abort()
            context = {"message": "A request to the listener failed.", "exception": error, "task": task}
            task.get_loop().call_exception_handler(context)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        parser = RequestParser(head_bytes=HEAD_BYTES)
        try:
            request = await self._receive(parser, reader)
        except (EOFError, ConnectionError):
            writer.transport.abort()
            return
        finally:
            self._connections.note_request()
        response = request if isinstance(request, WebResponse) else await self._respond_in_time(request)
        with_body = isinstance(request, WebResponse) or request.method != "HEAD"
        sending = _send(parser.http, writer, response, with_body=with_body)
        with contextlib.suppress(OSError):  # the client left, or accepts no data
            await (sending if response.stream is None else _until_client_leaves(reader, sending))
            await self._connections.drain(reader, writer)
        writer.transport.abort()  # without effect on a closed connection

    async def _receive(self, parser: RequestParser, reader: asyncio.StreamReader) -> WebRequest | WebResponse:
        """Return the request, or why there is none that can be handled."""
        try:
            async with asyncio.timeout(self._request_seconds):
                return await _read_request(parser, reader)
        except TimeoutError:
            return text_response(408, "The request was not complete in time.")
        except _Refused as refused:
            return refused.response

    async def _respond_in_time(self, request: WebRequest) -> WebResponse:
        try:
            async with asyncio.timeout(RESPONSE_SECONDS):
                return await self._respond(request)
        except TimeoutError:
            return text_response(503, "The daemon could not respond in time.", ("Retry-After", "10"))
        except Exception as error:  # noqa: BLE001 - a failed request must not end the listener
            context = {"message": f"A request for {request.path} failed.", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
            return text_response(500, "The daemon could not respond. Its log has the traceback; please report it.")


def _listen_unix(file: Path) -> socket.socket:
    # This process holds the state file's lock, so an existing socket is a leftover of a killed daemon.
    if file.is_socket():
        file.unlink()
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        os.fchmod(sock.fileno(), 0o600)  # before bind, so that no other account can ever connect
        with short_address(file) as address:
            sock.bind(address)
        sock.listen()
    except BaseException:
        sock.close()
        raise
    return sock


def _address_of(sock: socket.socket) -> str:
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def _read_request(parser: RequestParser, reader: asyncio.StreamReader) -> WebRequest:
    """Read a request to its end.

    Raises:
        EOFError: the client closed the connection without a request.
        _Refused: the request is malformed or too large.
    """
    head: h11.Request | None = None
    body = bytearray()
    received = False
    while True:
        try:
            event = parser.next_event()
        except MalformedRequest as error:
            raise _Refused(error.status, error.sentence) from None
        if event is h11.NEED_DATA:
            data = await reader.read(_CHUNK_BYTES)
            if not data and not received:
                raise EOFError
            received = True
            parser.receive(data)
        elif isinstance(event, h11.Request):
            head = event
            if event.method not in {b"GET", b"HEAD", b"POST"}:
                raise _Refused(405, "Only GET, HEAD and POST are accepted.")
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > BODY_BYTES:
                raise _Refused(413, f"The body is larger than {BODY_BYTES} bytes.")
        elif isinstance(event, h11.EndOfMessage) and head is not None:
            return _request(head, bytes(body))
        else:
            raise EOFError


def _request(head: h11.Request, body: bytes) -> WebRequest:
    path, _, query = head.target.decode("ascii").partition("?")
    headers = headers_of(head)
    if "host" not in headers:
        raise _Refused(400, "The request needs the header Host.")
    return WebRequest(method=head.method.decode("ascii"), path=path, query=query, headers=headers, body=body)


async def _send(
    connection: h11.Connection, writer: asyncio.StreamWriter, response: WebResponse, *, with_body: bool
) -> None:
    headers = [("Content-Type", response.content_type), *_SECURITY_HEADERS, *response.headers, ("Connection", "close")]
    if not any(name == "Cache-Control" for name, _ in response.headers):
        headers.append(("Cache-Control", "no-store"))
    if response.stream is None:
        headers.append(("Content-Length", str(len(response.body))))
    with contextlib.suppress(h11.LocalProtocolError):  # after a malformed request, only a plain response can be sent
        await _write(writer, connection.send(h11.Response(status_code=response.status, headers=headers)))
        if not with_body:
            return
        if response.stream is None:
            await _write(writer, connection.send(h11.Data(data=response.body)))
        else:
            async with contextlib.aclosing(response.stream()) as chunks:
                async for chunk in chunks:
                    await _write(writer, connection.send(h11.Data(data=chunk)))
        await _write(writer, connection.send(h11.EndOfMessage()))


async def _until_client_leaves(reader: asyncio.StreamReader, sending: Coroutine[None, None, None]) -> None:
    """Send a stream until it ends, or the client closes its side."""

    async def leave() -> None:
        while await reader.read(_CHUNK_BYTES):
            pass  # a client may send nothing more; what it sends is not kept

    tasks = {asyncio.ensure_future(sending), asyncio.ensure_future(leave())}
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for task in done:
        task.result()


async def _write(writer: asyncio.StreamWriter, data: bytes | None) -> None:
    for start in range(0, len(data or b""), _CHUNK_BYTES):
        if writer.is_closing():  # uvloop would raise a RuntimeError
            raise ConnectionResetError
        writer.write((data or b"")[start : start + _CHUNK_BYTES])
        async with asyncio.timeout(WRITE_SECONDS):
            await writer.drain()
