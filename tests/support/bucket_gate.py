"""An HTTP proxy in front of an S3 server that calls functions of a test before and after each request."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

_DEADLINE_SECONDS = 60.0


class BucketGate:
    """The callbacks of the proxy. ``before`` gets method and path of a request; if it returns a response, the server gets none.

    ``after`` is called after the server has handled a request, before the client gets the response.
    """

    def __init__(self) -> None:
        self.endpoint = ""
        self.requests: list[str] = []
        self.before: Callable[[str, str], tuple[int, bytes] | None] = lambda _method, _path: None
        self.after: Callable[[str, str], object] = lambda _method, _path: None


@contextmanager
def bucket_gate(endpoint: str, address: str = "127.0.0.1") -> Iterator[BucketGate]:
    """Run the proxy on a free port. It forwards the header Host unchanged, because the client has signed this header."""
    gate = BucketGate()
    target = urlsplit(endpoint)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # head and body are two writes

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            gate.requests.append(self.command)
            refused = gate.before(self.command, self.path)
            if refused is not None:
                self._send(refused[0], {"ETag": '"0"'}, refused[1])
                return
            connection = http.client.HTTPConnection(str(target.hostname), target.port, timeout=_DEADLINE_SECONDS)
            connection.request(self.command, self.path, body=body or None, headers=dict(self.headers.items()))
            response = connection.getresponse()
            content = response.read()
            connection.close()
            gate.after(self.command, self.path)
            kept = {"etag", "last-modified", "content-type", "content-range"}
            headers = {name: value for name, value in response.getheaders() if name.lower() in kept}
            length = response.getheader("Content-Length") or str(len(content))
            self._send(response.status, {**headers, "Content-Length": length}, content)

        do_HEAD = do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815 - the names of the base class

        def _send(self, status: int, headers: dict[str, str], content: bytes) -> None:
            with suppress(ConnectionError):  # the client was killed
                self.send_response(status)
                for name, value in {"Content-Length": str(len(content)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

        def log_message(self, *_: Any) -> None: ...

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None: ...  # the client was killed

    with Server((address, 0), Handler) as server:
        gate.endpoint = f"http://{address}:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield gate
        finally:
            server.shutdown()
            thread.join()
