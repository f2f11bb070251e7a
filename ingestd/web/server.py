"""The listener of the daemon: its address, the limits of its clients, and its responses."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

from ingestd.daemon.control.address import short_address
from ingestd.process.http_server.asgi import ClientDisconnect, Receive, Scope, Send
from ingestd.process.http_server.limits import ConnectionLimits
from ingestd.process.http_server.messages import BodyTooLarge, read_body, send_head, send_parts
from ingestd.process.http_server.registry import Connections
from ingestd.process.http_server.server import HttpServer, listening
from ingestd.process.request_headers import RepeatedHeader, single_values
from ingestd.settings.listen import ListenSettings, split_address
from ingestd.telemetry import Emit
from ingestd.telemetry.catalogue.daemon import ListenerOpened, ListenerUnavailable
from ingestd.web.message import WebRequest, WebResponse, text_response

MAX_CONNECTIONS = 64
HEAD_BYTES = 16 << 10
"""The maximum size of a request line with its headers."""
BODY_BYTES = 64 << 10
REQUEST_SECONDS = 10.0
"""Time limit for a client to send the head of its request."""
STALL_SECONDS = 20.0
"""The period over which a client's rate is measured while the client sends a body or reads a response."""
RESPONSE_SECONDS = 30.0
"""The time limit for making a response; a stream has no time limit."""
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


class WebServer:
    """Listens as configured. ``respond`` returns the response to a request, and may be cancelled.

    ``max_connections``, ``request_seconds`` and ``stall_seconds`` are the limits of clients.
    """

    def __init__(
        self,
        settings: ListenSettings,
        *,
        respond: Callable[[WebRequest], Awaitable[WebResponse]],
        emit: Emit,
        max_connections: int = MAX_CONNECTIONS,
        request_seconds: float = REQUEST_SECONDS,
        stall_seconds: float = STALL_SECONDS,
    ) -> None:
        self._settings = settings
        self._respond = respond
        self._emit = emit
        self._limits = ConnectionLimits(
            connections=max_connections,
            stalled_seconds=0,
            head_seconds=request_seconds,
            stall_seconds=stall_seconds,
            head_bytes=HEAD_BYTES,
        )
        self.unavailable = ""
        """Why the daemon can't listen on the address; empty if it can."""

    async def run(self) -> None:
        """Listen until cancelled, and then close every connection. If the address can't be used, try it again."""
        with await self._open() as sock:
            address = self._name if self._settings.socket else _address_of(sock)
            try:
                async with listening(HttpServer(self._serve, Connections(self._limits), drain_seconds=1), sock):
                    self._emit(ListenerOpened(address=address))
                    await asyncio.Event().wait()
            finally:
                if self._settings.socket is not None:
                    self._settings.socket.unlink(missing_ok=True)

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

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            request = await _read_request(scope, receive)
        except ClientDisconnect:
            return
        response = request if isinstance(request, WebResponse) else await self._respond_in_time(request)
        headers = [("Content-Type", response.content_type), *_SECURITY_HEADERS, *response.headers]
        if not any(name == "Cache-Control" for name, _ in response.headers):
            headers.append(("Cache-Control", "no-store"))
        if response.stream is not None:
            await send_head(send, response.status, headers)
            await send_parts(response.stream(), receive, send)
            return
        await send_head(send, response.status, [*headers, ("Content-Length", str(len(response.body)))])
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else response.body})

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


async def _read_request(scope: Scope, receive: Receive) -> WebRequest | WebResponse:
    """Return the request, or the response to a malformed or too large request.

    Raises:
        ClientDisconnect: the client disconnected.
    """
    if scope["method"] not in {"GET", "HEAD", "POST"}:
        return text_response(405, "Only GET, HEAD and POST are accepted.")
    try:
        headers = single_values(scope["headers"])
        body = await read_body(scope, receive, most=BODY_BYTES)
    except RepeatedHeader as error:
        return text_response(400, str(error))
    except BodyTooLarge:
        return text_response(413, f"The body is larger than {BODY_BYTES} bytes.")
    return WebRequest(
        method=scope["method"],
        path=scope["raw_path"].decode("ascii"),
        query=scope["query_string"].decode("ascii"),
        headers={name.decode("ascii"): value.decode("latin-1") for name, value in headers.items()},
        body=body,
    )
