"""A proxy on a loopback port in front of a real service. It injects faults into requests."""

from __future__ import annotations

import http.client
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

KINDS = ("429", "503", "drop before", "drop after", "delay", "truncate")
ALL_KINDS = (*KINDS, "500", "garbage", "late")
"""``late``: the request reaches the service after the client has given up."""
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}
_DELAY_SECONDS = 0.5
_LATE_SECONDS = 3.0


class FaultyProxy:
    """A proxy and context manager. ``share``: the share of requests that get each kind of fault; ``met``: faults by kind.

    ``target``, ``share`` and ``accepts`` can be changed. While ``accepts`` is False, the connection of each request is closed.
    """

    def __init__(self, target: str, *, share: float, seed: int, kinds: Sequence[str] = KINDS) -> None:
        self.target = target
        self.share = share
        self.accepts = True
        self._kinds = kinds
        self._rng = random.Random(seed)
        self._lock = threading.Lock()
        self._ended = threading.Condition()
        self._running = 0
        self.met: Counter[str] = Counter()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except ConnectionError:
                    self.close_connection = True

            def do_any(self) -> None:
                with proxy._ended:
                    proxy._running += 1
                try:
                    proxy._handle(self)
                finally:
                    with proxy._ended:
                        proxy._running -= 1
                        proxy._ended.notify_all()

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = do_any  # noqa: N815 - the names that the base class looks for

            def log_message(self, *_: Any) -> None: ...

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_: Any) -> None: ...  # the client was killed

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="faulty proxy", daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def wait_until_idle(self, seconds: float = 60.0) -> None:
        """Wait until the proxy handles no request."""
        with self._ended:
            assert self._ended.wait_for(lambda: not self._running, seconds)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _draw(self) -> str:
        with self._lock:
            if not self.accepts:
                return "drop before"
            chosen = int(self._rng.random() / self.share) if self.share else len(self._kinds)
            kind = self._kinds[chosen] if chosen < len(self._kinds) else "none"
            self.met[kind] += 1
            return kind

    def _handle(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        kind = self._draw()
        match kind:
            case "429" | "503" | "500":
                content = b'{"error":"Later"}'
                _send(request, int(kind), [("Content-Type", "application/json"), ("Retry-After", "0")], content)
                return
            case "drop before":
                _cut(request)
                return
            case "delay" | "late":
                time.sleep(_DELAY_SECONDS if kind == "delay" else _LATE_SECONDS)
        status, fields, content = self._forward(request, body)
        match kind:
            case "drop after":
                _cut(request)
            case "truncate":
                _send(request, status, fields, content, cut=len(content) // 2)
                _cut(request)
            case "garbage":
                request.wfile.write(b"\x00\xff no HTTP\r\n\r\n")
                _cut(request)
            case _:
                _send(request, status, fields, content)

    def _forward(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        parts = urlsplit(self.target)
        connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=60)
        try:
            headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP}
            connection.request(request.command, request.path, body=body or None, headers=headers)
            response = connection.getresponse()
            content = response.read()
            fields = [(name, value) for name, value in response.getheaders() if name.lower() not in _HOP_BY_HOP]
            return response.status, fields, content
        finally:
            connection.close()


def _send(
    request: BaseHTTPRequestHandler,
    status: int,
    fields: list[tuple[str, str]],
    content: bytes,
    *,
    cut: int | None = None,
) -> None:
    request.send_response_only(status)
    for name, value in fields:
        request.send_header(name, value)
    request.send_header("Content-Length", str(len(content)))
    request.end_headers()
    request.wfile.write(content[:cut])


def _cut(request: BaseHTTPRequestHandler) -> None:
    """Close the connection without finishing the response."""
    request.close_connection = True
    request.wfile.flush()
    request.connection.shutdown(socket.SHUT_RDWR)
