"""A real HTTP server with records. A test chooses its paging, conditional requests and faults."""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit


@dataclass
class Sent:
    """A response: a document, or ``raw`` bytes, which are sent unchanged."""

    document: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    cut: bool = False
    """Announce the whole body, send half of it, and close the connection."""


@dataclass
class Asked:
    """A received request. Header names are in lower case."""

    method: str
    path: str
    params: dict[str, str]
    headers: dict[str, str]
    body: bytes = b""


class RestService:
    """A service with pages of ``size`` of its ``records``. ``before`` may change the records, or respond itself."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.paging = "single"
        self.size = 3
        self.validates = False
        self.counts = False
        self.before: Callable[[Asked], Sent | None] = lambda _: None
        self.asked: list[Asked] = []
        self.url = ""
        self._lock = threading.Lock()

    def respond(self, asked: Asked) -> Sent:
        with self._lock:
            self.asked.append(asked)
            response = self.before(asked)
            return self._page(asked) if response is None else response

    def _page(self, asked: Asked) -> Sent:
        records = self.records
        if since := asked.params.get("since"):
            records = [record for record in records if record["at"] >= since]
        start = self._start(asked)
        whole = self.paging == "single"
        part = records if whole else records[start : start + self.size]
        following = None if whole or start + self.size >= len(records) else start + self.size
        response = self._document(asked, part, following, len(records))
        if self.validates:
            etag = (
                '"' + hashlib.sha256(json.dumps([response.document, response.headers]).encode()).hexdigest()[:16] + '"'
            )
            if asked.headers.get("if-none-match") == etag:
                return Sent(status=304, headers={"ETag": etag})
            response.headers["ETag"] = etag
        return response

    def _start(self, asked: Asked) -> int:
        if self.paging == "page":
            return (int(asked.params.get("page", "1")) - 1) * self.size
        return int(asked.params.get("offset", asked.params.get("token", "0")) or 0)

    def _document(self, asked: Asked, part: list[dict[str, Any]], following: int | None, total: int) -> Sent:
        count = {"total": total} if self.counts else {}
        if self.paging in {"single", "offset", "page"}:
            return Sent({"data": part, **count})
        if self.paging == "cursor":
            return Sent({"data": part, "meta": {"token": following}, **count})
        target = None
        if following is not None:
            target = f"{asked.path}?{urlencode(asked.params | {'offset': following})}"
        if self.paging == "link":
            return Sent({"data": part, **count}, headers={"Link": f'<{target}>; rel="next"'} if target else {})
        if self.paging == "odata":
            link = {"@odata.nextLink": f"{self.url}{target}"} if target else {}
            return Sent(
                {"@odata.context": "x", "value": part, **link, **({"@odata.count": total} if self.counts else {})}
            )
        return Sent({"data": part, "next": target, **count})


def _handler(service: RestService) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # head and body are two writes

        def do_GET(self) -> None:
            self._serve(b"")

        def do_POST(self) -> None:
            self._serve(self.rfile.read(int(self.headers.get("content-length", "0"))))

        def _serve(self, body: bytes) -> None:
            parts = urlsplit(self.path)
            params = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
            headers = {name.lower(): value for name, value in self.headers.items()}
            response = service.respond(Asked(self.command, parts.path, params, headers, body))
            content = response.raw if response.raw is not None else json.dumps(response.document).encode()
            if response.status == 304:
                content = b""
            elif response.raw is None and "gzip" in headers.get("accept-encoding", ""):
                content = gzip.compress(content)
                response.headers["Content-Encoding"] = "gzip"
            self.send_response_only(response.status)
            for name, value in {"Content-Type": "application/json", **response.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if response.cut else content)
            self.close_connection = response.cut

        def log_message(self, *_: object) -> None:
            return

    return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print errors, except errors because a client disconnected, which tests cause on purpose."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def rest_service() -> Iterator[RestService]:
    """Run the server until the context ends."""
    service = RestService()
    server = _Server(("127.0.0.1", 0), _handler(service))
    service.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
