"""The document's service: a store behind real HTTP on a loopback port. It records all requests, and injects faults."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from tests.support.document_server import faults
from tests.support.document_server.faults import Fault
from tests.support.document_server.routes import respond
from tests.support.document_server.store import Refusal, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request as it arrived. The path is unchanged; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def writes(self) -> bool:
        return self.method != "GET"


class _Http(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], owner: DocumentServer) -> None:
        self.owner = owner
        self.open: set[socket.socket] = set()
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - the base class names them
        """Ignore clients that disconnect; record all other errors for tests."""
        if not isinstance(sys.exception(), ConnectionError):
            self.owner.note_error()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    server: _Http

    def setup(self) -> None:
        super().setup()
        self.server.open.add(self.connection)

    def finish(self) -> None:
        self.server.open.discard(self.connection)
        super().finish()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        """Log nothing: requests are recorded."""

    def _serve(self) -> None:
        if self.command != "GET" and self.server.owner.unread.is_set():
            self.server.owner.over.wait()
            self._drop()
        else:
            self._act()

    def _act(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(method=self.command, path=self.path, headers=headers, body=body)
        fault = self.server.owner.take(request)
        match fault:
            case faults.DropBefore():
                return self._drop()
            case faults.Refuse(status=status, headers=more, body=content):
                return self._send_response(status, content, more)
            case faults.Garbage(status=status, body=content, content_type=kind):
                return self._send_response(status, content, {"Content-Type": kind})
        status, content = self.server.owner.act(request)
        match fault:
            case faults.DropAfter():
                return self._drop()
            case faults.Delay(seconds=seconds):
                self.server.owner.delays_over.wait(seconds)
            case faults.Truncate():
                self._send_response(status, content, {"Content-Length": str(len(content) + 10)})
                return self._drop()
        return self._send_response(status, content, self.server.owner.headers)

    do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = _serve  # noqa: N815 - the base class names them so

    def _send_response(self, status: int, content: bytes, more: Mapping[str, str]) -> None:
        self.send_response(status)
        headers = {"Content-Length": str(len(content))} | ({"Content-Type": "application/json"} if content else {})
        for name, value in (headers | dict(more)).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()

    def _drop(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)


class DocumentServer:
    """A server and context manager. When no queued fault applies, ``fault_of`` chooses the fault of a request.

    While the server runs, any thread may call all methods except `start` and `stop`.
    """

    def __init__(
        self,
        store: Store | None = None,
        *,
        api_key: str = "test-key",
        port: int = 0,
        fault_of: Callable[[Request], Fault | None] | None = None,
    ) -> None:
        self.store = store or Store()
        self.api_key = api_key
        self.headers: dict[str, str] = {}
        """Additional headers of all responses without a fault."""
        self.requests: list[Request] = []
        self._accepted: list[Request] = []
        self.fault_of = fault_of
        self.errors = 0
        self.arrived = threading.Event()
        """Set by each request that arrives; the waiting test clears it."""
        self.unread, self.over, self.delays_over = threading.Event(), threading.Event(), threading.Event()
        self._queued: deque[tuple[Fault, Callable[[Request], bool]]] = deque()
        self._lock = threading.Lock()
        self._http = _Http(("127.0.0.1", port), self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), name="document server")

    @property
    def port(self) -> int:
        return int(self._http.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Close every connection and wait for every thread."""
        self.over.set()
        self.end_delays()
        self._http.shutdown()
        for connection in list(self._http.open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                # The client has closed the connection first.
                continue
        self._http.server_close()
        self._thread.join()
        self.store.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # ------------------------------------------------------------------------------------------------- for tests

    def workspace(self, label: str = "Bench") -> str:
        """Create a workspace; return its id."""
        with self._lock:
            return str(self.store.create_workspace({"label": label})["id"])

    def fail(self, *queued: Fault, when: Callable[[Request], bool] = lambda _: True) -> None:
        """Inject these faults, in order, into the next requests for which ``when`` holds."""
        with self._lock:
            self._queued.extend((fault, when) for fault in queued)

    def end_delays(self) -> None:
        """Respond at once to delayed requests, also to later ones."""
        self.delays_over.set()

    def stop_reading_writes(self) -> None:
        """From now on, do not read the body of writes. New connections have small receive buffers."""
        self.unread.set()
        self._http.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)

    def writes(self) -> list[Request]:
        """Return all requests except GET, including refused requests."""
        with self._lock:
            return [request for request in self.requests if request.writes]

    def accepted(self) -> list[Request]:
        """Return the requests except GET that were applied; a refused request was not."""
        with self._lock:
            return list(self._accepted)

    def forget_requests(self) -> None:
        with self._lock:
            self.requests.clear()
            self._accepted.clear()

    def values(self, label: str) -> dict[str, tuple[str | None, str]]:
        """Return (value, data type) by key of the only sink with this label."""
        with self._lock:
            (sink,) = self.store.by_label(label)
            return self.store.values(sink)

    # ------------------------------------------------------------------------------------------- for the handler

    def note_error(self) -> None:
        with self._lock:
            self.errors += 1

    def take(self, request: Request) -> Fault | None:
        """Record a request and return the fault to inject."""
        with self._lock:
            self.requests.append(request)
            self.arrived.set()
            for place, (fault, when) in enumerate(self._queued):
                if when(request):
                    del self._queued[place]
                    return fault
            return self.fault_of(request) if self.fault_of is not None else None

    def act(self, request: Request) -> tuple[int, bytes]:
        """Apply a request."""
        if request.headers.get("x-api-key") != self.api_key:
            return 401, b'{"error":"Unauthorized"}'
        try:
            body = json.loads(request.body) if request.body else {}
            with self._lock:
                status, content = respond(self.store, request.method, request.path, request.headers, body)
                if status < 300 and request.writes:
                    self._accepted.append(request)
                return status, b"" if content is None else json.dumps(content).encode()
        except Refusal as refusal:
            return refusal.status, json.dumps({"error": refusal.error}).encode()
        except ValueError:
            return 400, b'{"error":"Invalid request"}'
