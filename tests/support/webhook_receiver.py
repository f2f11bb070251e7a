"""A webhook receiver: a real HTTP server on loopback that sends scripted responses and records requests."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from types import TracebackType
from typing import Any, Self

import msgspec

DEADLINE_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A recorded request; header names are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def event(self) -> Any:
        return msgspec.json.decode(self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class StubResponse:
    """A response. If it has a ``gate``, it is sent when this event is set."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    gate: threading.Event | None = None


class _Server(ThreadingHTTPServer):
    request_queue_size = 128  # deliveries to one receiver arrive concurrently


class WebhookReceiver(AbstractContextManager["WebhookReceiver"]):
    """Sends the responses in order, and repeats the last response."""

    def __init__(self, *responses: StubResponse | int, port: int = 0) -> None:
        self._responses = [
            response if isinstance(response, StubResponse) else StubResponse(status=response)
            for response in responses or (200,)
        ]
        self._lock = threading.Lock()
        self._arrived: Queue[Received] = Queue()
        self.received: list[Received] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver._respond(self, Received(path=self.path, headers=headers, body=body))

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self._server = _Server(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="receiver", daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/in"

    def next(self) -> Received:
        """Return the next unread request; fail if none arrives in time."""
        return self._arrived.get(timeout=DEADLINE_SECONDS)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for response in self._responses:
            if response.gate:
                response.gate.set()
        self._server.shutdown()
        self._thread.join(DEADLINE_SECONDS)
        self._server.server_close()

    def _respond(self, handler: BaseHTTPRequestHandler, received: Received) -> None:
        with self._lock:
            response = self._responses[min(len(self.received), len(self._responses) - 1)]
            self.received.append(received)
        self._arrived.put(received)
        if response.gate:
            response.gate.wait(DEADLINE_SECONDS)
        try:
            handler.send_response(response.status)
            for name, value in response.headers.items():
                handler.send_header(name, value)
            handler.send_header("Content-Length", str(len(response.body)))
            handler.end_headers()
            handler.wfile.write(response.body)
        except ConnectionError:
            return  # the client has disconnected
